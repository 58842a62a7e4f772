#!/bin/sh
# Load and free tiny models many times and see that nothing stays: descriptors, mappings, threads, heap.
#   scripts/many-loads.sh [BUILD [N]]     default: build/release 10000; some minutes
set -eu
build=${1:-build/release}
DAVIT_LOADS=${2:-10000} exec "$build/test/test_loads" --verbose
