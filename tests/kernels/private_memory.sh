#!/bin/sh
# No float copy of a quantised weight: a model runs with less private memory than one would take.
#   private_memory.sh DAVIT WORK_DIR KIND
#
# Writes a one-layer Llama whose matrices hold one code each (29 M weights: 118 MB as float32, the
# largest matrix alone 34 MB) in layout KIND, or a Qwen3-MoE (moe_LAYOUT) or gpt-oss whose experts have
# as many, and runs it under a limit on private memory (RLIMIT_DATA
# counts heaps and private mappings that can be written). The limit is what the file's matrices take, as
# packed weights take no more than 2 % above that, and 24 MB for the process: its threads' stacks,
# plugins, keys and values, one window.
set -eu
davit=$1 dir=$2/private_memory_$3 kind=$3 layout=${3#moe_}
hidden=1024 feed=8192 vocab=64
private_kib=24000
rm -rf "$dir"
mkdir -p "$dir"
trap 'rm -rf "$dir"' EXIT
names=$dir/names
: >"$names"

# ---- safetensors ----

# bytes N OCTAL: N bytes alike
bytes() {
    head -c "$1" /dev/zero | tr '\000' "\\$2" >>"$dir/data"
}

# add NAME DTYPE SHAPE BYTES OCTAL: one tensor
at=0
add() {
    printf '%s"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' \
        "$([ $at = 0 ] || echo ,)" "$1" "$2" "$3" $at $((at + $4)) >>"$names"
    bytes "$4" "$5"
    at=$((at + $4))
}

# raw NAME DTYPE SHAPE BYTES: one tensor, whose bytes the caller appends
raw() {
    printf ',"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' "$1" "$2" "$3" $at $((at + $4)) >>"$names"
    at=$((at + $4))
}

# bitsandbytes' table of nf4, as float32
nf4_table() {
    for bits in 3212836864 3207739825 3204868912 3200922272 3197215309 3191682367 3183114353 0 \
        1034091263 1042598627 1048315101 1051525946 1054975160 1058015147 1060705203 1065353216; do
        u32 $bits
    done
}

# size NAME ROWS COLUMNS: the shape that packed tensors say, as two int64
size() {
    printf ',"%s":{"dtype":"I64","shape":[2],"data_offsets":[%d,%d]}' "$1" $at $((at + 16)) >>"$names"
    u64 "$2" >>"$dir/data"
    u64 "$3" >>"$dir/data"
    at=$((at + 16))
}

# matrix NAME ROWS COLUMNS: codes and scales of 2^-10 to 2^-4 or so
matrix() {
    n=$(($2 * $3))
    case $layout in
    fp8)
        add "$1.weight" F8_E4M3 "$2,$3" $n 030
        add "$1.weight_scale_inv" F32 "$(($2 / 128)),$(($3 / 128))" $((n / 4096)) 074 ;;
    mxfp8)
        add "$1.weight" F8_E4M3 "$2,$3" $n 030
        add "$1.weight_scale" U8 "$2,$(($3 / 32))" $((n / 32)) 170 ;;
    awq)
        add "$1.qweight" I32 "$3,$(($2 / 8))" $((n / 2)) 125
        add "$1.qzeros" I32 "$(($3 / 128)),$(($2 / 8))" $((n / 256)) 146
        add "$1.scales" F16 "$(($3 / 128)),$2" $((n / 64)) 044 ;;
    gptq)
        add "$1.qweight" I32 "$(($3 / 8)),$2" $((n / 2)) 125
        add "$1.qzeros" I32 "$(($3 / 128)),$(($2 / 8))" $((n / 256)) 167
        add "$1.scales" F16 "$(($3 / 128)),$2" $((n / 64)) 044 ;;
    ct_pack)
        add "$1.weight_packed" I32 "$2,$(($3 / 8))" $((n / 2)) 125
        add "$1.weight_scale" BF16 "$2,$(($3 / 128))" $((n / 64)) 074
        size "$1.weight_shape" "$2" "$3" ;;
    ct_int8)
        add "$1.weight" I8 "$2,$3" $n 005
        add "$1.weight_scale" BF16 "$2,1" $(($2 * 2)) 072 ;;
    ct_float)
        add "$1.weight" F8_E4M3 "$2,$3" $n 030
        add "$1.weight_scale" F32 "$2,1" $(($2 * 4)) 074 ;;
    ct_nvfp4)
        add "$1.weight_packed" U8 "$2,$(($3 / 2))" $((n / 2)) 042
        add "$1.weight_scale" F8_E4M3 "$2,$(($3 / 16))" $((n / 16)) 010
        add "$1.weight_global_scale" F32 1 4 076 ;;
    mxfp4)
        add "$1.weight_packed" U8 "$2,$(($3 / 2))" $((n / 2)) 042
        add "$1.weight_scale" U8 "$2,$(($3 / 32))" $((n / 32)) 170 ;;
    modelopt_int4)
        add "$1.weight" U8 "$(($2 / 2)),$3" $((n / 2)) 042
        add "$1.weight_scale" F32 "$2,$(($3 / 128))" $((n / 32)) 074
        add "$1.pre_quant_scale" F32 "$3" $(($3 * 4)) 077 ;;
    modelopt_nvfp4)
        add "$1.weight" U8 "$2,$(($3 / 2))" $((n / 2)) 042
        add "$1.weight_scale" F8_E4M3 "$2,$(($3 / 16))" $((n / 16)) 070
        add "$1.weight_scale_2" F32 "" 4 074 ;;
    bnb_int8)
        add "$1.weight" I8 "$2,$3" $n 005
        add "$1.SCB" F32 "$2" $(($2 * 4)) 076 ;;
    bnb_nf4)
        state="{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float32\", \"shape\": [$2, $3]}"
        add "$1.weight" U8 "$((n / 2)),1" $((n / 2)) 104
        add "$1.weight.absmax" F32 "$((n / 64))" $((n / 16)) 074
        raw "$1.weight.quant_map" F32 16 64
        nf4_table >>"$dir/data"
        raw "$1.weight.quant_state.bitsandbytes__nf4" U8 ${#state} ${#state}
        printf %s "$state" >>"$dir/data" ;;
    esac
}

ct() { # FORMAT BITS TYPE STRATEGY [GROUP]
    printf '{"quant_method":"compressed-tensors","format":"%s","quantization_status":"compressed",' "$1"
    printf '"version":"0.17.1","ignore":["lm_head"],"config_groups":{"group_0":{"targets":["Linear"],'
    printf '"weights":{"num_bits":%s,"type":"%s","symmetric":true,"strategy":"%s"%s}}}}' "$2" "$3" "$4" \
        "${5:+,\"group_size\":$5}"
}

settings() {
    case $layout in
    fp8) echo '{"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3","weight_block_size":[128,128]}' ;;
    awq) echo '{"quant_method":"awq","version":"gemm","bits":4,"group_size":128,"zero_point":true}' ;;
    gptq) echo '{"quant_method":"gptq","bits":4,"group_size":128,"sym":true,"desc_act":false}' ;;
    ct_pack) ct pack-quantized 4 int group 128 ;;
    ct_int8) ct int-quantized 8 int channel ;;
    ct_float) ct float-quantized 8 float channel ;;
    ct_nvfp4) ct nvfp4-pack-quantized 4 float tensor_group 16 ;;
    mxfp4) ct mxfp4-pack-quantized 4 float group 32 ;;
    mxfp8) ct mxfp8-quantized 8 float group 32 ;;
    modelopt_int4) echo '{"quant_method":"modelopt","quant_algo":"W4A16_AWQ","group_size":128}' ;;
    modelopt_nvfp4) echo '{"quant_method":"modelopt","quant_algo":"NVFP4","group_size":16}' ;;
    bnb_int8) echo '{"quant_method":"bitsandbytes","load_in_8bit":true}' ;;
    bnb_nf4) echo '{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4"}' ;;
    gpt_oss) echo '{"quant_method":"mxfp4"}' ;;
    esac
}

# u64 N, u32 N: little-endian
little() {
    i=0
    while [ $i -lt "$2" ]; do
        printf "\\$(printf %03o $(($1 >> 8 * i & 255)))"
        i=$((i + 1))
    done
}
u64() { little "$1" 8; }
u32() { little "$1" 4; }

# vector NAME N, plain NAME ROWS COLUMNS: BF16
vector() { add "$1" BF16 "$2" $(($2 * 2)) 074; }
plain() { add "$1" BF16 "$2,$3" $(($2 * $3 * 2)) 074; }

llama_layer() {
    for m in q_proj k_proj v_proj o_proj; do
        matrix $p.self_attn.$m $hidden $hidden
    done
    matrix $p.mlp.gate_proj $feed $hidden
    matrix $p.mlp.up_proj $feed $hidden
    matrix $p.mlp.down_proj $hidden $feed
}

experts=4

moe_layer() {
    for m in q_proj k_proj v_proj o_proj; do
        matrix $p.self_attn.$m $hidden $hidden
    done
    vector $p.self_attn.q_norm.weight $((hidden / 8))
    vector $p.self_attn.k_norm.weight $((hidden / 8))
    plain $p.mlp.gate.weight $experts $hidden
    for e in 0 1 2 3; do
        matrix $p.mlp.experts.$e.gate_proj $((feed / experts)) $hidden
        matrix $p.mlp.experts.$e.up_proj $((feed / experts)) $hidden
        matrix $p.mlp.experts.$e.down_proj $hidden $((feed / experts))
    done
}

# stacked NAME ROWS COLUMNS: all experts of a matrix in blocks of 32, with their bias
stacked() {
    add "$1_blocks" U8 "$experts,$2,$(($3 / 32)),16" $((experts * $2 * $3 / 2)) 042
    add "$1_scales" U8 "$experts,$2,$(($3 / 32))" $((experts * $2 * $3 / 32)) 170
    plain "$1_bias" $experts "$2"
}

gpt_oss_layer() {
    for m in q_proj k_proj v_proj o_proj; do
        plain $p.self_attn.$m.weight $hidden $hidden
        vector $p.self_attn.$m.bias $hidden
    done
    vector $p.self_attn.sinks 8
    plain $p.mlp.router.weight $experts $hidden
    vector $p.mlp.router.bias $experts
    stacked $p.mlp.experts.gate_up_proj $((feed / 2)) $hidden
    stacked $p.mlp.experts.down_proj $hidden $((feed / 4))
}

# what the settings of a family have besides
family() {
    case $kind in
    moe_*) echo '"architectures":["Qwen3MoeForCausalLM"],"model_type":"qwen3_moe","num_experts":4,'
        echo "\"num_experts_per_tok\":2,\"moe_intermediate_size\":$((feed / experts)),"
        echo '"decoder_sparse_step":1,"mlp_only_layers":[],"norm_topk_prob":true,"intermediate_size":8192,' ;;
    gpt_oss) echo '"architectures":["GptOssForCausalLM"],"model_type":"gpt_oss","num_local_experts":4,'
        echo "\"num_experts_per_tok\":2,\"intermediate_size\":$((feed / 4)),\"sliding_window\":128,"
        echo '"layer_types":["sliding_attention"],"swiglu_limit":7.0,"attention_bias":true,' ;;
    *) echo '"architectures":["LlamaForCausalLM"],"model_type":"llama","intermediate_size":8192,' ;;
    esac
}

write_safetensors() {
    plain model.embed_tokens.weight $vocab $hidden
    vector model.norm.weight $hidden
    p=model.layers.0
    vector $p.input_layernorm.weight $hidden
    vector $p.post_attention_layernorm.weight $hidden
    case $kind in
    moe_*) moe_layer ;;
    gpt_oss) gpt_oss_layer ;;
    *) llama_layer ;;
    esac
    {
        u64 $(($(wc -c <"$names") + 2))
        printf '{'
        cat "$names"
        printf '}'
        cat "$dir/data"
    } >"$dir/model.safetensors"
    cat >"$dir/config.json" <<END
{$(family)"hidden_size":$hidden,"head_dim":$((hidden / 8)),
 "num_hidden_layers":1,"num_attention_heads":8,"num_key_value_heads":8,
 "vocab_size":$vocab,"max_position_embeddings":512,"rms_norm_eps":1e-5,"rope_theta":10000.0,
 "hidden_act":"silu","tie_word_embeddings":true,"torch_dtype":"bfloat16",
 "quantization_config":$(settings)}
END
}

# ---- GGUF: every block of one byte, which is a small finite number wherever a float16 stands ----

text() {
    u64 ${#1}
    printf %s "$1"
}
key() { # NAME VALUE: a u32
    text "$1"
    u32 4
    u32 "$2"
}

# block ELEMENTS BYTES of a type's number
block_of() {
    case $1 in
    12) echo 256 144 ;; 14) echo 256 210 ;; 8) echo 32 34 ;; 20) echo 32 18 ;; 23) echo 256 136 ;;
    16) echo 256 66 ;; 19) echo 256 50 ;; 34) echo 256 54 ;; 35) echo 256 66 ;; 39) echo 32 17 ;;
    esac
}

n_tensors=0
tensor() { # NAME ROWS COLUMNS TYPE: to $names, its bytes to $dir/data
    set -- "$1" "$2" "$3" "$4" $([ "$4" = 0 ] && echo 1 4 || block_of "$4")
    {
        text "$1"
        if [ "$2" = 0 ]; then
            u32 1
            u64 "$3"
        else
            u32 2
            u64 "$3"
            u64 "$2"
        fi
        u32 "$4"
        u64 $at
    } >>"$names"
    n=$((($2 > 0 ? $2 : 1) * $3 / $5 * $6))
    bytes $n 044
    at=$(((at + n + 31) / 32 * 32))
    bytes $((at - $(wc -c <"$dir/data"))) 000
    n_tensors=$((n_tensors + 1))
}

write_gguf() { # TYPE
    tensor token_embd.weight $vocab $hidden "$1"
    tensor output_norm.weight 0 $hidden 0
    tensor blk.0.attn_norm.weight 0 $hidden 0
    tensor blk.0.ffn_norm.weight 0 $hidden 0
    for m in attn_q attn_k attn_v attn_output; do
        tensor blk.0.$m.weight $hidden $hidden "$1"
    done
    tensor blk.0.ffn_gate.weight $feed $hidden "$1"
    tensor blk.0.ffn_up.weight $feed $hidden "$1"
    tensor blk.0.ffn_down.weight $hidden $feed "$1"
    {
        printf GGUF
        u32 3
        u64 $n_tensors
        u64 10
        text general.architecture
        u32 8
        text llama
        key llama.context_length 512
        key llama.embedding_length $hidden
        key llama.block_count 1
        key llama.feed_forward_length $feed
        key llama.attention.head_count 8
        key llama.attention.head_count_kv 8
        key llama.rope.dimension_count $((hidden / 8))
        key llama.vocab_size $vocab
        text llama.attention.layer_norm_rms_epsilon
        u32 6
        u32 $((0x3727c5ac)) # 1e-5
        cat "$names"
    } >"$dir/head"
    n=$(wc -c <"$dir/head")
    {
        cat "$dir/head"
        head -c $(((32 - n % 32) % 32)) /dev/zero
        cat "$dir/data"
    } >"$dir/model.gguf"
}

model=$dir
case $kind in
gguf_*)
    model=$dir/model.gguf
    case $kind in
    *_q4_k) write_gguf 12 ;; *_q6_k) write_gguf 14 ;; *_q8_0) write_gguf 8 ;; *_iq4_nl) write_gguf 20 ;;
    *_iq4_xs) write_gguf 23 ;; *_iq2_xxs) write_gguf 16 ;; *_iq1_s) write_gguf 19 ;;
    *_tq1_0) write_gguf 34 ;; *_tq2_0) write_gguf 35 ;; *_mxfp4) write_gguf 39 ;;
    esac ;;
*) write_safetensors ;;
esac
stored_kib=$(($(wc -c <"$dir/data") * 102 / 100 / 1024))
rm -f "$dir/data" "$dir/head" "$names"

run() { # LIMIT_KIB FLAG...
    (
        ulimit -d "$1"
        shift
        "$davit" eval "$model" --ids 1,2,3 --logits "$dir/logits" --threads 2 "$@"
    )
}
run $((stored_kib + private_kib)) || {
    echo "$kind: more private memory than stored weights and $((private_kib / 1000)) MB, or it does not run"
    exit 1
}
# the limit does bite: float32 copies, of which the largest alone is past it, end as a failure (1)
status=0
run $((stored_kib + private_kib)) --dtype f32 >"$dir/log" 2>&1 || status=$?
if [ $status = 0 ]; then
    echo "the limit on private memory has no effect here"
    exit 77
fi
[ $status = 1 ] || {
    cat "$dir/log"
    exit 1
}
