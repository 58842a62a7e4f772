#!/bin/sh
# `davit plugin new` from an installed tree: the project of each kind compiles without a warning
# with CMake, its tests pass, the installed davit lists it; and the same with one cc line.
#   test_new.sh SOURCE-DIR BUILD-DIR CC
set -eu
source_dir=$1
build_dir=$2
cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
kinds="format arch quant tokenizer kernels"

fail() {
    echo "test_new: $*" >&2
    exit 1
}

run() { # everything it says only when it fails
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "$*"
    }
}

run cmake --install "$build_dir" --prefix "$work/davit"
davit=$work/davit/bin/davit
mkdir "$work/all" "$work/one"
cd "$work/all"

{
    echo 'cmake_minimum_required(VERSION 3.25)'
    echo 'project(all LANGUAGES C)'
    echo 'enable_testing()'
    for kind in $kinds; do
        set --
        [ "$kind" != arch ] || set -- --class Tiny2ForCausalLM --model-type tiny-2
        "$davit" plugin new "$kind" "my_$kind" --id "net.someone.$kind.mine" -q "$@" || fail "plugin new $kind"
        echo "add_subdirectory(my_$kind)"
    done
} >CMakeLists.txt

# every project whole and without a placeholder left
for kind in $kinds; do
    for file in "my_$kind.c" "test_my_$kind.c" README.md CMakeLists.txt .gitignore; do
        [ -s "my_$kind/$file" ] || fail "my_$kind lacks $file"
    done
    if grep -rn '@[A-Z]*@' "my_$kind"; then fail "a placeholder is left"; fi
done

grep -q '"hf=Tiny2ForCausalLM"' my_arch/my_arch.c || fail "--class is not in the capability"
grep -q 'model_types = "tiny-2"' my_arch/my_arch.c || fail "--model-type is not in the plugin"

run cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/davit" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wshadow -Werror"
run cmake --build build -j 2
run ctest --test-dir build --output-on-failure
[ "$(grep -c 'Passed' "$work/log")" = 10 ] || fail "not every project has its two tests"
run cmake --install build --prefix "$work/local"
[ -s "$(find "$work/local" -name my_arch.so)" ] || fail "cmake --install installs no plugin"

# one line for the plugin, one for its test
PKG_CONFIG_PATH=$(dirname "$(find "$work/davit" -name davit-plugin-1.pc)")
DAVIT=$davit
export PKG_CONFIG_PATH DAVIT
for kind in $kinds; do
    cd "$work/all/my_$kind"
    # shellcheck disable=SC2046
    run "$cc" -std=c11 -O2 -fPIC -shared -fvisibility=hidden $(pkg-config --cflags davit-plugin-1) \
        "my_$kind.c" $(pkg-config --libs davit-plugin-1) -lm -o "my_$kind.so"
    # shellcheck disable=SC2046
    run "$cc" -std=c11 -O2 $(pkg-config --cflags davit-plugin-test-1) "test_my_$kind.c" \
        $(pkg-config --libs davit-plugin-test-1) -o test
    run ./test "./my_$kind.so"
    "$davit" plugin list --plugin-path "$PWD/my_$kind.so" |
        grep -q "^ok .* net.someone.$kind.mine .* option " || fail "my_$kind is not listed"
done

# the plugins are used: the plain C entry wins at equal scores, a file before davit's own
model=$source_dir/tests/golden/models/llama_mini
DAVIT_CPU_LEVEL=scalar "$davit" why "$model" --plugin-path "$work/all/my_kernels/my_kernels.so" 2>&1 |
    grep -q 'chosen *net.someone.kernels.mine .*: rmsnorm my_kernels' ||
    fail "the kernel set is not chosen"

# refusals leave nothing behind
cd "$work/one"
expect() { # EXIT TEXT ARGS...: that exit code, that text on stderr
    want=$1 text=$2 code=0
    shift 2
    "$davit" plugin new "$@" >"$work/log" 2>&1 || code=$?
    [ "$code" = "$want" ] || { cat "$work/log"; fail "plugin new $*: exit $code, expected $want"; }
    grep -q "$text" "$work/log" || { cat "$work/log"; fail "plugin new $*: does not say '$text'"; }
}
expect 2 'no template for this kind' codec x
expect 2 'no template for this kind' comm x
for name in '' X 1x x-y x.y ../x /x a/b test all davit 'x y' "$(printf '%033d' 0 | tr 0 a)"; do
    expect 2 'NAME' format "$name"
done
expect 2 'reverse DNS' format x --id plain
expect 2 'reverse DNS' format x --id 'a..b'
expect 2 'reverse DNS' format x --id 'a.b"c'
expect 2 'org.davit' format x --id org.davit.format.x
expect 1 'nowhere' format x --dir nowhere
mkdir empty
touch file
ln -s nowhere link
for there in empty file link; do expect 2 'it exists' format $there; done
expect 2 'only an architecture' format x --class XForCausalLM
expect 2 'the class cannot be used' arch x --class 'X"Y'
expect 2 'the model type cannot be used' arch x --model-type 'x y'
expect 1 'nowhere' arch x --from nowhere/config.json
expect 2 'names no architecture' arch x --from file
mkfifo fifo
expect 1 'no regular file' arch x --from fifo
rm fifo
[ "$(ls -A)" = "$(printf 'empty\nfile\nlink')" ] || fail "a refusal left files: $(ls -A)"
"$davit" plugin new arch y -q --from "$source_dir/tests/golden/models/qwen3_moe/config.json" || fail "--from fails"
grep -q '"hf=Qwen3MoeForCausalLM"' y/y.c || fail "--from does not give the class"
grep -q 'model_types = "qwen3_moe"' y/y.c || fail "--from does not give the model type"
"$davit" plugin new format x --json | grep -q '"schema": "davit-plugin-new/1"' || fail "no JSON answer"
echo "five projects build, pass and are listed"
