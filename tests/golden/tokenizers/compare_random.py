#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random strings through libdavit and through Hugging Face's `tokenizers`, ids compared.

  compare_random.py LIBDAVIT.so COUNT [NAME=]tokenizer.json...

COUNT strings for each file, some 40 bytes each, in batches that differ: characters of every
class, literals of the regexes and random scalars of all planes (alone and in runs), white
space and digits in runs, contractions in every case, words in several cases and scripts,
tokens of the vocabulary and the file's added tokens. Every second batch is encoded with special
tokens, every second pair of batches decoded too, in turns with special tokens and without. A
batch follows from its number and the file's name alone. The first differences of a file are
printed, the rest counted; exit status 1 if there are any.

  compare_random.py build/libdavit.so 1000000 --families     the files of this folder, one
      for each shape of pre-tokenizer, normaliser and model

Done 2026-12-01, tokenizers 0.23.1, a million each at d4808cc, none different: the real Llama 3.1, gpt-oss,
Qwen 3, DeepSeek-V3 and Llama 2, and all 46 files of SHAPES. After it, threads of one long text and the look
for what NFC changes were rewritten: 500,000 each of Qwen 3, gpt-oss, qwen2 and qwen35 at 92e6605, none different.

Earlier the same day, tokenizers 0.23.3, a million each, none different: the real Llama 3.1, Qwen 3 and
gpt-oss; llama3, qwen2, o200k, gpt2, spm_legacy, spm_gemma, deepseek_v3, tekken (commit 57d39f1),
qwen35, gpt2_digits, falcon, unigram_t5 (fbfb788);
deepseek_llm, deepseek_coder, kimi, bloom, bert_uncased, spm_first, seed_coder, bailing,
exaone_moe, minicpm5, tiny_aya, youtu (1dea2f1). 200,000 each of Llama 3.1, Qwen 3, gpt-oss,
DeepSeek-V3, llama3, qwen2 and o200k at the last change of merging, of Llama 2 before it. The
other files of SHAPES have not been through this.

make_tokenizer_goldens.py --random compares fewer strings, through the test program and with
streamed decoding; here is as little Python for each string as will do. Needs the PyPI packages
tokenizers 0.23 and numpy.
"""
import ctypes
import itertools
import os
import sys
import time
import zlib

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy
import tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../bench"))
from compare_tokenizers import Davit, Encoding, EncodeParams  # noqa: E402
from make_tokenizer_goldens import CORPUS, EXTRA, alphabet_of  # noqa: E402

BATCH, ATOMS, SHOWN = 20000, 4096, 5
NO_SPECIAL = 1
SHAPES = ["llama3", "qwen2", "o200k", "gpt2", "spm_legacy", "spm_gemma", "deepseek_v3", "tekken",
          "qwen35", "gpt2_digits", "deepseek_llm", "deepseek_coder", "kimi", "bloom", "falcon",
          "unigram_t5", "bert_uncased", "spm_first", "seed_coder", "bailing", "exaone_moe",
          "minicpm5", "tiny_aya", "youtu", "superbpe", "afmoe", "laguna", "chameleon", "jais2",
          "viking", "added", "spm_always", "spm_never", "spm_unk", "unigram_albert",
          "unigram_blanks", "unigram_bytes", "bert_cased", "llama3_removed", "gpt2_prefix",
          "afmoe_wide", "spm_fuse", "bert_forms", "bert_plain", "bert_fit", "bert_fit_left"]


# ---- strings ----

def cases(rng, word):
    return [word, word.upper(), word.title(), word.lower()][rng.integers(4)]


def scalar(rng):
    """Two thirds from the first two planes, where nearly all characters are."""
    while True:
        c = int(rng.integers(0x3000 if rng.integers(3) == 0 else
                             0x20000 if rng.integers(2) else 0x110000))
        if not 0xd800 <= c < 0xe000:
            return chr(c)


def atoms(rng, name, specials, vocab):
    """ATOMS short texts, as many of a kind as it shall be frequent."""
    pick = lambda seq: seq[int(rng.integers(len(seq)))]  # noqa: E731
    letters = [chr(c) for c in alphabet_of(name)]
    words = CORPUS.split()
    space = [" ", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u0085", "   "]
    digits = "0123456789٣௪²Ⅷ½๓"
    kinds = [
        (30, lambda: pick(letters)),
        (12, lambda: pick(space)),
        (4, lambda: "".join(pick(space) for _ in range(rng.integers(2, 6)))),
        (8, lambda: "".join(pick(digits) for _ in range(rng.integers(1, 9)))),
        (10, lambda: scalar(rng)),
        (5, lambda: pick(letters + [scalar(rng)]) * int(rng.integers(2, 9))),
        (8, lambda: pick("'’") + cases(rng, pick(["s", "t", "re", "ve", "m", "ll", "d", "ſ", "x"]))),
        (10, lambda: " " * int(rng.integers(2)) + cases(rng, pick(words))),
        (8, lambda: pick(vocab)),
        (3, lambda: pick(specials) if specials else " "),
        (2, lambda: "".join(map(pick, [letters] * 3))),
    ]
    total = sum(n for n, _ in kinds)
    return [make() for n, make in kinds for _ in range(n * ATOMS // total)]


def batch(name, number, specials, vocab, n):
    rng = numpy.random.default_rng([zlib.crc32(name.encode()), number])
    pool = atoms(rng, name, specials, vocab)
    counts = rng.integers(1, 20, n)
    picks = rng.integers(len(pool), size=int(counts.sum())).tolist()
    out, at = [], 0
    for count in counts.tolist():
        out.append("".join([pool[i] for i in picks[at:at + count]]))
        at += count
    return out


# ---- davit ----

class Library(Davit):
    """Many strings to one array of ids and one of counts."""

    def __init__(self, library, source):
        super().__init__(library, source)
        self.lib.davit_text_decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                               ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.lib.davit_free.argtypes = [ctypes.c_void_p]
        self.lib.davit_encoding_clear.argtypes = [ctypes.c_void_p]

    def encode(self, raw, special):
        n = len(raw)
        size = ctypes.sizeof(Encoding)
        out = (Encoding * n)()
        view = numpy.frombuffer(out, dtype=numpy.uint64).reshape(n, size // 8)
        view[:, 0] = size
        params = EncodeParams(ctypes.sizeof(EncodeParams), 0 if special else NO_SPECIAL, 1, 0)
        status = self.lib.davit_text_encode_batch(
            self.text, (ctypes.c_char_p * n)(*raw), (ctypes.c_size_t * n)(*map(len, raw)),
            ctypes.c_size_t(n), ctypes.byref(params), out, None)
        if status:
            raise SystemExit("davit_text_encode_batch failed")
        counts = view[:, 2].astype(numpy.int64)
        ids = b"".join(map(ctypes.string_at, view[:, 1].tolist(), (4 * counts).tolist()))
        start = ctypes.addressof(out)
        for i in range(n):
            self.lib.davit_encoding_clear(start + i * size)
        return numpy.frombuffer(ids, dtype=numpy.int32), counts

    def decode(self, ids, counts, skip):
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        at, out = ids.ctypes.data, []
        for n in counts.tolist():
            if self.lib.davit_text_decode(self.text, at, n, skip, ctypes.byref(text),
                                          ctypes.byref(size)):
                raise SystemExit("davit_text_decode failed")
            out.append(ctypes.string_at(text.value, size.value).decode())
            self.lib.davit_free(text)
            at += 4 * n
        return out


# ---- comparing ----

def show(kind, name, number, text, mine, theirs):
    print("%s of %s, batch %d: %r\n  davit      %r\n  tokenizers %r"
          % (kind, name, number, text, mine, theirs), flush=True)


def compare_ids(name, number, texts, mine, theirs):
    """How many texts have other ids."""
    ids, counts = mine
    same = numpy.fromiter((len(e) for e in theirs), dtype=numpy.int64, count=len(theirs))
    flat = numpy.fromiter(itertools.chain.from_iterable(theirs), dtype=numpy.int32)
    if numpy.array_equal(same, counts) and numpy.array_equal(flat, ids):
        return 0
    bad, at = 0, 0
    for text, n, other in zip(texts, counts.tolist(), theirs):
        own = ids[at:at + n].tolist()
        at += n
        if own != other:
            bad += 1
            if bad <= SHOWN:
                show("ids", name, number, text, own, other)
    return bad


def compare_batch(davit, hf, name, number, texts):
    special = bool(number & 1)
    ids, counts = davit.encode([t.encode() for t in texts], special)
    if hf.padding and hf.padding["length"] is None:  # a batch would be padded to its longest
        theirs = [hf.encode(t, add_special_tokens=special).ids for t in texts]
    else:
        theirs = [e.ids for e in hf.encode_batch(texts, add_special_tokens=special)]
    bad = compare_ids(name, number, texts, (ids, counts), theirs)
    if bad == 0 and number % 4 < 2:
        skip = bool(number & 4)
        for text, a, b in zip(texts, davit.decode(ids, counts, skip),
                              hf.decode_batch(theirs, skip_special_tokens=skip)):
            if a != b:
                bad += 1
                if bad <= SHOWN:
                    show("text", name, number, text, a, b)
    return bad


def compare_file(library, name, path, count):
    davit, hf = Library(library, path), tokenizers.Tokenizer.from_file(path)
    davit.load()
    specials = [a.content for _, a in sorted(hf.get_added_tokens_decoder().items())][:300]
    specials += EXTRA.get(name, [])
    vocab = sorted(t for t in hf.get_vocab() if t)
    vocab = [t.replace("Ġ", " ").replace("Ċ", "\n").replace("▁", " ") for t in vocab]
    bad, done, n_bytes, start = 0, 0, 0, time.process_time()
    while done < count:
        texts = batch(name, done // BATCH, specials, vocab, min(BATCH, count - done))
        bad += compare_batch(davit, hf, name, done // BATCH, texts)
        done += len(texts)
        n_bytes += sum(len(t.encode()) for t in texts)
    davit.free()
    print("%s: %d strings, %d bytes each, %d differ, %.0f s" % (
        name, done, n_bytes // done, bad, time.process_time() - start), flush=True)
    return bad


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    files = sys.argv[3:]
    if files == ["--families"]:
        files = [name + "=" + os.path.join(HERE, name + ".json") for name in SHAPES]
    bad = 0
    for file in files:
        name, _, path = file.rpartition("=")
        bad += compare_file(sys.argv[1], name or os.path.basename(os.path.dirname(path)), path,
                            int(sys.argv[2]))
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
