#!/bin/sh
# Each broken plugin fails the test of `davit plugin check` that is there for its fault, and none
# that comes to another end; sound ones pass all.
#   test_check.sh PROGRAM FIXTURES LIST MODELS SCRATCH
set -eu
davit=$1 fixtures=$2 list=$3 models=$4 scratch=$5
rm -rf "$scratch"
mkdir -p "$scratch"
export XDG_CACHE_HOME="$scratch/cache" XDG_CONFIG_HOME="$scratch/config"
unset DAVIT_PLUGIN_PATH DAVIT_PLUGINS_DISABLE DAVIT_PLUGINS_SELECT || true

die() {
    echo "$*" >&2
    sed 's/^/  /' "$scratch/out" >&2
    exit 1
}
# check EXIT ARGS...: output in $scratch/out
check() {
    want=$1
    shift
    got=0
    "$davit" plugin check "$@" >"$scratch/out" 2>&1 || got=$?
    [ "$got" = "$want" ] || die "davit plugin check $*: exit $got, wanted $want"
}

while read -r name test; do
    if [ "$test" = - ]; then
        check 0 "$fixtures/$name.so"
    else
        check 3 "$fixtures/$name.so"
        grep -q "^FAIL  $test " "$scratch/out" || die "$name: $test did not catch it"
    fi
done <"$list"

check 3 "$fixtures/check_format_leak.so"
grep -q "contract-broken" "$scratch/out" || die "a broken rule has another code"

# samples are cut and changed too; another start, more rounds
check 0 org.davit.format.safetensors --sample "$models/llama/model.safetensors" --seed 7
check 0 org.davit.format.gguf --sample "$models/gguf_llama/model.gguf"
check 0 org.davit.arch.llama --sample "$models/llama/config.json" --repeat 2
check 0 org.davit.quant.gguf
check 0 org.davit.kernels.cpu
check 0 org.davit.tokenizer.llama3

# wrong use
check 2 org.davit.tokenizer.gpt2 --repeat 0
check 2 org.davit.tokenizer.gpt2 --sample "$scratch/nothing"
check 2 org.davit.tokenizer.gpt2 --seed x
echo "all passed"
