#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First inputs of fuzz_quant_NAME (corpus/quant) and fuzz_quant_door (corpus/quant_door): a healthy
module of each layout, in the bytes that quant_parts.c and fuzz_quant.c read. Standard library only.

    tests/fuzz/make_quant_seeds.py tests/fuzz/corpus
"""
import pathlib
import sys

SIZES = [1, 2, 3, 4, 7, 8, 16, 24, 32, 33, 48, 64, 96, 128, 256, 512]
BITS = [4, 8, 2, 3, 5, 6, 7, 1]
PAYLOAD = bytes.fromhex("3801f27a9c05b3")
STATED = 0x60  # a setting as the module has it
SYMMETRIC = 2

# name: layout in quant_parts.c, parts, rows, columns, group (1 = whole rows), bits, settings, a real
# configuration of quant_json.c (0 = none). Names that end in _TYPE have a GGUF type.
LAYOUTS = {
    "gptq": (0, 4, 8, 32, 16, 4, {}, 1),
    "gptq_3bit_planes": (0, 4, 32, 32, 16, 3, {"format": 3}, 1),
    "gptq_no_zeros": (1, 2, 8, 32, 32, 8, {"bits": STATED, "symmetric": SYMMETRIC}, 1),
    "awq_gemm": (2, 3, 8, 32, 32, 4, {}, 2),
    "awq_gemv": (3, 3, 8, 64, 64, 4, {"method": 2, "group": STATED}, 3),
    "pack": (4, 5, 8, 32, 32, 4, {}, 5),
    "pack_3bit": (5, 3, 4, 33, 33, 3, {"producer": 2}, 5),
    "fp8_blocks": (6, 3, 33, 24, 1, 8, {"block": STATED}, 4),
    "fp8_rows": (7, 2, 4, 16, 1, 8, {}, 10),
    "fp8_whole": (8, 4, 4, 16, 1, 8, {}, 0),
    "fp8_experts": (9, 2, 16, 24, 1, 8, {"block": STATED}, 4),
    "fp8_e8m0": (10, 2, 16, 24, 1, 8, {"block": STATED, "scale_fmt": 1}, 4),
    "mxfp8": (11, 2, 4, 64, 1, 8, {}, 0),
    "fp8_modelopt": (12, 2, 16, 24, 1, 8, {"block": STATED}, 6),
    "int8_zeros": (13, 3, 4, 32, 16, 8, {}, 5),
    "int8_whole": (14, 2, 4, 32, 16, 8, {}, 5),
    "nvfp4": (15, 5, 4, 32, 16, 4, {}, 7),
    "nvfp4_experts": (16, 3, 4, 32, 16, 4, {}, 7),
    "nvfp4_ct": (17, 4, 4, 32, 16, 4, {}, 5),
    "mxfp4_ct": (18, 2, 4, 64, 32, 4, {}, 5),
    "mxfp4_gpt_oss": (19, 2, 4, 64, 32, 4, {}, 8),
    "mxfp4_blocks": (20, 2, 4, 64, 32, 4, {}, 8),
    "mxfp4_deepseek": (21, 2, 4, 64, 32, 4, {}, 0),
    "modelopt_int4": (22, 5, 8, 32, 16, 4, {}, 6),
    "gguf_q4_k_TYPE": (23, 1, 2, 256, 1, 4, {}, 0),
    "gguf_iq2_xs_TYPE": (24, 1, 2, 256, 1, 4, {}, 0),
    "gguf_nvfp4_scale": (25, 2, 4, 64, 1, 4, {}, 0),
    "bnb_nf4": (26, 4, 8, 32, 32, 4, {}, 9),
    "bnb_fp4_nested": (27, 6, 8, 24, 16, 4, {}, 9),
    "bnb_int8": (28, 3, 8, 24, 1, 8, {}, 0),
    "dense": (29, 2, 4, 16, 1, 8, {}, 0),
}


def module(name, layout, parts, rows, columns, group, bits):
    how = 4 * BITS.index(bits)
    out = [layout, how, SIZES.index(rows), SIZES.index(columns), SIZES.index(group)]
    for _ in range(parts):
        out += [0, sum(map(ord, name)) % 64] if name.endswith("TYPE") else [0]
    return bytes(out)


def settings(said):
    keys = ["has", "method", "format", "producer", "scale_fmt", "bits", "group", "block"]
    out = [said.get(key, 0) for key in keys]
    if "block" in said:
        out.append(said["block"])  # of columns
    return bytes(out + [said.get("symmetric", 0), 0])


def main():
    root = pathlib.Path(sys.argv[1])
    for name, (layout, parts, rows, columns, group, bits, said, real) in LAYOUTS.items():
        of_module = module(name, layout, parts, rows, columns, group, bits)
        where = bytes([16, 128, 16, 128])
        name = name.removesuffix("_TYPE")
        (root / "quant" / name).write_bytes(of_module + settings(said) + where + PAYLOAD)
        (root / "quant_door" / name).write_bytes(bytes([0, 0]) + of_module + bytes([real, 0]) + PAYLOAD)


main()
