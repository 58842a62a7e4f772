#!/usr/bin/env python3
"""Decode bandwidth of every quantised layout against davit's own Q4_K and Q8_0, in one run.

    python3 layouts.py --davit build/release/bin/davit --dir SCRATCH [--only fp8 awq] [--layers 22]
        [--llama-bench LLAMA/bin/llama-bench]

Writes one random 1.1 B Llama after another (make_random_llama.py's shape; safetensors with a
vocabulary of 2048 and a tied bfloat16 head), measures it in turns with the GGUF of Q4_K (layouts of
up to 6 bits) or Q8_0 (the others), and deletes it: SCRATCH needs 2.9 GB at most. A figure is stored
bytes of matrices per second of decode, median of --turns; ratio = the layout's over Q4_K's or
Q8_0's in the same turns. Goal: 0.75 for the safetensors layouts. With --llama-bench a type of GGUF
also takes turns with `llama-bench -p 0 -n TOKENS` on the same file (no sampling, no text); goal 0.7
of its tokens per second. load/load_layouts.py measures how long each layout takes to load.

Run it on a quiet machine and put the table into SPEED.md with date, machine, load and command.
Needs numpy and gguf (PyPI; made with gguf 0.19.0). --json FILE keeps all samples.
"""
import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
from pathlib import Path

import numpy as np

import make_random_llama as rl

VOCAB = 2048
GROUP = 128
IDS = "1 300 307 314 321 328"
DTYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}


# ---- what a matrix of N x K is stored as: name -> (dtype, shape, bytes) ----

def scales(noise, dtype, shape, around):
    n = int(np.prod(shape))
    s = noise.rng.uniform(0.5, 1.5, n).astype(np.float32) * np.float32(around)
    if dtype == "BF16":
        return dtype, shape, (s.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return dtype, shape, s.astype(DTYPES[dtype]).tobytes()


def codes(noise, dtype, shape):
    size = {"I32": 4}.get(dtype, 1)
    return dtype, shape, noise.bytes(int(np.prod(shape)) * size).tobytes()


def alike(dtype, shape, byte, size):
    return dtype, shape, bytes([byte]) * (int(np.prod(shape)) * size)


def awq(noise, n, k):
    return {"qweight": codes(noise, "I32", (k, n // 8)),
            "qzeros": codes(noise, "I32", (k // GROUP, n // 8)),
            "scales": scales(noise, "F16", (k // GROUP, n), 0.003)}


def gptq(bits):
    zero = 0x77 if bits == 4 else 0x7f  # the middle, less one

    def make(noise, n, k):
        per = 32 // bits
        index = (np.arange(k) // GROUP).astype(np.int32)
        return {"qweight": codes(noise, "I32", (k // per, n)),
                "qzeros": alike("I32", (k // GROUP, n // per), zero, 4),
                "scales": scales(noise, "F16", (k // GROUP, n), 0.05 / 2 ** bits),
                "g_idx": ("I32", (k,), index.tobytes())}
    return make


def packed(bits, group):
    def make(noise, n, k):
        return {"weight_packed": codes(noise, "I32", (n, k * bits // 32)),
                "weight_scale": scales(noise, "BF16", (n, k // (group or k)), 0.05 / 2 ** bits),
                "weight_shape": ("I64", (2,), np.array([n, k], np.int64).tobytes())}
    return make


def fp8(noise, n, k):
    raw = noise.bytes(n * k) & 0xB7  # exponents up to 6: no NaN
    blocks = (-(-n // 128), -(-k // 128))
    return {"weight": ("F8_E4M3", (n, k), raw.tobytes()),
            "weight_scale_inv": scales(noise, "F32", blocks, 0.02)}


def mxfp4(noise, n, k):
    exponents = 119 + (noise.bytes(n * k // 32) & 3)
    return {"weight_packed": codes(noise, "U8", (n, k // 2)),
            "weight_scale": ("U8", (n, k // 32), exponents.tobytes())}


def nvfp4(noise, n, k):
    small = 0x30 + (noise.bytes(n * k // 16) & 0xF)
    return {"weight_packed": codes(noise, "U8", (n, k // 2)),
            "weight_scale": ("F8_E4M3", (n, k // 16), small.tobytes()),
            "weight_global_scale": ("F32", (1,), np.float32(100).tobytes())}


def ct(fmt, bits, kind, strategy, group=None):
    weights = {"num_bits": bits, "type": kind, "symmetric": True, "strategy": strategy}
    if group:
        weights["group_size"] = group
    return {"quant_method": "compressed-tensors", "format": fmt, "quantization_status": "compressed",
            "version": "0.17.1", "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def gptq_config(bits):
    return {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "sym": True,
            "desc_act": False, "checkpoint_format": "gptq"}


LAYOUTS = {  # name: (matrix, config, bits that choose what it is held against)
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True,
                  "version": "gemm", "modules_to_not_convert": None}, 4),
    "gptq4": (gptq(4), gptq_config(4), 4),
    "gptq8": (gptq(8), gptq_config(8), 8),
    "fp8": (fp8, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                  "weight_block_size": [128, 128]}, 8),
    "mxfp4": (mxfp4, ct("mxfp4-pack-quantized", 4, "float", "group", 32), 4),
    "nvfp4": (nvfp4, ct("nvfp4-pack-quantized", 4, "float", "tensor_group", 16), 4),
    "w4a16": (packed(4, GROUP), ct("pack-quantized", 4, "int", "group", GROUP), 4),
    "w8a16": (packed(8, None), ct("pack-quantized", 8, "int", "channel"), 8),
}
GGUF = {"Q4_0": 4, "Q4_1": 4, "Q5_0": 4, "Q5_1": 4, "Q2_K": 4, "Q3_K": 4, "Q5_K": 4, "Q6_K": 4,
        "IQ1_S": 4, "IQ1_M": 4, "IQ2_XXS": 4, "IQ2_XS": 4, "IQ2_S": 4, "IQ3_XXS": 4, "IQ3_S": 4,
        "IQ4_NL": 4, "IQ4_XS": 4, "TQ1_0": 4, "TQ2_0": 4, "MXFP4": 4, "NVFP4": 4, "Q1_0": 4}


# ---- files ----

def tensors(matrix, noise, layers):
    """(name, dtype, shape, bytes), one at a time."""
    bf16 = noise.blocks(rl.Q.BF16, VOCAB * rl.HIDDEN).tobytes()
    ones = struct.pack("<H", 0x3F80) * rl.HIDDEN
    yield "model.embed_tokens.weight", "BF16", (VOCAB, rl.HIDDEN), bf16
    yield "model.norm.weight", "BF16", (rl.HIDDEN,), ones
    heads, kv = rl.HEADS * rl.HEAD, rl.KV_HEADS * rl.HEAD
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", "BF16", (rl.HIDDEN,), ones
        yield at + "post_attention_layernorm.weight", "BF16", (rl.HIDDEN,), ones
        for name, n, k in (("self_attn.q_proj", heads, rl.HIDDEN), ("self_attn.k_proj", kv, rl.HIDDEN),
                           ("self_attn.v_proj", kv, rl.HIDDEN), ("self_attn.o_proj", rl.HIDDEN, heads),
                           ("mlp.gate_proj", rl.FEED, rl.HIDDEN), ("mlp.up_proj", rl.FEED, rl.HIDDEN),
                           ("mlp.down_proj", rl.HIDDEN, rl.FEED)):
            for part, (dtype, shape, data) in matrix(noise, n, k).items():
                yield f"{at}{name}.{part}", dtype, shape, data


def write_safetensors(path, matrix, layers):
    """Bodies first, with room for the header, so that no model is held in memory."""
    room = 1 << 20
    header, at = {}, 0
    with open(path, "wb") as f:
        f.seek(8 + room)
        for name, dtype, shape, data in tensors(matrix, rl.Noise(1), layers):
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
            f.write(data)
            at += len(data)
        f.seek(0)
        f.write(struct.pack("<Q", room) + json.dumps(header).encode().ljust(room))
    return at


def write_folder(path, name, layers):
    matrix, quant, _ = LAYOUTS[name]
    path.mkdir(parents=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": rl.HIDDEN,
              "intermediate_size": rl.FEED, "num_hidden_layers": layers, "vocab_size": VOCAB,
              "num_attention_heads": rl.HEADS, "num_key_value_heads": rl.KV_HEADS,
              "head_dim": rl.HEAD, "max_position_embeddings": rl.CONTEXT, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
              "torch_dtype": "bfloat16", "quantization_config": quant}
    (path / "config.json").write_text(json.dumps(config))
    return write_safetensors(path / "model.safetensors", matrix, layers)


def write_gguf(path, kind, layers):
    """Returns: stored bytes of what a token reads (not the embedding's rows)."""
    rl.FILE_TYPES.setdefault(kind, rl.gguf.LlamaFileType.MOSTLY_Q4_K_S)  # a label, not read
    rl.write_model(path, kind, layers, 1)
    block, size = rl.gguf.GGML_QUANT_SIZES[rl.Q[kind]]
    return sum(rows * columns // block * size for name, _, rows, columns in rl.tensors(layers)
               if name != "token_embd.weight")


# ---- measuring ----

def decode(args, model):
    """Seconds per token."""
    out = subprocess.run([args.davit, "run", model, "--ids", IDS, "-n", str(args.tokens), "--json",
                          "--ignore-eos", "-q", "--threads", str(args.threads)], check=False,
                         stdout=subprocess.PIPE)
    doc = json.loads(out.stdout)
    if not doc["ok"]:
        raise SystemExit(f"{model}: {json.dumps(doc['records'])[:2000]}")
    return doc["timings"]["decode_s"] / doc["timings"]["decode_tokens"]


def llama_decode(args, model):
    """Tokens per second of llama.cpp; None = it does not read this type."""
    out = subprocess.run([args.llama_bench, "-m", model, "-t", str(args.threads), "-p", "0", "-n",
                          str(args.tokens), "-r", "1", "-o", "json"], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return None if out.returncode else json.loads(out.stdout)[0]["avg_ts"]


def measure(args, label, model, n_bytes, against, results):
    rates, theirs = {label: [], against[0]: []}, []
    rival = args.llama_bench and label in {**GGUF, "Q4_K": 4, "Q8_0": 8}
    for _ in range(args.turns):
        for name, path, size in dict.fromkeys(((label, model, n_bytes), against)):
            rates[name].append(size / decode(args, path) / 1e9)
        if rival:
            theirs.append(llama_decode(args, model))
            rival = theirs[-1] is not None
    mine, other = statistics.median(rates[label]), statistics.median(rates[against[0]])
    peer = "-" if not theirs else "not read" if not rival else (
        f"{statistics.median(theirs) * n_bytes / 1e9:.2f} | "
        f"{mine / (statistics.median(theirs) * n_bytes / 1e9):.2f}")
    print(f"| {label} | {n_bytes / 1e6:.0f} | {mine:.2f} | {against[0]} {other:.2f} | "
          f"{mine / other:.2f} | {peer}{'' if rival else ' | -'} |", flush=True)
    results.append({"layout": label, "bytes": n_bytes, "GB/s": rates[label],
                    "against": against[0], "against GB/s": rates[against[0]],
                    "llama.cpp tokens/s": theirs})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--davit", required=True)
    parser.add_argument("--dir", required=True, type=Path, help="scratch folder; files are deleted")
    parser.add_argument("--only", nargs="+", choices=[*LAYOUTS, *GGUF, "Q4_K", "Q8_0"])
    parser.add_argument("--llama-bench", help="llama.cpp's program, to take turns with")
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)

    ours, results = {}, []
    for kind, bits in (("Q4_K", 4), ("Q8_0", 8)):
        path = args.dir / f"{kind}.gguf"
        ours[bits] = (kind, str(path), write_gguf(path, kind, args.layers))
    print(f"load {os.getloadavg()[0]:.1f}, {args.threads} threads, {args.layers} layers, "
          f"{args.turns} turns of {args.tokens} tokens\n")
    print("| layout | stored MB | GB/s | against, GB/s | ratio | llama.cpp, GB/s | ratio |\n"
          "|---|---|---|---|---|---|---|")
    for name in args.only or [*LAYOUTS, *GGUF, *(("Q4_K", "Q8_0") if args.llama_bench else ())]:
        path = args.dir / name
        if name in ("Q4_K", "Q8_0"):
            mine = next(o for o in ours.values() if o[0] == name)
            measure(args, name, mine[1], mine[2], mine, results)
            continue
        if name in LAYOUTS:
            n_bytes, bits = write_folder(path, name, args.layers), LAYOUTS[name][2]
        else:
            path = path.with_suffix(".gguf")
            n_bytes, bits = write_gguf(path, name, args.layers), GGUF[name]
        measure(args, name, str(path), n_bytes, ours[bits], results)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _, path, _ in ours.values():
        Path(path).unlink()
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
