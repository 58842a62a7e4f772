#!/usr/bin/env python3
"""Write a sharded bf16 Llama directory with random weights, as input of load measurements.

    python3 make_sharded_llama.py OUT_DIR [--layers 22] [--shards 4]

The shape is that of ../make_random_llama.py: hidden 2048, feed-forward 5632, 32 heads, 4
key/value heads of 64, 32000 tokens; 22 layers are 2.2 GB. The answer is nonsense, but every
byte is read and multiplied as in a real checkpoint. No tokenizer is written: ask with ids.
Standard library only; the same arguments give the same bytes.
"""
import argparse
import json
import random
import struct
import sys
from pathlib import Path

HIDDEN, FEED, HEADS, KV_HEADS, HEAD, VOCAB = 2048, 5632, 32, 4, 64, 32000
POOL = 1 << 22  # bf16 values drawn once; every tensor takes them from another start


def tensors(layers):
    """(name, shape) of every tensor, in the order a forward uses them."""
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN)
        yield at + "self_attn.k_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "self_attn.v_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        yield at + "mlp.gate_proj.weight", (FEED, HIDDEN)
        yield at + "mlp.up_proj.weight", (FEED, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, FEED)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCAB, HIDDEN)


def size(shape):
    n = 2
    for extent in shape:
        n *= extent
    return n


def pool(rng):
    """Bytes of POOL bf16 values, roughly normal with deviation 0.02: the top halves of float32."""
    out = bytearray()
    for _ in range(1 << 12):
        out += struct.pack("<f", rng.gauss(0.0, 0.02))[2:]
    pieces = [bytes(out[i:i + 64]) for i in range(0, len(out), 64)]
    return b"".join(rng.choice(pieces) for _ in range(POOL * 2 // 64))


def write_shard(path, members, noise, rng):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in members:
        end = at + size(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in members:
            left = size(shape)
            if len(shape) == 1:  # norms: ones
                f.write(b"\x80\x3f" * shape[0])
                continue
            start = rng.randrange(POOL) * 2
            while left:
                part = noise[start:start + left]
                f.write(part)
                left, start = left - len(part), 0
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--shards", type=int, default=4)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    noise = pool(rng)
    every = list(tensors(args.layers))
    target = sum(size(shape) for _, shape in every) / args.shards
    groups, filled = [[]], 0
    for name, shape in every:
        if filled >= target * len(groups) and len(groups) < args.shards:
            groups.append([])
        groups[-1].append((name, shape))
        filled += size(shape)
    total, index = 0, {}
    for i, members in enumerate(groups, 1):
        name = f"model-{i:05d}-of-{len(groups):05d}.safetensors"
        total += write_shard(args.out / name, members, noise, rng)
        index.update((tensor, name) for tensor, _ in members)
        print(f"{name}: {len(members)} tensors", file=sys.stderr)
    (args.out / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1) + "\n")
    (args.out / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "hidden_size": HIDDEN, "intermediate_size": FEED, "num_hidden_layers": args.layers,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD,
        "vocab_size": VOCAB, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2}, indent=1) + "\n")


if __name__ == "__main__":
    main()
