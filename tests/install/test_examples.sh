#!/bin/sh
# The examples of the SDK, built against an installed tree only, pass their tests there: each
# loads its plugin into the installed program. with "rust" alias_rust alone.
#   test_examples.sh SOURCE-DIR BUILD-DIR CC [rust]
set -eu
source_dir=$1
build_dir=$2
cc=$3
rust=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

run() { # everything it says only when it fails
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
}

run cmake --install "$build_dir" --prefix "$work/davit"
examples=$source_dir/sdk/examples
set -- -DCMAKE_PREFIX_PATH="$work/davit" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wshadow -Werror"
if [ "$rust" = rust ]; then
    examples=$examples/alias_rust
    count=2
else
    command -v g++ >/dev/null || command -v clang++ >/dev/null || {
        set -- "$@" -DDAVIT_EXAMPLE_CXX=OFF
        echo "alias_cpp: skipped, no C++ compiler"
    }
    count=10
fi
run cmake -S "$examples" -B "$work/build" "$@"
run cmake --build "$work/build" -j 2
run ctest --test-dir "$work/build" --output-on-failure
passed=$(grep -c Passed "$work/log")
[ "$passed" -ge "$count" ] || { cat "$work/log"; echo "test_examples: $passed tests, expected $count"; exit 1; }

# each object exports its entry and nothing else, whatever the language
find "$work/build" -name '*.so' | while read -r object; do
    symbols=$(nm -D --defined-only "$object" | awk '{print $3}')
    [ "$symbols" = davit_plugin_entry_v1 ] || { echo "$object exports: $symbols" >&2; exit 1; }
done
lines=$(wc -l <"$source_dir/sdk/examples/alias/alias.c")
[ "$lines" -le 60 ] || { echo "the alias has $lines lines, not 60 at most" >&2; exit 1; }
echo "$passed tests of the examples pass"
