#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ucd_tables.c (class bits), core/base/unicode_tables.c (normal forms, lower case) and
core/base/text_flags_tables.c (grapheme clusters, what BERT's normaliser drops).

The data source is the oracle itself: the PyPI package `tokenizers` (0.23.x), whose regex
engine, normalisers and pre-tokenizers are asked about every Unicode scalar value. So the
tables hold what Hugging Face does, not what a standard says: classes are Unicode 16 (onig),
normal forms are Unicode 9, numbers of the Digits stage, words and clusters are those of its
Rust crates.

Run from the root of the tree:  python3 sdk/src/ucd/make_ucd.py [classes] [text] [flags]
"""
import base64
import hashlib
import json
import struct
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, SCALARS))
BLOCK = 128

# Bit order is that of DAVIT_UCD_ in davit/help/ucd.h.
REGEX_BITS = [r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{Mn}",
              r"[\p{Mc}\p{Me}]", r"\p{Nd}", r"[\p{Nl}\p{No}]", r"\p{P}", r"\p{S}", r"\p{Z}",
              r"\p{C}", r"\s", r"\p{Han}"]


def matched(pre):
    """Code points that a pre-tokenizer keeps when it keeps matches only."""
    out = set()
    for _, (start, end) in pre.pre_tokenize_str(ALL):
        out.update(SCALARS[start:end])
    return out


def class_bits():
    bits = dict.fromkeys(SCALARS, 0)
    for i, regex in enumerate(REGEX_BITS):
        pre = pre_tokenizers.Split(Regex(regex + "+"), "removed", invert=True)
        for c in matched(pre):
            bits[c] |= 1 << i
    n = len(REGEX_BITS)
    # Digits isolates what Rust's char::is_numeric takes.
    for piece, (start, end) in pre_tokenizers.Digits(True).pre_tokenize_str(ALL):
        if end - start == 1:
            bits[SCALARS[start]] |= 1 << n
    # A piece of one: a lone non-digit between digits would look the same, so ask again.
    for c in SCALARS:
        if bits[c] >> n & 1:
            got = pre_tokenizers.Digits(True).pre_tokenize_str("a" + chr(c) + "a")
            if len(got) != 3:
                bits[c] &= ~(1 << n)
    # Whitespace is \w+|[^\w\s]+ of the Rust regex crate: join each character to a letter.
    text = "\n".join("a" + chr(c) for c in SCALARS)
    starts = {}
    for piece, (start, end) in pre_tokenizers.Whitespace().pre_tokenize_str(text):
        if end - start == 2:
            starts[start // 3] = True
    for i, c in enumerate(SCALARS):
        if i in starts:
            bits[c] |= 1 << (n + 1)
    # Punctuation isolates each character of its class.
    pre = pre_tokenizers.Punctuation("removed")
    kept = matched(pre)
    for c in SCALARS:
        if c not in kept:
            bits[c] |= 1 << (n + 2)
    return bits


def two_level(value):
    """value(c) for all code points as (index of blocks, blocks)."""
    blocks, index, seen = [], [], {}
    for start in range(0, 0x110000, BLOCK):
        block = tuple(value(c) for c in range(start, start + BLOCK))
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        index.append(seen[block])
    return index, blocks


def array(name, ctype, values, per_line=16):
    lines = [f"const {ctype} {name}[{len(values)}] = {{"]
    for i in range(0, len(values), per_line):
        lines.append("    " + ", ".join(str(v) for v in values[i:i + per_line]) + ",")
    return "\n".join(lines + ["};", ""])


def head(title, include, digest):
    return (f"/* SPDX-License-Identifier: Apache-2.0\n * {title}\n"
            f" * Made by sdk/src/ucd/make_ucd.py from tokenizers {tokenizers.__version__};"
            f" do not edit.\n * sha256 of the facts: {digest}\n */\n"
            f"#include {include}\n\n")


def write_classes():
    bits = class_bits()
    combos = sorted(set(bits.values()) | {0})
    combo = {v: i for i, v in enumerate(combos)}
    assert len(combos) < 256
    index, blocks = two_level(lambda c: combo[bits.get(c, 0)])
    digest = hashlib.sha256(repr(sorted(bits.items())).encode()).hexdigest()
    flat = [v for b in blocks for v in b]
    with open("sdk/src/ucd/ucd_tables.c", "w") as f:
        f.write(head("Class bits of every code point, two levels: block of 128, then set number.",
                     "<davit/help/ucd.h>", digest))
        f.write(array("davit_ucd_ascii", "uint32_t", [f"0x{bits[c]:x}u" for c in range(128)], 8))
        f.write("\n" + array("davit_ucd_sets", "uint32_t", [f"0x{v:x}u" for v in combos], 8))
        f.write("\n" + array("davit_ucd_index", "uint16_t", index, 16))
        f.write("\n" + array("davit_ucd_blocks", "uint8_t", flat, 24))


def norm_each(norm, items):
    """The normaliser over many short strings in one call; U+000A separates."""
    got = norm.normalize_str("\n".join(items)).split("\n")
    assert len(got) == len(items)
    return got


def combining_classes():
    """Class of every mark: that of Python's first mark that the oracle sorts alike."""
    nfd = normalizers.NFD()
    plain = [c for c in SCALARS if c != 10]
    old = {}
    for c in plain:
        k = unicodedata.combining(chr(c))
        if not k or k in old or nfd.normalize_str(chr(c)) != chr(c):
            continue
        # Known to the oracle as a mark at all? (Its data are older than Python's.)
        if nfd.normalize_str(chr(0x345) + chr(c)) != chr(0x345) + chr(c) or k == 240 \
                or nfd.normalize_str(chr(c) + chr(0x334)) != chr(c) + chr(0x334):
            old[k] = chr(c)
    low, high = old[1], old[240]
    a = norm_each(nfd, [high + chr(c) for c in plain])
    b = norm_each(nfd, [chr(c) + low for c in plain])
    ccc = {}
    for c, after, before in zip(plain, a, b):
        s = chr(c)
        if nfd.normalize_str(s) != s:
            continue
        if after == s + high or before == low + s or s in (low, high):
            same = [k for k, m in old.items() if nfd.normalize_str(s + m) == s + m
                    and nfd.normalize_str(m + s) == m + s]
            assert len(same) == 1, (hex(c), same)
            ccc[c] = same[0]
    for k, m in old.items():
        assert ccc[ord(m)] == k
    return ccc


def compat_facts(decomp):
    """Full decompositions of NFKD that NFD does not have, and what NFKC changes alone."""
    plain = [c for c in SCALARS if c != 10]
    down = norm_each(normalizers.NFKD(), [chr(c) for c in plain])
    up = norm_each(normalizers.NFKC(), [chr(c) for c in plain])
    compat, changed = {}, set()
    for c, d, u in zip(plain, down, up):
        if 0xAC00 <= c < 0xD7A4:
            continue
        d = [ord(x) for x in d]
        if d != decomp.get(c, [c]):
            compat[c] = d
        if u != chr(c):
            changed.add(c)
    return compat, changed


def nfc_facts():
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    hangul = range(0xAC00, 0xD7A4)
    plain = [c for c in SCALARS if c != 10]
    ccc = combining_classes()
    decomp, pairs = {}, {}
    down = norm_each(nfd, [chr(c) for c in plain])
    up = norm_each(nfc, [chr(c) for c in plain])
    for c, d, u in zip(plain, down, up):
        if d == chr(c) or c in hangul:
            continue
        decomp[c] = [ord(x) for x in d]
        if u == chr(c):
            first = nfc.normalize_str(d[:-1])
            assert len(first) == 1, hex(c)
            pairs[(ord(first), ord(d[-1]))] = c
    not_qc = {c for c, u in zip(plain, up) if u != chr(c)}
    seconds = {b for _, b in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    busy = not_qc | seconds | set(ccc)
    return ccc, decomp, pairs, busy


def lower_facts():
    plain = [c for c in SCALARS if c != 10]
    low = norm_each(normalizers.Lowercase(), [chr(c) for c in plain])
    out = {c: [ord(x) for x in s] for c, s in zip(plain, low) if s != chr(c)}
    assert all(len(v) <= 2 for v in out.values())
    return out


def write_text_tables():
    ccc, decomp, pairs, busy = nfc_facts()
    compat, changed = compat_facts(decomp)
    lower = lower_facts()
    pool, offsets, compat_offsets = [], {}, {}
    for table, offs in ((decomp, offsets), (compat, compat_offsets)):
        for c, d in sorted(table.items()):
            offs[c] = len(pool)
            pool.extend(d)
    assert len(pool) < 65536
    kbusy = (busy | changed) - {c for c in busy if c in compat and compat[c] == [c]}
    def rec(c):
        n = len(decomp.get(c, ()))
        if c in compat:
            k = (compat_offsets[c], len(compat[c]))
        else:
            k = (offsets.get(c, 0), n)
        return (offsets.get(c, 0), k[0], ccc.get(c, 0), n, k[1],
                int(c in busy) | (2 if c in kbusy else 0))
    recs = [(0, 0, 0, 0, 0, 0)]
    number = {recs[0]: 0}
    for c in sorted(set(ccc) | set(decomp) | set(compat) | busy | kbusy):
        if rec(c) not in number:
            number[rec(c)] = len(recs)
            recs.append(rec(c))
    index, blocks = two_level(lambda c: number[rec(c)])
    flat = [v for b in blocks for v in b]
    facts = (sorted(ccc.items()), sorted(decomp.items()), sorted(pairs.items()),
             sorted(busy), sorted(lower.items()), sorted(compat.items()), sorted(kbusy))
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()
    with open("core/base/unicode_tables.c", "w") as f:
        f.write(head("Normal forms as Hugging Face has them (Unicode 9) and lower case.",
                     '"unicode_tables.h"', digest))
        f.write(array("davit_nfc_index", "uint16_t", index))
        f.write("\n" + array("davit_nfc_blocks", "uint16_t", flat))
        f.write("\n" + array("davit_nfc_records", "DavitNfcRecord",
                             ["{%d, %d, %d, %d, %d, %d}" % r for r in recs], 6))
        f.write("\n" + array("davit_nfc_pool", "uint32_t", [f"0x{v:x}" for v in pool], 12))
        f.write("\n" + array("davit_nfc_pairs", "DavitNfcPair",
                             ["{0x%x, 0x%x, 0x%x}" % (a, b, c)
                              for (a, b), c in sorted(pairs.items())], 4))
        f.write(f"\nconst uint32_t davit_nfc_n_pairs = {len(pairs)};\n")
        f.write("\n" + array("davit_lower", "DavitLower",
                             ["{0x%x, {0x%x, 0x%x}}" % (c, v[0], v[1] if len(v) > 1 else 0)
                              for c, v in sorted(lower.items())], 4))
        f.write(f"\nconst uint32_t davit_lower_n = {len(lower)};\n")


# ---- grapheme clusters, through the Precompiled normaliser ----

def charsmap(rules):
    """A precompiled_charsmap of SentencePiece: a double array in which each node has a block
    of 256 units of its own, then the texts."""
    texts, trie = b"", {}
    for key, value in rules.items():
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = len(texts)
        texts += value.encode() + b"\0"
    units, todo = [0] * 256, [(0, 0, trie)]
    while todo:
        at, label, node = todo.pop()
        base = len(units)
        units += [0] * 256
        offset = at ^ base
        assert offset < 1 << 21
        units[at] = offset << 10 | (None in node) << 8 | label
        if None in node:
            units[base] = node[None] | 1 << 31
        todo += [(base ^ b, b, child) for b, child in node.items() if b is not None]
    return struct.pack("<I", 4 * len(units)) + b"".join(struct.pack("<I", u) for u in units) + texts


def precompiled(rules):
    blob = base64.b64encode(charsmap(rules)).decode()
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tree = json.loads(tok.to_str())
    tree["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": blob}
    return tokenizers.Tokenizer.from_str(json.dumps(tree)).normalizer


def asked(rules, make, chars):
    """Characters after whose text the last rule fires. U+000A stands alone, it separates."""
    norm = precompiled(rules)
    chars = [c for c in chars if c not in (10, 13)]
    got = norm_each(norm, [make(chr(c)) for c in chars])
    return {c for c, text in zip(chars, got) if text.endswith("!")}


def cluster_facts():
    """The cluster of a cluster rule is shorter than 6 bytes, and each of the strings asked
    about ends in one if there is a boundary before it: y + U+0301 for a boundary before y."""
    acute = "\u0301"
    every = [c for c in SCALARS if c != 10]

    def no_break(before, y, chars=every):
        chars = [c for c in chars if c not in (10, 13)]
        return set(chars) - asked({y + acute: "!"}, lambda c: before(c) + y + acute, chars)

    # "a" + c as one cluster becomes x alone
    norm = precompiled({"a": "x"})
    got = norm_each(norm, ["a" + chr(c) for c in every if c != 13])
    joins = {c for c, t in zip([c for c in every if c != 13], got) if t == "x"}
    out = {"CONTROL": asked({acute * 2: "!"}, lambda c: c + acute * 2, every) - joins,
           "PREPEND": no_break(lambda c: c, "a")}
    out["CONTROL"] |= {10, 13}
    before_lv = no_break(lambda c: c, "\uac00") - out["PREPEND"]
    before_v = no_break(lambda c: c, "\u1161") - out["PREPEND"]
    before_t = no_break(lambda c: c, "\u11a8") - out["PREPEND"]
    syllables = set(range(0xAC00, 0xD7A4))
    out["L"] = before_lv
    out["V"] = (before_v & before_t) - syllables
    out["T"] = (before_t - before_v) - syllables
    out["PICT"] = no_break(lambda c: c + "\u200d", "\u00a9")
    out["CONSONANT"] = no_break(lambda c: c + "\u094d", "\u0915") - out["PREPEND"]
    out["LINKER"] = no_break(lambda c: "\u0915" + c, "\u0915", joins)
    out["INCB_EXTEND"] = no_break(lambda c: "\u0915" + c + "\u094d", "\u0915", joins)
    out["ZWJ"] = {0x200D}
    out["EXTEND"] = no_break(lambda c: "\u00a9" + c + "\u200d", "\u00a9", joins) - {0x200D}
    out["SPACING"] = joins - out["EXTEND"] - {0x200D}
    return out


def dropped(norm):
    """Characters that vanish between two letters. The bar separates."""
    chars = [c for c in SCALARS if c != ord("|")]
    got = norm.normalize_str("|".join("a" + chr(c) + "b" for c in chars)).split("|")
    assert len(got) == len(chars)
    return {c for c, text in zip(chars, got) if text == "ab"}


FLAGS = ["CONTROL", "PREPEND", "EXTEND", "SPACING", "ZWJ", "L", "V", "T", "PICT", "CONSONANT",
         "LINKER", "INCB_EXTEND", "MARK", "BERT_DROP", "BERT_ACCENT"]


def write_flags():
    facts = cluster_facts()
    bert = normalizers.BertNormalizer
    facts["MARK"] = dropped(normalizers.StripAccents())
    facts["BERT_DROP"] = dropped(bert(True, False, False, False))
    # what the NFD inside changes never meets the test
    facts["BERT_ACCENT"] = dropped(bert(False, False, True, False))
    bits = dict.fromkeys(SCALARS, 0)
    for i, name in enumerate(FLAGS):
        print(name, len(facts[name]))
        for c in facts[name]:
            bits[c] |= 1 << i
    combos = sorted(set(bits.values()) | {0})
    combo = {v: i for i, v in enumerate(combos)}
    index, blocks = two_level(lambda c: combo[bits.get(c, 0)])
    digest = hashlib.sha256(repr(sorted(bits.items())).encode()).hexdigest()
    with open("core/base/text_flags_tables.c", "w") as f:
        f.write(head("Clusters and marks of every code point, two levels: block of 128, then "
                     "set number.", '"text_flags.h"', digest))
        f.write(array("davit_text_sets", "uint16_t", [f"0x{v:x}u" for v in combos], 8))
        f.write("\n" + array("davit_text_index", "uint16_t", index, 16))
        f.write("\n" + array("davit_text_blocks", "uint8_t", [v for b in blocks for v in b], 24))


WRITERS = {"classes": write_classes, "text": write_text_tables, "flags": write_flags}
for wanted in sys.argv[1:] or WRITERS:
    WRITERS[wanted]()
