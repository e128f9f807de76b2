# syntax=docker/dockerfile:1
# The command `neural` with PyTorch for CPUs, run by a user without rights. docs/install.md says how to use it.
#
#     docker build --tag neural .
#     docker run --rm --volume "$PWD":/work neural check net.neural

# by digest: a tag may be given to another image
ARG BASE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${BASE} AS build
# The native kernels are C++; CMake and Ninja come as build requirements. No version of g++ is named: Debian's archive
# keeps only the newest.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m pip install --no-cache-dir --no-deps --require-hashes --requirement release/locks/build.txt \
    && python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist .

FROM ${BASE}
# PyTorch without CUDA, a tenth of the size. torch alone comes from this index; every other file has a known hash.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    --mount=type=bind,source=release/locks/image.txt,target=/image.txt \
    python -m pip install --no-cache-dir --no-deps --index-url "${TORCH_INDEX}" --constraint /constraints.txt torch \
    && python -m pip install --no-cache-dir --no-deps --require-hashes --requirement /image.txt \
    && python -m pip install --no-cache-dir --no-deps /dist/*.whl
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
