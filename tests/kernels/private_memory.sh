#!/bin/sh
# No float copy of a quantised weight: a model runs with less private memory than one would take.
#   private_memory.sh DAVIT WORK_DIR fp8|awq
#
# Writes a two-layer Llama whose matrices hold one code each (59 MB of FP8, or 30 MB of AWQ; 235 MB
# as float32, the largest matrix alone 34 MB) and runs it under a limit on private memory
# (RLIMIT_DATA counts heaps and private mappings that can be written). The limit is what the packed
# weights take and 24 MB for the process: its threads' stacks, plugins, keys and values, one window.
set -eu
davit=$1 dir=$2/private_memory_$3 kind=$3
hidden=1024 feed=8192 vocab=64
private_kib=24000
rm -rf "$dir"
mkdir -p "$dir"
trap 'rm -rf "$dir"' EXIT
names=$dir/names
: >"$names"

# add NAME DTYPE SHAPE BYTES OCTAL: one tensor, all bytes alike
at=0
add() {
    printf '%s"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}' \
        "$([ $at = 0 ] || echo ,)" "$1" "$2" "$3" $at $((at + $4)) >>"$names"
    head -c "$4" /dev/zero | tr '\000' "\\$5" >>"$dir/data"
    at=$((at + $4))
}

# matrix NAME ROWS COLUMNS: FP8 codes of 0.0625 under a scale; AWQ codes 5, zeros 6
matrix() {
    if [ "$kind" = fp8 ]; then
        add "$1.weight" F8_E4M3 "$2,$3" $(($2 * $3)) 030
        add "$1.weight_scale_inv" F32 "$(($2 / 128)),$(($3 / 128))" $(($2 / 128 * ($3 / 128) * 4)) 074
    else
        add "$1.qweight" I32 "$3,$(($2 / 8))" $(($2 * $3 / 2)) 125
        add "$1.qzeros" I32 "$(($3 / 128)),$(($2 / 8))" $(($3 / 128 * $2 / 2)) 146
        add "$1.scales" F16 "$(($3 / 128)),$2" $(($3 / 128 * $2 * 2)) 044
    fi
}

add model.embed_tokens.weight BF16 "$vocab,$hidden" $((vocab * hidden * 2)) 074
add model.norm.weight BF16 "$hidden" $((hidden * 2)) 074
for l in 0 1; do
    p=model.layers.$l
    add $p.input_layernorm.weight BF16 "$hidden" $((hidden * 2)) 074
    add $p.post_attention_layernorm.weight BF16 "$hidden" $((hidden * 2)) 074
    for m in q_proj k_proj v_proj o_proj; do
        matrix $p.self_attn.$m $hidden $hidden
    done
    matrix $p.mlp.gate_proj $feed $hidden
    matrix $p.mlp.up_proj $feed $hidden
    matrix $p.mlp.down_proj $hidden $feed
done
n=$(($(wc -c <"$names") + 2))
{
    for shift in 0 8 16 24 32 40 48 56; do
        printf "\\$(printf %03o $((n >> shift & 255)))"
    done
    printf '{'
    cat "$names"
    printf '}'
    cat "$dir/data"
} >"$dir/model.safetensors"
rm "$dir/data" "$names"
if [ "$kind" = fp8 ]; then
    quant='{"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3","weight_block_size":[128,128]}'
    packed_kib=57000
else
    quant='{"quant_method":"awq","version":"gemm","bits":4,"group_size":128,"zero_point":true}'
    packed_kib=30000
fi
cat >"$dir/config.json" <<END
{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":$hidden,
 "intermediate_size":$feed,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":8,
 "vocab_size":$vocab,"max_position_embeddings":512,"rms_norm_eps":1e-5,"rope_theta":10000.0,
 "hidden_act":"silu","tie_word_embeddings":true,"torch_dtype":"bfloat16",
 "quantization_config":$quant}
END
run() { # under a limit of $1 KiB
    (
        ulimit -d "$1"
        "$davit" eval "$dir" --ids 1,2,3 --logits "$dir/logits" --threads 2
    )
}
run $((packed_kib + private_kib)) || {
    echo "$kind: more private memory than packed weights and $((private_kib / 1000)) MB"
    exit 1
}
# the limit does bite
if run $((packed_kib / 2)) >"$dir/log" 2>&1; then
    echo "the limit on private memory has no effect here"
    exit 77
fi
