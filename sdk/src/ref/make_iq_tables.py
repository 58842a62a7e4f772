#!/usr/bin/env python3
"""Write iq_tables.c: the codebooks of IQ1, IQ2 and IQ3.

Their points were chosen by measurements on models (llama.cpp), so that no rule gives them again;
they are data of the format. This script takes them from the gguf package (gguf/quants.py), which
is under the MIT licence, Copyright (c) 2023 Georgi Gerganov, and puts each point in sixteen
bits: 2 bits for each of eight elements, or 4 for each of four.

    pip install gguf==0.19.0
    python3 make_iq_tables.py > iq_tables.c
"""
import gguf.quants as q
import numpy as np

TABLES = [("iq2_xxs", q.IQ2_XXS), ("iq2_xs", q.IQ2_XS), ("iq2_s", q.IQ2_S), ("iq3_xxs", q.IQ3_XXS),
          ("iq3_s", q.IQ3_S), ("iq1", q.IQ1_S)]


def words(kind):
    kind.init_grid()
    n, elems = kind.grid_shape
    index = np.searchsorted(kind.grid_map, kind.grid.reshape(n, elems))
    assert (np.array(kind.grid_map)[index] == kind.grid.reshape(n, elems)).all()
    bits = 16 // elems
    return (index << (np.arange(elems) * bits)).sum(1)


def main():
    print('''/* SPDX-License-Identifier: Apache-2.0 AND MIT
 * Codebooks of GGUF's IQ1, IQ2 and IQ3, as make_iq_tables.py packs them. Data of the format,
 * from the gguf package 0.19.0: MIT licence, Copyright (c) 2023 Georgi Gerganov.
 * Made by make_iq_tables.py: do not edit. */
#include <davit/help/iq.h>''')
    for name, kind in TABLES:
        w = words(kind)
        print(f"\nconst uint16_t davit_{name}_grid[{len(w)}] = {{")
        for i in range(0, len(w), 10):
            print("    " + " ".join(f"0x{x:04x}," for x in w[i:i + 10]))
        print("};")


if __name__ == "__main__":
    main()
