#!/bin/sh
# The program over broken plugins, and the commands that manage plugins, as a user meets them.
#   test_commands.sh PROGRAM FIXTURES MODELS SCRATCH SANITIZER
set -eu
davit=$1 fixtures=$2 models=$3 scratch=$4 sanitizer=$5
rm -rf "$scratch"
mkdir -p "$scratch/plugins" "$scratch/cache" "$scratch/config" "$scratch/cwd"
export XDG_CACHE_HOME="$scratch/cache" XDG_CONFIG_HOME="$scratch/config"
unset DAVIT_PLUGIN_PATH DAVIT_PLUGINS_DISABLE DAVIT_PLUGINS_SELECT || true

die() {
    echo "$*" >&2
    sed 's/^/  stdout: /' "$scratch/out" >&2
    sed 's/^/  stderr: /' "$scratch/err" >&2
    exit 1
}
# expect EXIT WORDS...: run the program; output in $scratch/out and err
expect() {
    want=$1
    shift
    got=0
    "$davit" "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    [ "$got" = "$want" ] || die "davit $*: exit $got, wanted $want"
}
out_has() { grep -qF -- "$1" "$scratch/out" || die "stdout lacks: $1"; }
err_has() { grep -qF -- "$1" "$scratch/err" || die "stderr lacks: $1"; }

# ---- a crashing plugin costs only itself ----
expect 0 run "$models/llama" --prompt "Hello" --max-tokens 4 -q
cp "$scratch/out" "$scratch/plain"
cp "$fixtures/broken_kinds.so" "$fixtures/ctor_segv.so" "$fixtures/entry_exit.so" \
    "$fixtures/undef.so" "$fixtures/bad_magic.so" "$scratch/plugins"
for round in first second; do
    expect 0 run "$models/llama" --prompt "Hello" --max-tokens 4 -q --plugin-path "$scratch/plugins"
    cmp -s "$scratch/out" "$scratch/plain" || die "$round run over broken plugins: another text"
done
expect 0 run "$models/llama" --prompt "Hello" --max-tokens 1 --plugin-path "$scratch/plugins"
err_has "of --plugin-path"

# ---- components of draft kinds: left out or taken, the model is the same ----
for draft in "" --allow-draft; do
    expect 0 run "$models/llama" --prompt "Hello" --max-tokens 4 -q --plugin-path "$fixtures/draft_kind.so" $draft
    cmp -s "$scratch/out" "$scratch/plain" || die "run $draft beside a draft component: another text"
    expect 0 plan "$models/llama" --plugin-path "$fixtures/draft_kind.so" $draft
    expect 0 eval "$models/llama" --ids "1 2 3" --plugin-path "$fixtures/draft_kind.so" $draft
done
expect 2 tokenize "$models/llama" Hello --allow-draft

# ---- quarantine: seen, explained, retried, cleared ----
list() { expect 0 plugin list --plugin-path "$scratch/plugins"; }
list
out_has "quarantined  format     org.example.ctor_segv"
out_has "R161 crashed"
out_has "org.example.broken.tokenizer"
expect 3 plugin list --plugin-path "$scratch/plugins" --strict
expect 0 plugin inspect org.example.ctor_segv --plugin-path "$scratch/plugins"
out_has "SIGSEGV during dlopen (constructor)"
out_has "davit plugin retry"
expect 3 plugin retry org.example.ctor_segv --plugin-path "$scratch/plugins"
out_has crashed
expect 0 plugin inspect org.example.ctor_segv --plugin-path "$scratch/plugins" --json
out_has '"count": 2'
expect 0 plugin clear-quarantine --plugin-path "$scratch/plugins"
out_has "3 files leave quarantine"
list
grep -q '^quarantined' "$scratch/out" && die "quarantine was not cleared"
expect 0 plugin inspect "$fixtures/ctor_segv.so" --probe # in no folder that is searched
expect 0 plugin clear-quarantine
out_has "1 files leave quarantine"
out_has "$fixtures/ctor_segv.so"
expect 0 plugin inspect "$fixtures/ctor_segv.so"
out_has "not looked at yet"
expect 2 plugin retry org.example.nobody
expect 0 plugin rescan

# ---- disable and enable ----
expect 0 plugin disable org.davit.arch.llama
expect 3 run "$models/llama" --prompt "Hello" --max-tokens 1
err_has LlamaForCausalLM
expect 0 plugin list --all
out_has "disabled     arch       org.davit.arch.llama"
expect 0 plugin enable org.davit.arch.llama
expect 0 run "$models/llama" --prompt "Hello" --max-tokens 1 -q
expect 2 plugin disable org.example.nobody
expect 2 plugin enable org.example.nobody
err_has "no component or bundle has this id"
printf '{"disabled": 7}\n' >"$scratch/config/davit/plugins.json"
expect 2 plugin list
err_has "plugins.json"
rm "$scratch/config/davit/plugins.json"

# ---- a crash on one input names the plugin ----
cp -r "$models/llama" "$scratch/model"
if [ -z "$sanitizer" ]; then
    got=0
    "$davit" inspect "$scratch/model" --plugin-path "$fixtures/probe_late.so" \
        >"$scratch/out" 2>"$scratch/err" || got=$?
    [ "$got" -gt 128 ] || die "a crash in a probe was survived: exit $got"
    err_has "SIGSEGV (bad memory access) in plugin code: org.example.probe_late (probe)"
    err_has "davit plugin disable org.example.probe_late"
fi

# ---- a plugin's destructor cannot spoil a run that is done: it does not run ----
if [ -z "$sanitizer" ]; then
    DAVIT_TEST_DTOR=1 expect 0 plugin inspect "$fixtures/dtor_segv.so" --probe
    out_has "state: ok"
fi

# ---- code comes from no model and no current directory ----
cp "$fixtures/ctor_mark.so" "$scratch/model"
cp "$fixtures/ctor_mark.so" "$scratch/cwd"
(
    cd "$scratch/cwd"
    export DAVIT_TEST_MARK="$scratch/mark"
    "$davit" run "$scratch/model" --prompt "Hello" --max-tokens 1 -q >/dev/null
    "$davit" plugin list >"$scratch/out"
)
[ ! -e "$scratch/mark" ] || die "a library of the model or the current directory was run"
grep -q ctor_mark "$scratch/out" && die "a library of the current directory is listed"

# ---- odd paths ----
mkdir "$scratch/odd" "$scratch/odd/directory.so"
mkfifo "$scratch/odd/fifo.so"
ln -s /nowhere/at/all.so "$scratch/odd/dangling.so"
cp "$fixtures/good.so" "$scratch/odd/writable.so"
chmod 666 "$scratch/odd/writable.so"
: >"$scratch/odd/empty.so"
head -c 3000 "$fixtures/good.so" >"$scratch/odd/cut.so"
echo '#!/bin/sh' >"$scratch/odd/text.so"
chmod go-w "$scratch/odd/"*.so 2>/dev/null || true
chmod 666 "$scratch/odd/writable.so"
expect 0 plugin list --plugin-path "$scratch/odd"
for code in "R101 not-regular" "R102 perm-writable" "R601 io-failed" "R104 truncated" "R105 not-elf"; do
    out_has "$code"
done

# ---- a component that is wrong inside is listed as refused once it was looked at ----
for pair in "shape_cut_json shapes[1].pre_tokenizer" "shape_no_facts shapes[1].gguf_facts" "no_iface iface"; do
    name=${pair% *}
    expect 0 plugin list --probe --plugin-path "$fixtures/$name.so"
    grep -E "^refused +(tokenizer|format) +org.example.$name .*R(157 missing-field|307 json-invalid)" \
        "$scratch/out" >/dev/null || die "$name is not listed as refused"
    expect 0 plugin list --plugin-path "$fixtures/$name.so" --json # from the cache
    out_has "org.example.$name: ${pair#* }"
done

# ---- why: an unknown architecture, a stale block, a foreign tokenizer, on one screen ----
rm -rf "$scratch/model"
cp -r "$models/llama" "$scratch/model"
sed 's/"LlamaForCausalLM"/"UnknownForCausalLM"/; s/"model_type": *"llama"/"model_type": "unknown"/
    s/^{/{"quantization_config": {"quant_method": "awq", "bits": 4},/' \
    "$models/llama/config.json" >"$scratch/model/config.json"
sed '/"pre_tokenizer"/,/}/ s/"ByteLevel"/"Strange"/' \
    "$models/llama/tokenizer.json" >"$scratch/model/tokenizer.json"
expect 3 why "$scratch/model"
out_has "does not name UnknownForCausalLM"
out_has "stale quant_method awq ignored"
out_has "refuses"
[ "$(wc -l <"$scratch/out")" -le 24 ] || die "why is longer than a screen"

# ---- conformance ----
expect 0 plugin check org.davit.format.safetensors
out_has "ok    loads"
expect 3 plugin check "$fixtures/two_exports.so"
out_has "FAIL  one_export"
expect 3 plugin check "$fixtures/create_segv.so"
out_has "SIGSEGV during create"
expect 3 plugin check "$fixtures/side_effects.so"
out_has "FAIL  no_side_effect"
expect 3 plugin check "$fixtures/future_minor.so"
out_has host-too-old
expect 2 plugin check "$fixtures/nobody.so"

# ---- kernels: ranking, reasons, the user's rank ----
expect 0 plugin ops linear --model "$models/llama"
out_has "chosen"
out_has "score"
expect 2 plugin ops never_heard_of
expect 2 plugin ops linear --measure
expect 2 plugin ops linear --model "$models/llama" --write
expect 2 plugin ops never_heard_of --model "$models/llama" --measure
expect 2 plugin ops linear --model "$models/llama" --measure --tokens 0
expect 0 plugin ops linear --model "$models/llama" --json
# whoever is able and was not chosen is chosen when the user ranks it
able=$(tr -d '\n' <"$scratch/out" | sed 's/}/}\n/g' | sed -n 's/.*"entry": *"\([^"]*\)".*"verdict": *"able".*/\1/p' | head -n 1)
if [ -n "$able" ]; then
    printf '{"kernel_ranks": {"linear/1": {"org.davit.kernels.cpu:%s": 9}}}\n' "$able" \
        >"$scratch/config/davit/plugins.json"
    expect 0 plugin ops linear --model "$models/llama"
    grep -qF "chosen  $able " "$scratch/out" || die "the user's rank of $able was not obeyed"
    rm "$scratch/config/davit/plugins.json"
fi

# ---- kernels: measured, written, obeyed ----
measure() { expect 0 plugin ops "$@" --model "$models/llama" --measure --tokens 1 --tokens 9 --rounds 1; }
measure
out_has "times the best"
out_has "rank   1  attn"
[ ! -e "$scratch/config/davit/plugins.json" ] || die "--measure wrote without --write"
measure linear --write --json
out_has '"schema": "davit-plugin-ops/1"'
out_has '"us":'
[ -s "$scratch/config/davit/plugins.json" ] || die "--write wrote nothing"
tr -d '\n' <"$scratch/out" | sed 's/}/}\n/g' >"$scratch/rows"
most=$(sed -n 's/.*"cost":.*"rank": *\([0-9]*\).*/\1/p' "$scratch/rows" | sort -n | tail -n 1)
[ -n "$most" ] || die "no ranks in the document"
expect 0 plugin ops linear --model "$models/llama"
grep "^  chosen" "$scratch/out" | grep -qF ", your rank $most" || die "the measured order was not obeyed"
sed -n '/"cost":/p' "$scratch/rows" | sed -n 's/.*"entry": *"\([^"]*\)".*/\1/p' >"$scratch/entries"
while read -r entry; do
    grep -qF "org.davit.kernels.cpu:$entry\": " "$scratch/config/davit/plugins.json" ||
        die "$entry has no rank in the file"
done <"$scratch/entries"
rm "$scratch/config/davit/plugins.json"
# Ctrl-C: nothing is written
if [ "$sanitizer" != thread ]; then
    got=0
    timeout --preserve-status -s INT 1 "$davit" plugin ops --model "$models/llama" --measure --write --rounds 1000 \
        >"$scratch/out" 2>"$scratch/err" || got=$?
    [ "$got" = 130 ] || die "interrupted: exit $got"
    [ ! -s "$scratch/out" ] || die "an interrupted run printed times"
    [ ! -e "$scratch/config/davit/plugins.json" ] || die "an interrupted run wrote ranks"
fi

# ---- two at once, a cache that cannot be written ----
rm -rf "$scratch/cache"
for i in 1 2 3; do
    "$davit" run "$models/llama" --prompt "Hello" --max-tokens 4 -q >"$scratch/out.$i" 2>&1 &
done
wait
for i in 1 2 3; do
    cmp -s "$scratch/out.$i" "$scratch/plain" || die "runs at once differ"
done
XDG_CACHE_HOME=/proc/nowhere expect 0 run "$models/llama" --prompt "Hello" --max-tokens 4 -q
cmp -s "$scratch/out" "$scratch/plain" || die "without a cache: another text"

# ---- relative folders of the environment are not the current directory's, a home is not made ----
(
    cd "$scratch/cwd"
    HOME=rel XDG_CACHE_HOME=rel XDG_CONFIG_HOME=rel XDG_DATA_HOME=rel \
        "$davit" run "$models/llama" --prompt "Hello" --max-tokens 1 -q >/dev/null
) || die "a relative HOME stops the run"
[ ! -e "$scratch/cwd/rel" ] || die "a cache was made in the current directory"
HOME="$scratch/no/home" XDG_CACHE_HOME="$scratch/no/home/cache" \
    expect 0 run "$models/llama" --prompt "Hello" --max-tokens 1 -q
[ ! -e "$scratch/no" ] || die "a home was made"
if [ "$(id -u)" != 0 ]; then # root enters every folder
    mkdir -p "$scratch/closed/davit"
    chmod 000 "$scratch/closed"
    XDG_CONFIG_HOME="$scratch/closed" expect 0 run "$models/llama" --prompt "Hello" --max-tokens 1
    err_has "closed to this user"
    chmod 700 "$scratch/closed"
fi
echo "all passed"
