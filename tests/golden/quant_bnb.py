"""bitsandbytes' layouts for make_quant.py: random codes, packed as its QuantState and Linear8bitLt
save them."""
import json

import numpy as np

NF4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
                -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
                0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1], np.float32)
FP4 = np.array([0, .0625, 8, 12, 4, 6, 2, 3, 0, -.0625, -8, -12, -4, -6, -2, -3], np.float32) / np.float32(12)


def bnb4(kind="nf4", block=64, nested=False):
    def make(rng, n, k):
        table = {"nf4": NF4, "fp4": FP4}[kind]
        codes = rng.integers(0, 16, n * k, dtype=np.uint8)
        blocks = -(-n * k // block)
        state = {"quant_type": kind, "blocksize": block, "dtype": "float32", "shape": [n, k]}
        out = {"weight": ("U8", (codes[0::2] << 4 | codes[1::2]).reshape(-1, 1)),
               "weight.quant_map": ("F32", table)}
        if nested:
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.25}
            q = rng.integers(0, 256, blocks, dtype=np.uint8)
            steps = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
            big = rng.uniform(0.05, 0.15, -(-blocks // 256)).astype(np.float32)
            absmax = steps[q] * big[np.arange(blocks) // 256] + np.float32(0.25)
            out |= {"weight.absmax": ("U8", q), "weight.nested_absmax": ("F32", big),
                    "weight.nested_quant_map": ("F32", steps)}
        else:
            absmax = rng.uniform(0.1, 0.4, blocks).astype(np.float32)
            out["weight.absmax"] = ("F32", absmax)
        text = json.dumps(state).encode()
        out[f"weight.quant_state.bitsandbytes__{kind}"] = ("U8", np.frombuffer(text, np.uint8))
        if kind == "fp4":  # the kernels give code 8 its sign, the stored table has 0
            table = np.where(np.arange(16) == 8, np.float32(-0.0), table)
        return out, (table[codes] * absmax[np.arange(n * k) // block]).reshape(n, k)
    return make


def bnb8(rng, n, k):
    q, scb = rng.integers(-127, 128, (n, k)).astype(np.int8), rng.uniform(0.1, 0.4, n).astype(np.float32)
    values = q.astype(np.float32) * (scb * (np.float32(1) / np.float32(127)))[:, None]
    return {"weight": ("I8", q), "SCB": ("F32", scb), "weight_format": ("U8", np.uint8(0).reshape(()))}, values


def bnb_config(kind):
    return {"quant_method": "bitsandbytes", "load_in_4bit": kind != "int8", "load_in_8bit": kind == "int8",
            "bnb_4bit_quant_type": "fp4" if kind == "int8" else kind, "llm_int8_skip_modules": ["lm_head"]}
