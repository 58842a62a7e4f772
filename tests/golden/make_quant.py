#!/usr/bin/env python3
"""Make tests/golden/quant: tiny checkpoints in every quantised layout that davit reads.

Each folder is a one-layer Llama (or Qwen3-MoE) whose matrices are *random codes* with random
scales and zeros, packed as the layout's writer packs them. The float32 weights come from the
codes before packing, so that a wrong nibble order, zero or scale shows. golden.json holds the
CRC-32 of each dequantised weight (float32, little-endian, -0 as it is) and the logits that
transformers computes in float32 with those weights.

check_quant.py holds the packed tensors against the packages that own the layout, and says which.
Packages as in README.md beside this script, compressed-tensors==0.20.1, and bitsandbytes==0.50.2
where it is there. The same bytes come out of every run.
"""
import argparse
import json
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import check_quant
import quant_bnb as qb
import torch
from quant_bits import (E2M1, F8_CODES, bf16, bits_words, e4m3, e8m0, nibbles, padded_words, planar3,
                        scale_of, write_safetensors)
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
H, I, V, NH, NKV, E = 64, 96, 64, 4, 2, 4
IDS = [[3, 17, 42, 5, 60, 1, 9], [7]]

torch.set_num_threads(1)
torch.set_grad_enabled(False)


# ---- layouts: (rng, N, K) -> {suffix: (dtype, array)}, float32 [N, K] ----

def spread(rng, shape, std):
    return (std * rng.uniform(0.5, 1.5, shape)).astype(np.float32)


def grid_values(codes, s, bn, bk):
    n, k = codes.shape
    return e4m3(codes) * s[np.arange(n)[:, None] // bn, np.arange(k)[None] // bk]


def fp8(bn=0, bk=0, dtype="F32", name="weight_scale_inv", shape=None, act=False):
    def make(rng, n, k):
        rows, cols = bn or n, bk or k
        raw, s = scale_of(spread(rng, (-(-n // rows), -(-k // cols)), 0.02), dtype)
        codes = rng.choice(F8_CODES, (n, k))
        values = grid_values(codes, s, rows, cols)
        if shape is not None:
            raw = raw.reshape(shape(*raw.shape))
        out = {"weight": ("F8_E4M3", codes), name: (dtype, raw)}
        if act:
            out["input_scale"] = ("F32", np.float32(0.03).reshape(()))
        return out, values
    return make


def gptq(bits=4, group=32, sym=True, v2=False, order=False, g_idx=True, planar=False):
    def make(rng, n, k):
        g = k if group < 0 else group
        ng = -(-k // g)
        q = rng.integers(0, 2 ** bits, (k, n), dtype=np.uint8)
        z = (np.full((ng, n), 2 ** (bits - 1), np.int64) if sym
             else rng.integers(0, 2 ** bits, (ng, n)))
        idx = np.arange(k) // g
        if order:
            idx = rng.permutation(idx)
        s = spread(rng, (ng, n), 0.6 / 2 ** bits).astype(np.float16)
        values = ((q - z[idx]).astype(np.float32) * s[idx].astype(np.float32)).T
        stored = (z - (0 if v2 else 1)) % 2 ** bits
        if planar:
            w = np.concatenate([planar3(q[i:i + 32].T).T for i in range(0, k, 32)])
            zw = np.concatenate([planar3(stored[:, i:i + 32]) for i in range(0, n, 32)], 1)
        else:
            w, zw = bits_words(q.T, bits).T, bits_words(stored, bits)
        out = {"qweight": ("I32", w), "qzeros": ("I32", zw), "scales": ("F16", s)}
        if g_idx:
            out["g_idx"] = ("I32", idx.astype(np.uint32))
        return out, values
    return make


def awq(group=32, gemv=False):
    def make(rng, n, k):
        g = k if group < 0 else group
        ng = k // g
        q = rng.integers(0, 16, (n, k), dtype=np.uint8)
        z = rng.integers(0, 16, (n, ng), dtype=np.uint8)
        s = spread(rng, (n, ng), 0.04).astype(np.float16)
        idx = np.arange(k) // g
        values = (q.astype(np.int64) - z[:, idx]).astype(np.float32) * s[:, idx].astype(np.float32)
        if gemv:
            m = 1 if g >= 128 else 2 if g == 64 else 4
            zw = -(-(-(-ng // 8)) // m) * m
            zp, sp = np.zeros((n, zw * 8), np.uint8), np.zeros((n, zw * 8), np.float16)
            zp[:, :ng], sp[:, :ng] = z, s
            return {"qweight": ("I32", bits_words(q, 4)), "qzeros": ("I32", bits_words(zp, 4)),
                    "scales": ("F16", sp)}, values
        order = np.array([0, 2, 4, 6, 1, 3, 5, 7])

        def pack(x):  # [lines, n]
            return bits_words(x.reshape(x.shape[0], -1, 8)[..., order].reshape(x.shape), 4)
        return {"qweight": ("I32", pack(q.T)), "qzeros": ("I32", pack(z.T)),
                "scales": ("F16", np.ascontiguousarray(s.T))}, values
    return make


def ct_pack(bits=4, group=32, asym=False, padded=False, order=False, dtype="BF16"):
    def make(rng, n, k):
        g = k if group < 0 else group
        ng = k // g
        pack = padded_words if padded else bits_words
        u = rng.integers(0, 2 ** bits, (n, k), dtype=np.uint8)
        z = (rng.integers(0, 2 ** bits, (n, ng), dtype=np.uint8) if asym
             else np.full((n, ng), 2 ** (bits - 1), np.uint8))
        raw, s = scale_of(spread(rng, (n, ng), 0.6 / 2 ** bits), dtype)
        idx = np.arange(k) // g
        if order:
            idx = rng.permutation(idx)
        values = (u.astype(np.int64) - z[:, idx]).astype(np.float32) * s[:, idx]
        out = {"weight_packed": ("I32", pack(u, bits)), "weight_scale": (dtype, raw),
               "weight_shape": ("I64", np.array([n, k], np.int64))}
        if asym:
            out["weight_zero_point"] = ("I32", pack(z.T, bits).T)
        if order:
            out["weight_g_idx"] = ("I32", idx.astype(np.uint32))
        return out, values
    return make


def int8(asym=False, dtype="BF16", shape=None, tensor=False):
    def make(rng, n, k):
        q = rng.integers(-128, 128, (n, k)).astype(np.int8)
        z = rng.integers(-20, 20, (n, 1)).astype(np.int8) if asym else np.zeros((n, 1), np.int8)
        raw, s = scale_of(spread(rng, (1, 1) if tensor else (n, 1), 0.002), dtype)
        values = (q.astype(np.int64) - z).astype(np.float32) * s
        out = {"weight": ("I8", q), "weight_scale": (dtype, raw.reshape(shape(n)) if shape else raw)}
        if asym:
            out["weight_zero_point"] = ("I8", z)
        return out, values
    return make


def nvfp4(ct):
    def make(rng, n, k):
        codes = rng.integers(0, 16, (n, k), dtype=np.uint8)
        sc = rng.integers(0x30, 0x48, (n, k // 16), dtype=np.uint8)
        g = np.float32(0.0123)
        factor = np.float32(1) / g if ct else g
        block = e4m3(sc) / factor if ct else e4m3(sc) * factor
        values = E2M1[codes] * block.astype(np.float32)[:, np.arange(k) // 16]
        if ct:
            return {"weight_packed": ("U8", nibbles(codes)), "weight_scale": ("F8_E4M3", sc),
                    "weight_global_scale": ("F32", factor.reshape(1)),
                    "input_global_scale": ("F32", np.float32(40).reshape(1))}, values
        return {"weight": ("U8", nibbles(codes)), "weight_scale": ("F8_E4M3", sc),
                "weight_scale_2": ("F32", factor.reshape(())),
                "input_scale": ("F32", np.float32(0.01).reshape(()))}, values
    return make


def mxfp4(weight, scale, wtype="U8", stype="U8"):
    def make(rng, n, k):
        codes = rng.integers(0, 16, (n, k), dtype=np.uint8)
        sc = rng.integers(119, 124, (n, k // 32), dtype=np.uint8)
        values = E2M1[codes] * e8m0(sc)[:, np.arange(k) // 32]
        return {weight: (wtype, nibbles(codes)), scale: (stype, sc)}, values
    return make


def modelopt_int4(group=32):
    def make(rng, n, k):
        q = rng.integers(-8, 8, (n, k))
        s = spread(rng, (n, k // group), 0.04)
        values = q.astype(np.float32) * s[:, np.arange(k) // group]
        u = (q & 15).astype(np.uint8)
        return {"weight": ("U8", u[0::2] | u[1::2] << 4), "weight_scale": ("F32", s)}, values
    return make


def with_column_scale(quantise):
    """ModelOpt's pre_quant_scale: a factor of the activations."""
    def make(rng, n, k):
        parts, values = quantise(rng, n, k)
        raw, p = bf16(rng.uniform(0.5, 2, k))
        return {**parts, "pre_quant_scale": ("BF16", raw)}, values * p
    return make


# ---- configurations ----

def ct_config(fmt, bits, kind, strategy, group=None, symmetric=True, version="0.17.1", **more):
    weights = {"num_bits": bits, "type": kind, "symmetric": symmetric, "strategy": strategy, **more}
    if group:
        weights["group_size"] = group
    return {"quant_method": "compressed-tensors", "format": fmt, "quantization_status": "compressed",
            "version": version, "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def gptq_config(bits, group=32, sym=True, desc_act=False, fmt="gptq"):
    return {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym,
            "desc_act": desc_act, "checkpoint_format": fmt}


def awq_config(version="gemm", group=32):
    return {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True,
            "version": version, "modules_to_not_convert": None}


def fp8_config(block=None, **more):
    c = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", **more}
    if block:
        c["weight_block_size"] = block
    return c


def modelopt_config(algo, group=None):
    q = {"quant_algo": algo, "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}
    if group:
        q["group_size"] = group
    return {"producer": {"name": "modelopt", "version": "0.29.0"}, "quantization": q}


HFQ = "hf_quant_config.json"
VARIANTS = {
    "fp8_block": (fp8(48, 40), fp8_config([48, 40])),
    "fp8_block_bf16": (fp8(128, 128, "BF16"), fp8_config([128, 128])),
    "fp8_block_e8m0": (fp8(32, 32, "F8_E8M0"), fp8_config([32, 32], scale_fmt="ue8m0")),
    "fp8_tensor_static": (fp8(name="weight_scale", shape=lambda *s: (), act=True),
                          fp8_config(activation_scheme="static")),
    "fp8_channel": (fp8(1, 0, name="weight_scale", dtype="BF16"),
                    ct_config("float-quantized", 8, "float", "channel")),
    "fp8_fbgemm": (fp8(1, 0, name="weight_scale"), {"quant_method": "fbgemm_fp8",
                                                    "activation_scale_ub": 1200.0}),
    "fp8_pb_wo": (fp8(128, 128, name="weight_scale", shape=lambda r, c: (r, 1, c, 1)),
                  modelopt_config("FP8_PB_WO")),
    "mxfp8": (fp8(1, 32, "U8", "weight_scale"),
              ct_config("mxfp8-quantized", 8, "float", "group", 32)),
    "gptq_2bit": (gptq(2), gptq_config(2)),
    "gptq_3bit": (gptq(3), gptq_config(3)),
    "gptq_4bit": (gptq(4), gptq_config(4)),
    "gptq_8bit": (gptq(8), gptq_config(8)),
    "gptq_asym": (gptq(4, sym=False), gptq_config(4, sym=False)),
    "gptq_v2": (gptq(4, sym=False, v2=True), gptq_config(4, sym=False, fmt="gptq_v2")),
    "gptq_act_order": (gptq(4, sym=False, order=True), gptq_config(4, sym=False, desc_act=True)),
    "gptq_no_g_idx": (gptq(4, g_idx=False), gptq_config(4)),
    "gptq_row": (gptq(4, group=-1), gptq_config(4, group=-1)),
    "gptq_planar": (gptq(3, planar=True, v2=True), gptq_config(3, fmt="gptq_p")),
    "awq_gemm": (awq(), awq_config()),
    "awq_row": (awq(-1), awq_config(group=-1)),
    "awq_gemv": (awq(gemv=True), awq_config("gemv")),
    "ct_w4": (ct_pack(4), ct_config("pack-quantized", 4, "int", "group", 32)),
    "ct_w4_asym": (ct_pack(4, asym=True), ct_config("pack-quantized", 4, "int", "group", 32, False)),
    "ct_w3": (ct_pack(3), ct_config("pack-quantized", 3, "int", "group", 32)),
    "ct_w3_padded": (ct_pack(3, padded=True),
                     ct_config("pack-quantized", 3, "int", "group", 32, version="0.13.0")),
    "ct_w5_asym": (ct_pack(5, asym=True), ct_config("pack-quantized", 5, "int", "group", 32, False)),
    "ct_w2": (ct_pack(2), ct_config("pack-quantized", 2, "int", "group", 32)),
    "ct_w8_channel": (ct_pack(8, group=-1), ct_config("pack-quantized", 8, "int", "channel")),
    "ct_act_order": (ct_pack(4, order=True),
                     ct_config("pack-quantized", 4, "int", "group", 32, actorder="group")),
    "ct_int8": (int8(), ct_config("int-quantized", 8, "int", "channel")),
    "ct_int8_asym": (int8(asym=True), ct_config("int-quantized", 8, "int", "channel", None, False)),
    "ct_nvfp4": (nvfp4(True), ct_config("nvfp4-pack-quantized", 4, "float", "tensor_group", 16)),
    "ct_mxfp4": (mxfp4("weight_packed", "weight_scale"),
                 ct_config("mxfp4-pack-quantized", 4, "float", "group", 32)),
    "modelopt_nvfp4": (nvfp4(False), modelopt_config("NVFP4", 16)),
    "modelopt_int4": (modelopt_int4(), modelopt_config("W4A16_AWQ", 32)),
    "modelopt_nvfp4_awq": (with_column_scale(nvfp4(False)), modelopt_config("NVFP4_AWQ", 16)),
    "modelopt_int4_awq": (with_column_scale(modelopt_int4()), modelopt_config("W4A16_AWQ", 32)),
    "modelopt_w8a16": (int8(dtype="F32", shape=lambda n: (n,)), modelopt_config("W8A16")),
    "deepseek_fp4": (mxfp4("weight", "scale", "I8", "F8_E8M0"), fp8_config([128, 128])),
    "bnb_nf4": (qb.bnb4(), qb.bnb_config("nf4")),
    "bnb_nf4_double": (qb.bnb4(block=32, nested=True), qb.bnb_config("nf4")),
    "bnb_fp4": (qb.bnb4("fp4", 128), qb.bnb_config("fp4")),
    "bnb_int8": (qb.bnb8, qb.bnb_config("int8")),
    "moe_fp8": (fp8(32, 32), fp8_config([32, 32])),
    "moe_gptq": (gptq(4), gptq_config(4)),
    "moe_awq": (awq(), awq_config()),
    "moe_mxfp4": (mxfp4("weight_packed", "weight_scale"),
                  ct_config("mxfp4-pack-quantized", 4, "float", "group", 32)),
}


# ---- models ----

def config_of(name):
    base = {"hidden_size": H, "intermediate_size": I, "num_hidden_layers": 1,
            "num_attention_heads": NH, "num_key_value_heads": NKV, "vocab_size": V,
            "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "tie_word_embeddings": name.endswith("_tied"), "bos_token_id": 1, "eos_token_id": 2,
            "head_dim": H // NH, "hidden_act": "silu", "torch_dtype": "bfloat16"}
    if name.startswith("moe_"):
        return {**base, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
                "num_experts": E, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True}
    return {**base, "architectures": ["LlamaForCausalLM"], "model_type": "llama"}


def shapes_of(name):
    """Modules of the layer: (name, N, K) of matrices, (name, n) of vectors."""
    q = [("self_attn.q_proj", H, H), ("self_attn.k_proj", H // 2, H),
         ("self_attn.v_proj", H // 2, H), ("self_attn.o_proj", H, H)]
    norms = ["input_layernorm", "post_attention_layernorm"]
    if not name.startswith("moe_"):
        return q + [("mlp.gate_proj", I, H), ("mlp.up_proj", I, H), ("mlp.down_proj", H, I)], norms, []
    mats = []
    for e in range(E):
        mats += [(f"mlp.experts.{e}.gate_proj", 32, H), (f"mlp.experts.{e}.up_proj", 32, H),
                 (f"mlp.experts.{e}.down_proj", H, 32)]
    return q + mats, norms, [("self_attn.q_norm", H // NH), ("self_attn.k_norm", H // NH)]


def variant(name):
    """-> layout of each module (None = plain), configuration."""
    if name in VARIANTS:
        quantise, quant_config = VARIANTS[name]
        return lambda m: quantise if m.startswith("model.layers.") else None, quant_config
    import quant_mixed
    return quant_mixed.MIXED[name]


def settings_of(quant_config, module):
    """The configuration as if it had the group of @module alone."""
    for group in quant_config.get("config_groups", {}).values():
        for t in group["targets"]:
            hit = re.match(t[3:], module) if t.startswith("re:") else (
                t == module or t == "Embedding" and "embed" in module)
            if hit:
                return {**quant_config, "config_groups": {"group_0": group}}
    return quant_config


def dense(rng, shape, mean=0.0, std=1.0):
    return bf16((mean + std * rng.standard_normal(shape)).astype(np.float32))


def make(name, out):
    """KV: with scales of keys and values, the first pair whose roundings are not close to call."""
    import quant_kv
    for scales in KV_SCALES.get(name, [None]):
        try:
            return make_with(name, out, scales)
        except quant_kv.TooClose:
            shutil.rmtree(out)
    raise SystemExit(f"{name}: no scales left")


def make_with(name, out, kv_scales):
    pick, quant_config = variant(name)
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    stored, values, crcs, agreed = {}, {}, {}, set()
    config = config_of(name)

    def put(key, pair):
        stored[key] = ("BF16", pair[0])
        values[key] = pair[1]

    def put_matrix(m, n, k, std):
        quantise = pick(m)
        if not quantise:
            put(f"{m}.weight", dense(rng, (n, k), std=std))
            return
        parts, w = quantise(rng, n, k)
        w = np.ascontiguousarray(w, np.float32)
        agreed.add(check_quant.check(name, settings_of(quant_config, m), parts, w))
        for suffix, part in parts.items():
            stored[f"{m}.{suffix}"] = part
        values[f"{m}.weight"] = w
        crcs[m] = f"{zlib.crc32(w.tobytes()):08x}"

    put_matrix("model.embed_tokens", V, H, 0.5)
    if config["tie_word_embeddings"]:
        values["lm_head.weight"] = values["model.embed_tokens.weight"]
    else:
        put_matrix("lm_head", V, H, 0.3)
    put("model.norm.weight", dense(rng, H, 1.0, 0.2))
    mats, norms, small = shapes_of(name)
    for m in norms:
        put(f"model.layers.0.{m}.weight", dense(rng, H, 1.0, 0.2))
    for m, n in small:
        put(f"model.layers.0.{m}.weight", dense(rng, n, 1.0, 0.2))
    if name.startswith("moe_"):
        put("model.layers.0.mlp.gate.weight", dense(rng, (E, H), std=0.5))
    for m, n, k in mats:
        put_matrix(f"model.layers.0.{m}", n, k, 0.2)
    for which, scale in zip("kv", kv_scales or ()):
        one = np.ndim(scale) == 0
        stored[f"model.layers.0.self_attn.{which}_scale"] = (
            ("F32", np.float32(scale).reshape(1)) if one else
            ("BF16", bf16(np.float32(scale))[0].reshape(-1, 1, 1)))  # as compressed-tensors' attn_head

    out.mkdir(parents=True)
    write_safetensors(out / "model.safetensors", stored)
    if "producer" in quant_config:
        (out / HFQ).write_text(json.dumps(quant_config, indent=1) + "\n")
        written = config
    else:
        written = {**config, "quantization_config": quant_config}
    (out / "config.json").write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    golden = {"dump": crcs, "prompts": [], **({"kv_dtype": "fp8"} if kv_scales else {})}
    for i, ids in enumerate(IDS):
        logits = logits_of(config, values, ids, kv_scales)
        np.save(out / f"logits_{i}.npy", logits)
        golden["prompts"].append({"ids": ids, "logits": f"logits_{i}.npy",
                                  "greedy": greedy_of(config, values, ids, kv_scales)})
    (out / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    return ", ".join(sorted(a or "nobody else to ask" for a in agreed))


def greedy_of(config, values, ids, kv_scales):
    """Up to 8 ids; ends before one whose logit leads by less than 1e-3 of the largest."""
    ids, out = list(ids), []
    while len(out) < 8:
        row = logits_of(config, values, ids, kv_scales)[-1]
        first, second = np.sort(row)[:-3:-1]
        if first - second < 1e-3 * np.abs(row).max():
            break
        out.append(int(row.argmax()))
        ids.append(out[-1])
    return out


# of keys and of values, to choose from; none is a power of two or near 1
KV_SCALES = {"kv_fp8": [(k / 1000, v / 1000) for k in range(23, 60, 3) for v in range(7, 20, 3)],
             # of each head, numbers that bfloat16 has
             "kv_fp8_heads": [([k / 2048, 17 / 512], [v / 4096, 19 / 1024])
                              for k in range(23, 60, 6) for v in range(29, 100, 6)]}

MODELS = {}


def logits_of(config, values, ids, kv_scales=None):
    kind = config["model_type"]
    if kind not in MODELS:
        c = dict(config)
        c.pop("torch_dtype", None)
        conf = AutoConfig.for_model(c.pop("model_type"), **c)
        MODELS[kind] = AutoModelForCausalLM.from_config(conf, dtype=torch.float32,
                                                        attn_implementation="eager").eval()
        MODELS[kind].config._experts_implementation = "eager"
    model = MODELS[kind]
    state = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in values.items()}
    if kind == "qwen3_moe":
        p = "model.layers.0.mlp.experts."
        gu = [torch.cat([state.pop(f"{p}{e}.gate_proj.weight"), state.pop(f"{p}{e}.up_proj.weight")])
              for e in range(E)]
        state[p + "gate_up_proj"] = torch.stack(gu)
        state[p + "down_proj"] = torch.stack([state.pop(f"{p}{e}.down_proj.weight") for e in range(E)])
    model.load_state_dict(state, strict=True)
    cache = {"use_cache": False}
    if kv_scales:
        import quant_kv
        cache = {"past_key_values": quant_kv.Fp8Cache(kv_scales), "use_cache": True}
    out = model(input_ids=torch.tensor([ids]), **cache).logits[0].float().numpy()
    assert np.isfinite(out).all() and 0.1 < np.abs(out).max() < 1e4, np.abs(out).max()
    return out


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--out", type=Path, default=HERE / "quant")
    args.add_argument("--only")
    a = args.parse_args()
    import quant_mixed
    for name in [*VARIANTS, *quant_mixed.MIXED]:
        if a.only and a.only != name:
            continue
        shutil.rmtree(a.out / name, ignore_errors=True)
        print(f"{name}: {make(name, a.out / name)}", flush=True)
    if a.only in (None, "gpt_oss_mxfp4"):
        import quant_gpt_oss
        quant_gpt_oss.make(a.out)


if __name__ == "__main__":
    main()
