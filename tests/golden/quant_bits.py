"""Number formats, packings and the safetensors writer of make_quant.py, from their definitions."""
import json
import struct

import numpy as np


# ---- scalar formats, from their definitions ----

def e4m3(code):
    code = np.asarray(code, np.int64)
    e, m = code >> 3 & 15, code & 7
    v = np.where(e == 0, m * 2.0 ** -9, (1 + m / 8) * 2.0 ** (e - 7.0))
    return np.where(code & 128, -v, v).astype(np.float32)


def e8m0(code):
    return (2.0 ** (np.asarray(code, np.float64) - 127)).astype(np.float32)


E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])
F8_CODES = np.array([c for c in range(256) if c & 127 != 127 and abs(e4m3(c)) <= 28], np.uint8)


def bf16(x):
    """float32 array -> (bits u16, value) rounded to nearest even."""
    u = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = ((u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32)


def scale_of(x, dtype):
    """-> (dtype, raw array, float32 values)."""
    if dtype == "F32":
        return np.asarray(x, np.float32), np.asarray(x, np.float32)
    if dtype == "F16":
        h = np.asarray(x, np.float16)
        return h, h.astype(np.float32)
    if dtype == "BF16":
        return bf16(x)
    if dtype in ("F8_E8M0", "U8"):
        code = np.clip(np.round(np.log2(x)) + 127, 0, 254).astype(np.uint8)
        return code, e8m0(code)
    raise ValueError(dtype)


def bits_words(codes, bits):
    """Codes of the last axis as one LSB-first stream of little-endian words."""
    *lead, n = codes.shape
    words = (n * bits + 31) // 32
    flat = np.zeros((*lead, words * 32), np.uint8)
    for b in range(bits):
        flat[..., np.arange(n) * bits + b] = codes >> b & 1
    weights = (np.uint64(1) << np.arange(32, dtype=np.uint64))
    return (flat.reshape(*lead, words, 32).astype(np.uint64) * weights).sum(-1).astype(np.uint32)


def padded_words(codes, bits):
    each = 32 // bits
    *lead, n = codes.shape
    pad = -n % each
    c = np.concatenate([codes, np.zeros((*lead, pad), codes.dtype)], -1).reshape(*lead, -1, each)
    return (c.astype(np.uint64) << (np.arange(each, dtype=np.uint64) * bits)).sum(-1).astype(np.uint32)


def planar3(codes):
    """[.., 32] codes of 3 bits: two words of low pairs, one of high bits."""
    return np.concatenate([bits_words(codes & 3, 2), bits_words(codes >> 2, 1)], -1)


def nibbles(codes):
    return codes[:, 0::2] | codes[:, 1::2] << 4


def write_safetensors(path, tensors):
    head, at, data = {}, 0, []
    for key in sorted(tensors):
        dtype, array = tensors[key]
        raw = np.ascontiguousarray(array).tobytes()
        head[key] = {"dtype": dtype, "shape": list(np.shape(array)), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
