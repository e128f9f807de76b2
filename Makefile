# make demo    sets up and shows the laboratory at work
# make test    installs, then linter, formatter, types and all tests
# make web     checks and tests the pages (Node 20), builds them again, and fails if the bundle in the package is another
# make docs    the documentation site, in site/; fails at a link that leads nowhere
# make audit   licences and known vulnerabilities of everything that comes along
# make wheel   the package in a clean environment, used from another folder without a network
# make coverage  which lines the tests run
# make sanitize  the native library's tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make fuzz    a million broken programs and many broken files of every other kind; for the night
# make bench   the figures in README and docs, measured on this machine, in one table

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# two cores: two test processes with one thread each
JOBS ?= 2
export OMP_NUM_THREADS ?= 1
# tests start many processes, which are quicker where Python may keep what it compiled
unexport PYTHONDONTWRITEBYTECODE

NATIVE := $(wildcard src/neural/native/*.cpp src/neural/native/*.h src/neural/native/kernels/* src/neural/native/cmake/CMakeLists.txt)

.PHONY: demo test check web docs audit wheel coverage sanitize fuzz bench clean

$(VENV)/ready: pyproject.toml constraints.txt $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@# a plain path entry: the import hook beside it would hide copies of the package on PYTHONPATH
	@sed -i.bak '/^import /d' $(VENV)/lib/python*/site-packages/_editable_skbc_neural.pth
	@touch $@

demo: $(VENV)/ready
	@env -u OMP_NUM_THREADS $(BIN)/python examples/demo/demo.py

check: $(VENV)/ready
	$(BIN)/ruff format --check src tests examples benchmarks docs
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python
	$(BIN)/neural fmt --check examples/*.neural examples/*/*.neural
	@if command -v npm > /dev/null; then cd web && { [ -d node_modules ] || npm ci --no-audit --no-fund; } && npm run check; \
	else echo "npm is not installed: the front-end was not linted"; fi

test: check
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal --durations 10

web: $(VENV)/ready
	cd web && npm ci --no-audit --no-fund && npm run check && npm test
	mkdir -p $(VENV)/web && cd web && node build.mjs ../$(VENV)/web
	cmp $(VENV)/web/neural.js src/neural/report/bundle/neural.js
	cmp $(VENV)/web/neural.css src/neural/report/bundle/neural.css
	cmp $(VENV)/web/widget.js src/neural/report/bundle/widget.js

docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

audit: $(VENV)/ready
	$(BIN)/python tests/audit.py

wheel: $(VENV)/ready
	$(BIN)/python tests/wheel.py

coverage: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal --cov neural --cov-report term --cov-fail-under 90

sanitize: $(VENV)/ready
	$(BIN)/python tests/native/sanitize.py

fuzz: $(VENV)/ready
	$(BIN)/python tests/fuzz/nightly.py --target parser --executions 1000000
	$(BIN)/python tests/fuzz/nightly.py

bench: $(VENV)/ready
	@env -u OMP_NUM_THREADS $(BIN)/python benchmarks/all.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
