#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Hugging Face's normalisers make of every Unicode scalar value alone, and of random
runs of marks and letters that join: the sha256 of all outputs, into unicode.golden.json.

  python3 make_unicode_goldens.py                    writes it
  python3 make_unicode_goldens.py --check FILE       which lines of Unicode's
      NormalizationTest.txt the reference does not pass; its data are Unicode 9

Needs the PyPI package tokenizers 0.23; test_unicode_golden makes the same strings.
"""
import hashlib
import json
import os
import sys

import tokenizers
from tokenizers import normalizers

import make_tokenizer_goldens as texts

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 20000
# Marks of many classes, starters that they join, Hangul, compatibility forms.
JOINING = ([0x41, 0x61, 0x65, 0x6f, 0x75, 0xe9, 0x1e69, 0x1100, 0x1161, 0x11a8, 0xac00, 0xac01,
            0xfb01, 0x1d15e, 0x2adc, 0x3099, 0x304b, 0x309a, 0x30cf, 0x9c7, 0x9be, 0x1025, 0x102e,
            0xf71, 0xf72, 0xf74, 0x5d0, 0x5bc, 0x5c1, 0xfb2c, 0x212b, 0x2126, 0xff76, 0xff9e,
            0x3392, 0xfdfa, 0x115b9, 0x115af]
           + list(range(0x300, 0x315)) + [0x323, 0x327, 0x331, 0x334, 0x345, 0x35c, 0x5b0, 0x5b1,
                                          0x64b, 0x651, 0x93c, 0x94d, 0xe38, 0xf39, 0x302a, 0x20d0,
                                          0x1d165, 0x1d16d, 0x16d63, 0x16d67, 0x105d2, 0x307])
FORMS = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(),
         "NFKD": normalizers.NFKD(), "Lowercase": normalizers.Lowercase(),
         "StripAccents": normalizers.StripAccents(), "Nmt": normalizers.Nmt(),
         "BertNormalizer": normalizers.BertNormalizer()}


def strings():
    for c in range(0x110000):
        if c != 10 and not 0xD800 <= c < 0xE000:
            yield chr(c)
    rnd = texts.Random(texts.START)
    for _ in range(COUNT):
        yield "".join(chr(JOINING[rnd.below(len(JOINING))]) for _ in range(1 + rnd.below(12)))


def check(path):
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        cells = line.split("#")[0].split(";")
        if len(cells) < 5:
            continue
        c = ["".join(chr(int(x, 16)) for x in cell.split()) for cell in cells[:5]]
        for form, want in (("NFC", 1), ("NFD", 2), ("NFKC", 3), ("NFKD", 4)):
            if FORMS[form].normalize_str(c[0]) != c[want]:
                print(number, form, ascii(c[0]))


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    out = {"versions": {"tokenizers": tokenizers.__version__}, "start": texts.START,
           "count": COUNT, "alphabet": JOINING, "sha256": {}}
    every = list(strings())
    for name, form in FORMS.items():
        total = hashlib.sha256()
        for s in every:
            total.update(form.normalize_str(s).encode() + b"\n")
        out["sha256"][name] = total.hexdigest()
    with open(os.path.join(HERE, "unicode.golden.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
