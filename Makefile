# make demo    installs, then shows the laboratory at work
# make install  the package in .venv, without what only tests need
# make test    installs everything, then linter, formatter, types and all tests
# make check   the linter, formatter and types alone;  make pytest   the tests alone
# make integrations  the adapters with LangChain, LlamaIndex and Haystack themselves
# make web     checks and tests the pages (Node 20), builds them again, and fails if the bundle in the package is another
# make docs    the documentation site, in site/; fails at a link that leads nowhere
# make gallery  the pictures of docs/gallery.md, by its commands (ten minutes; a browser)
# make audit   licences and known vulnerabilities of everything that comes along
# make wheel   the package in a clean environment, used from another folder without a network
# make dist    in dist/: the source archive, a wheel for this machine and one for any system
# make wheels  in dist/: the wheels of this system for the package index, by cibuildwheel
# make container  the image of the Dockerfile, and a program checked in it
# make lock    exact versions with hashes in release/locks, for CI and releases
# make sbom    the bill of materials that comes in the wheel
# make lint-release  workflows, issue forms, hooks, citation and metadata against their schemas
# make check-release TAG=v0.2.0  tag, version, changelog, citation and bill of materials agree
# make coverage  which lines the tests run
# make sanitize  the native library's tests under AddressSanitizer and UndefinedBehaviorSanitizer
# make fuzz    a million broken programs and many broken files of every other kind; for the night
# make bench   the figures in README and docs, measured on this machine, in one table

PYTHON ?= python3
VENV := .venv
# Windows has make and sh where Git and MinGW are installed, as on GitHub's machines
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
BUILD_BIN := build/venv/$(SCRIPTS)
INTEGRATIONS := build/integrations
# two cores: two test processes with one thread each
JOBS ?= 2
export OMP_NUM_THREADS ?= 1
# tests start many processes, which are quicker where Python may keep what it compiled
unexport PYTHONDONTWRITEBYTECODE

ISSUE_FORMS := $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
NATIVE := $(wildcard src/neural/native/*.cpp src/neural/native/*.h src/neural/native/kernels/* src/neural/native/cmake/CMakeLists.txt)

.PHONY: demo install test check pytest integrations web docs gallery audit wheel dist wheels container lock sbom lint-release check-release coverage sanitize fuzz bench clean

# PyTorch without CUDA on Linux: make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu. torch alone comes from there: a second
# index beside the package index could answer for any name.
TORCH := $(shell sed -n '/^torch==/p' constraints.txt)
# CI systems set CI: pip then takes no file whose hash is not in release/locks, torch excepted
LOCKED_INSTALL := install --quiet --no-deps --require-hashes --requirement release/locks

# src/neural/__init__.py has the version, which an installation keeps
$(VENV)/installed: pyproject.toml constraints.txt src/neural/__init__.py $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@echo "Installing neural and PyTorch in $(VENV), and compiling the kernels: this takes some minutes"
	$(PYTHON) tests/set_up.py compiler
	$(PYTHON) -m venv $(VENV)
	$(if $(CI),$(BIN)/python -m pip $(LOCKED_INSTALL)/tests.txt)
	$(if $(CI)$(TORCH_INDEX),$(BIN)/python -m pip install --quiet $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX)) $(TORCH))
	$(BIN)/python -m pip install --quiet $(if $(CI),--no-deps --no-build-isolation,--constraint constraints.txt) --editable .
	@# a plain path entry: the import hook beside it would hide copies of the package on PYTHONPATH
	@$(BIN)/python -c 'import pathlib, sysconfig; pth = pathlib.Path(sysconfig.get_path("purelib"), "_editable_skbc_neural_lab.pth"); \
	pth.write_text("".join(line for line in pth.open() if not line.startswith("import ")))'
	@touch $@

# The requirements of the extra dev alone: `--editable '.[dev]'` would compile the kernels again.
$(VENV)/ready: $(VENV)/installed
	@echo "Installing what tests and checks need in $(VENV): this takes some minutes"
	@$(BIN)/python -c 'import pathlib, tomllib; project = tomllib.loads(pathlib.Path("pyproject.toml").read_text("utf-8"))["project"]; \
	print(*project["optional-dependencies"]["dev"], sep="\n")' > $(VENV)/requirements.txt
	$(if $(CI),,$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement $(VENV)/requirements.txt)
	$(BIN)/python tests/set_up.py npm
	$(BIN)/python tests/set_up.py browser
	@touch $@

install: $(VENV)/installed

# the demo has all cores, unless the caller has set OMP_NUM_THREADS
demo: $(VENV)/installed
	@$(if $(filter file,$(origin OMP_NUM_THREADS)),env -u OMP_NUM_THREADS) $(BIN)/python examples/demo/demo.py

check: $(VENV)/ready
	$(BIN)/ruff format --check src tests examples benchmarks docs release
	$(BIN)/ruff check src tests examples benchmarks docs release
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python
	$(BIN)/neural fmt --check examples/*.neural examples/*/*.neural
	@if command -v npm > /dev/null; then cd web && { [ -d node_modules ] || npm ci --no-audit --no-fund; } && npm run check; \
	else echo "npm is not installed: the front-end was not linted"; fi

pytest: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal --durations 10 $(PYTEST_ARGUMENTS)

test: check
	@$(MAKE) pytest

# Forty packages that nothing else needs have an environment of their own, which sees that of the tests.
$(INTEGRATIONS)/ready: $(VENV)/ready
	$(PYTHON) -m venv $(INTEGRATIONS)
	@$(INTEGRATIONS)/$(SCRIPTS)/python -c 'import pathlib, sysconfig, tomllib; \
	project = tomllib.loads(pathlib.Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]; \
	print(*project["haystack"], *project["langchain"], *project["llama-index"], sep="\n")' > $(INTEGRATIONS)/requirements.txt
	@$(BIN)/python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[-1])' \
	> "$$($(INTEGRATIONS)/$(SCRIPTS)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
	$(INTEGRATIONS)/$(SCRIPTS)/python -m pip $(if $(CI),$(LOCKED_INSTALL)/integrations.txt,install --quiet --constraint constraints.txt --requirement $(INTEGRATIONS)/requirements.txt)
	@touch $@

# NEURAL_TEST_FRAMEWORKS: a framework that is missing is an error, not a skipped test
integrations: $(INTEGRATIONS)/ready
	NEURAL_TEST_FRAMEWORKS=1 HAYSTACK_TELEMETRY_ENABLED=False $(INTEGRATIONS)/$(SCRIPTS)/python -m pytest tests/integrations

web: $(VENV)/ready
	cd web && npm ci --no-audit --no-fund && npm run check && npm test
	mkdir -p $(VENV)/web && cd web && node build.mjs ../$(VENV)/web
	cmp $(VENV)/web/neural.js src/neural/report/bundle/neural.js
	cmp $(VENV)/web/neural.css src/neural/report/bundle/neural.css
	cmp $(VENV)/web/widget.js src/neural/report/bundle/widget.js

docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/ready
	$(BIN)/python docs/gallery.py

audit: $(VENV)/ready
	$(BIN)/python tests/audit.py

wheel: $(VENV)/ready
	$(BIN)/python tests/wheel.py

# The tools of a release have an environment of their own: their requirements are not those of the tests.
build/venv/ready: release/locks/tools.txt
	$(PYTHON) -m venv build/venv
	$(BUILD_BIN)/python -m pip $(LOCKED_INSTALL)/tools.txt
	@touch $@

dist: build/venv/ready
	rm -rf dist
	$(BUILD_BIN)/python -m build --no-isolation --outdir dist  # the wheel is built from the source archive
	$(BUILD_BIN)/python -m build --no-isolation --wheel --outdir dist --config-setting wheel.cmake=false
	$(BUILD_BIN)/python -m twine check --strict dist/*
	$(BUILD_BIN)/python -m release.check_wheels dist/*.whl

wheels: build/venv/ready
	$(BUILD_BIN)/python -m cibuildwheel --output-dir dist
	$(BUILD_BIN)/python -m twine check --strict dist/*
	$(BUILD_BIN)/python -m release.check_wheels dist/*.whl

container:
	docker build --tag neural .
	docker run --rm --volume "$(CURDIR)/examples":/work:ro neural check tiny.neural

lock:
	$(PYTHON) -m venv build/lock
	build/lock/$(SCRIPTS)/python -m pip install --quiet uv==0.13.8
	build/lock/$(SCRIPTS)/python release/make_locks.py

sbom: $(VENV)/ready
	$(BIN)/python -m release.make_sbom

lint-release: build/venv/ready
	$(BUILD_BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BUILD_BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(ISSUE_FORMS)
	$(BUILD_BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BUILD_BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BUILD_BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BUILD_BIN)/zizmor --offline --quiet --persona pedantic .github
	$(BUILD_BIN)/pre-commit validate-config .pre-commit-config.yaml
	$(BUILD_BIN)/pre-commit validate-manifest .pre-commit-hooks.yaml
	$(BUILD_BIN)/hadolint Dockerfile
	$(BUILD_BIN)/validate-pyproject pyproject.toml

check-release: $(VENV)/ready
	$(BIN)/python -m release.check_release $(TAG)

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
