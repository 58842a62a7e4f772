#!/usr/bin/env python3
"""Write tests/golden/gguf_more: random blocks of the GGUF types that plugins/quant/gguf decodes by
itself, and the CRC-32 of what the gguf package (0.19.0) makes of them (float32, little-endian, -0
written as +0: code 8 of the 4-bit floats is -0 here and 0 there).

    python3 make_gguf_more.py
"""
import json
import zlib
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

# where each type keeps its float16; None = elsewhere, or none
TYPES = {Q.IQ4_NL: 0, Q.IQ4_XS: 0, Q.TQ1_0: 52, Q.TQ2_0: 64, Q.MXFP4: None, Q.NVFP4: None, Q.IQ1_S: 0, Q.IQ1_M: None,
         Q.IQ2_XXS: 0, Q.IQ2_XS: 0, Q.IQ2_S: 0, Q.IQ3_XXS: 0, Q.IQ3_S: 0}
N = 64


def finite_iq1_m(raw):
    """Its float16 lies in the upper nibbles of four words: bits 10 to 14 may not all be set."""
    raw[:, 55] &= 0xBF


def main():
    out = Path(__file__).resolve().parent / "gguf_more"
    out.mkdir(exist_ok=True)
    index = {}
    for kind, at in TYPES.items():
        rng = np.random.Generator(np.random.PCG64(zlib.crc32(kind.name.encode())))
        elems, size = gguf.GGML_QUANT_SIZES[kind]
        raw = rng.integers(0, 256, (N, size), dtype=np.uint8)
        raw[0], raw[1] = 0x00, 0xFF
        raw[2] = np.arange(size) % 256
        if at is not None:
            d = raw[:, at:at + 2].copy().view(np.uint16)
            d[(d & 0x7C00) == 0x7C00] &= 0xBFFF
            d[1], d[2] = 1, 0x8001  # subnormal
            raw[:, at:at + 2] = d.view(np.uint8)
        elif kind == Q.IQ1_M:
            finite_iq1_m(raw)
        elif kind == Q.MXFP4:
            raw[:, 0] = np.minimum(raw[:, 0], 252)  # 6 * 2^126 is no float32
        values = gguf.quants.dequantize(raw, kind).astype("<f4") + np.float32(0)
        assert np.isfinite(values).all(), kind
        (out / f"{kind.name}.bin").write_bytes(raw.tobytes())
        name = {"MXFP4": "gguf.mxfp4", "NVFP4": "gguf.nvfp4"}.get(kind.name, kind.name.lower())
        index[kind.name] = {"dtype": f"{name}/1", "elems": elems, "bytes": size, "blocks": N,
                            "crc": f"{zlib.crc32(values.tobytes()):08x}"}
    (out / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
