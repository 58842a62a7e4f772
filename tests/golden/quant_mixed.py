"""Checkpoints of make_quant.py whose modules differ: several groups of settings, quantised heads and
embeddings, experts of one layer in two layouts. Each name has (pick, config): pick(module) is the
layout of a module, None where it stays plain."""
import re

import make_quant as mq
import numpy as np

EMBEDDING, HEAD = "model.embed_tokens", "lm_head"


def by(*rules):
    """First of (pattern, layout) whose pattern is found in the name."""
    def pick(module):
        return next((layout for pattern, layout in rules if re.search(pattern, module)), None)
    return pick


def weights(bits, kind, strategy, group=None, **more):
    w = {"num_bits": bits, "type": kind, "symmetric": True, "strategy": strategy, **more}
    return {**w, "group_size": group} if group else w


def groups(*members, ignore=()):
    """compressed-tensors: (targets, format, weights) of each group."""
    return {"quant_method": "compressed-tensors", "format": "mixed-precision", "version": "0.17.1",
            "quantization_status": "compressed", "ignore": list(ignore),
            "config_groups": {f"group_{i}": {"targets": t, "format": f, "weights": w}
                              for i, (t, f, w) in enumerate(members)}}


def layers(**algo):
    """ModelOpt's list of modules; what it does not name is plain."""
    c = mq.modelopt_config("MIXED_PRECISION")
    c["quantization"]["quantized_layers"] = {
        f"model.layers.0.{m.replace('__', '.')}": {"quant_algo": a, **({"group_size": g} if g else {})}
        for m, (a, g) in algo.items()}
    return c


def with_second_scale(quantise):
    """W4A8_AWQ: the scale of the kernel's FP8 copies, which the weights do not depend on."""
    def make(rng, n, k):
        parts, values = quantise(rng, n, k)
        return {**parts, "weight_scale_2": ("F32", np.float32(0.0017).reshape(())),
                "input_scale": ("F32", np.float32(0.02).reshape(()))}, values
    return make


W4 = mq.ct_pack(4)
W8 = mq.ct_pack(8, group=-1)
PACKED = "pack-quantized"
DYNAMIC = {"-:.*\\.o_proj": {}, "+:.*\\.mlp\\..*": {"bits": 8, "group_size": 16}}


def cached(strategy):
    return {**mq.ct_config("pack-quantized", 4, "int", "group", 32),
            "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True,
                                "dynamic": False}}


MIXED = {
    "mixed_ct": (by(("o_proj", None), ("self_attn", mq.int8()), ("down_proj", mq.nvfp4(True)), ("mlp", W4)),
                 groups((["re:.*self_attn.*"], "int-quantized", weights(8, "int", "channel")),
                        (["re:.*mlp.*(gate|up)_proj"], PACKED, weights(4, "int", "group", 32)),
                        (["model.layers.0.mlp.down_proj"], "nvfp4-pack-quantized",
                         weights(4, "float", "tensor_group", 16)),
                        ignore=[HEAD, "model.layers.0.self_attn.o_proj"])),
    "mixed_modelopt": (by(("q_proj", mq.fp8(name="weight_scale", shape=lambda *s: (), act=True)),
                          ("[kv]_proj", mq.nvfp4(False)), ("o_proj", mq.modelopt_int4()),
                          ("gate_proj|up_proj", mq.int8(dtype="F32", shape=lambda n: (n,)))),
                       layers(self_attn__q_proj=("FP8", 0), self_attn__k_proj=("NVFP4", 16),
                              self_attn__v_proj=("NVFP4", 16), self_attn__o_proj=("W4A16_AWQ", 32),
                              mlp__gate_proj=("W8A16", 0), mlp__up_proj=("W8A16", 0))),
    "mixed_gptq": (by(("o_proj", None), ("mlp", mq.gptq(8, 16)), ("self_attn", mq.gptq(4))),
                   {**mq.gptq_config(4), "dynamic": DYNAMIC}),
    "fp8_dense_parts": (by(("o_proj|down_proj", None), ("layers", mq.fp8(32, 32))),
                        mq.fp8_config([32, 32])),
    "ct_head": (by((HEAD, W8), (EMBEDDING, W8), ("layers", W4)),
                groups((["Linear"], PACKED, weights(4, "int", "group", 32)),
                       ([HEAD, "Embedding"], PACKED, weights(8, "int", "channel")))),
    "ct_tied": (by((EMBEDDING, W8), ("layers", W4)),
                groups((["Linear"], PACKED, weights(4, "int", "group", 32)),
                       (["Embedding"], PACKED, weights(8, "int", "channel")), ignore=[HEAD])),
    "gptq_head": (by((HEAD, mq.gptq(4)), ("layers", mq.gptq(4))), {**mq.gptq_config(4), "lm_head": True}),
    "modelopt_w4a8": (by(("layers", with_second_scale(mq.modelopt_int4()))),
                      mq.modelopt_config("W4A8_AWQ", 32)),
    "moe_mixed_experts": (by(("experts\\.[01]", W4), ("experts\\.[23]", W8)),
                          groups((["re:.*experts\\.[01]\\..*"], PACKED, weights(4, "int", "group", 32)),
                                 (["re:.*experts\\.[23]\\..*"], PACKED, weights(8, "int", "channel")),
                                 ignore=[HEAD, "re:.*self_attn.*", "re:.*mlp.gate$"])),
    "kv_fp8": (by(("layers", W4)), cached("tensor")),
    "kv_fp8_heads": (by(("layers", W4)), cached("attn_head")),
    # experts 0 and 3 stay plain, as writers leave those that calibration never reached
    "moe_plain_experts": (by(("experts\\.1", W4), ("experts\\.2", mq.nvfp4(True))),
                          groups((["re:.*experts\\.1\\..*"], PACKED, weights(4, "int", "group", 32)),
                                 (["re:.*experts\\.2\\..*"], "nvfp4-pack-quantized",
                                  weights(4, "float", "tensor_group", 16)),
                                 ignore=[HEAD, "re:.*self_attn.*", "re:.*mlp.gate$",
                                         "re:.*experts\\.[03]\\..*"])),
    # ModelOpt's factors of activations, of each expert's own
    "moe_nvfp4_awq": (by(("experts", mq.with_column_scale(mq.nvfp4(False)))),
                      {**mq.modelopt_config("NVFP4_AWQ", 16)}),
}
