# syntax=docker/dockerfile:1
# The command `neural` with PyTorch for CPUs, run by a user without rights. docs/install.md says how to use it.
#
#     docker build --tag neural .
#     docker run --rm --volume "$PWD":/work neural check net.neural

ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# The native kernels are C++; CMake and Ninja come as build requirements. No version of g++ is named: Debian's archive
# keeps only the newest.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /dist .

FROM python:${PYTHON}-slim
# wheels of PyTorch without CUDA, which are a tenth of the size
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# the extra board serves the live page
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    python -m pip install --no-cache-dir --extra-index-url "${TORCH_INDEX}" --constraint /constraints.txt \
        "$(echo /dist/*.whl)[board]"
# the home is open to every user, so that `docker run --user "$(id -u)"` can write caches there
RUN useradd --create-home --uid 1000 neural \
    && chmod 1777 /home/neural \
    && mkdir --mode 1777 /work
ENV HOME=/home/neural \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /work
EXPOSE 8765
ENTRYPOINT ["neural"]
CMD ["--help"]
