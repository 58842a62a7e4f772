#!/bin/sh
# Installs the build tree into a fresh prefix, moves it, and works only with what is there: the
# program runs, a client and a plugin build through CMake and through pkg-config.
#   test_install.sh SOURCE-DIR BUILD-DIR CC
set -eu
source_dir=$1
build_dir=$2
cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
model=$source_dir/tests/golden/models/gguf_q8_0/model.gguf

cmake --install "$build_dir" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/moved" # the program must find its parts from wherever it lies
prefix=$work/moved

fail() {
    echo "test_install: $*" >&2
    exit 1
}

"$prefix/bin/davit" plugin list | grep -q 'org.davit.kernels.cpu' || fail "no plugins found after the move"
"$prefix/bin/davit" run "$model" --ids "1 2 3" --max-tokens 4 -q --json >"$work/out" || fail "run fails"
for page in davit davit-run davit-plugin-list; do
    [ -s "$prefix/share/man/man1/$page.1" ] || fail "no man page $page"
done
[ -s "$prefix/share/bash-completion/completions/davit" ] || fail "no bash completion"
bash -n "$prefix/share/bash-completion/completions/davit" || fail "bash completion does not parse"

# client, CMake
cmake -S "$source_dir/core/engine/example" -B "$work/client" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" >"$work/log" 2>&1 || { cat "$work/log"; fail "client does not configure"; }
cmake --build "$work/client" >"$work/log" 2>&1 || { cat "$work/log"; fail "client does not build"; }
ids=$("$work/client/complete" "$model" 1 2 3 2>/dev/null) || fail "client does not run"
[ "$(echo "$ids" | wc -w)" = 8 ] || fail "client printed '$ids'"

# plugin, CMake
cmake -S "$source_dir/sdk/examples/toy" -B "$work/toy" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" >"$work/log" 2>&1 || { cat "$work/log"; fail "toy does not configure"; }
cmake --build "$work/toy" >"$work/log" 2>&1 || { cat "$work/log"; fail "toy does not build"; }
printf 'TOY1\002\000\000\000\000\000\200?\000\000\000@' >"$work/two.toy"
"$prefix/bin/davit" inspect "$work/two.toy" --plugin-path "$work/toy/toy.so" | grep -q 'toy.weight' ||
    fail "the toy plugin does not open a toy file"
printf 'TOY2\002\000\000\000\000\000\200?\000\000\000@' >"$work/bad.toy"
code=0
"$prefix/bin/davit" inspect "$work/bad.toy" --plugin-path "$work/toy/toy.so" 2>"$work/err" || code=$?
[ $code = 3 ] || fail "TOY2: exit $code"
grep -q 'version 1 only' "$work/err" || fail "the toy plugin's refusal is lost"

# one plugin for several processors: davit takes the file for this one and says so of the others
if grep -q ssse3 /proc/cpuinfo 2>/dev/null && [ "$(uname -m)" = x86_64 ]; then
    mkdir "$work/fast"
    {
        echo 'cmake_minimum_required(VERSION 3.25)'
        echo 'project(fast LANGUAGES C)'
        echo 'find_package(DavitPlugin 1 REQUIRED)'
        echo "davit_add_plugin(NAME toy SOURCES $source_dir/sdk/examples/toy/toy.c"
        echo '  FAST_SOURCES fast.c VARIANTS x86-64-v2 x86-64-v4)'
    } >"$work/fast/CMakeLists.txt"
    echo 'int fast(int x); int fast(int x) { return x + 1; }' >"$work/fast/fast.c"
    cmake -S "$work/fast" -B "$work/fast/b" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        >"$work/log" 2>&1 || { cat "$work/log"; fail "variants do not configure"; }
    cmake --build "$work/fast/b" >"$work/log" 2>&1 || { cat "$work/log"; fail "variants do not build"; }
    DAVIT_CPU_LEVEL=x86-64-v2 "$prefix/bin/davit" plugin inspect org.example.toy --all \
        --plugin-path "$work/fast/b" >"$work/out" 2>&1 || true
    DAVIT_CPU_LEVEL=x86-64-v2 "$prefix/bin/davit" plugin list --json --plugin-path "$work/fast/b" >"$work/out"
    tr -d ' \n' <"$work/out" | grep -q 'toy.x86-64-v2.so","state":"ok"\|"state":"ok"[^{}]*toy.x86-64-v2.so' ||
        { cat "$work/out"; fail "the variant for this processor is not taken"; }
fi

# the guide of every kind, and what it names
docs=$prefix/share/davit/sdk-1/docs
for page in README add-a-format add-an-arch add-a-quant add-a-tokenizer add-kernels; do
    [ -s "$docs/$page.md" ] || fail "no guide $page.md"
done
grep -o 'examples/[a-z0-9_]*' "$docs"/*.md | sed 's/.*://' | sort -u | while read -r example; do
    [ -d "$docs/../$example" ] || fail "the guide names $example, which is not installed"
done
grep -oh '`davit/[a-z/]*\.h`' "$docs"/*.md | tr -d '`' | sort -u | while read -r header; do
    [ -s "$prefix/include/davit-sdk-1/$header" ] || fail "the guide names $header, which is not installed"
done

# plugin, one cc line
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name davit-plugin-1.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags davit-plugin-1) ||
    fail "pkg-config does not know davit-plugin-1"
# shellcheck disable=SC2086
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden $flags "$source_dir/sdk/examples/toy/toy.c" \
    $(pkg-config --libs davit-plugin-1) -o "$work/one.so" || fail "the one-line build fails"
"$prefix/bin/davit" plugin inspect "$work/one.so" | grep -q 'state: ok' || fail "one-line plugin is not ok"
echo "installed tree works from $prefix"
