#!/bin/sh
# Builds davit, fetches SmolLM2-135M-Instruct, answers a prompt and prints the load report.
#   scripts/demo.sh ["a prompt"]
set -eu
cd "$(dirname "$0")/.."

scripts/packages.sh build models
mkdir -p build
cmake -S . -B build/release -G Ninja >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    exit 1
}
echo "building davit" >&2
ninja -C build/release --quiet davit-all
scripts/fetch-models.sh build/models
prompt=${1:-The capital of France is}
echo "prompt: $prompt" >&2
exec build/release/bin/davit run build/models/SmolLM2-135M-Instruct.Q4_1.gguf \
    --prompt "$prompt" --max-tokens 32 --stream --load-stats
