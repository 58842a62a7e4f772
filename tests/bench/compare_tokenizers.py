#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""davit's tokenizer beside Hugging Face's and tiktoken's, in one run, ids proven equal.

  compare_tokenizers.py LIBDAVIT.so tokenizer.json [TEXT...]  [--rounds N] [--tiktoken]

For every text (a UTF-8 file; each line is one input) the libraries take turns, N rounds,
and the best round counts: shared machines are noisy, so read the ratios. davit is called
through libdavit's davit_text with a fresh handle for every round, and so is Hugging Face's
tokenizer, so that the word caches of both are cold. Hugging Face's `encode` is called line by line, `encode_batch` not. --tiktoken builds
an Encoding from the file's own vocabulary, which is only right for files of tiktoken's
kind. --long TEXT encodes it as one input with one thread and with two, in turns, medians
of 7 rounds: wall and processor time. Needs the PyPI packages tokenizers and, with --tiktoken, tiktoken.
"""
import argparse
import ctypes
import json
import statistics
import time

import tokenizers


class TextParams(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("source", ctypes.c_char_p),
                ("plugin_paths", ctypes.c_void_p), ("trust_dirs", ctypes.c_void_p)]


class EncodeParams(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("flags", ctypes.c_uint32),
                ("n_threads", ctypes.c_uint32), ("max_ids", ctypes.c_uint64)]


class Encoding(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("ids", ctypes.POINTER(ctypes.c_int32)),
                ("n", ctypes.c_size_t), ("total", ctypes.c_size_t),
                ("starts", ctypes.c_void_p), ("ends", ctypes.c_void_p)]


class Davit:
    def __init__(self, library, source):
        self.lib = ctypes.CDLL(library)
        self.source = source.encode()
        self.text = ctypes.c_void_p()
        self.lib.davit_text_free.argtypes = [ctypes.c_void_p]
        self.params = EncodeParams(ctypes.sizeof(EncodeParams), 1, 1, 0)  # no special

    def load(self):
        params = TextParams(ctypes.sizeof(TextParams), self.source, None, None)
        if self.lib.davit_text_load(ctypes.byref(params), ctypes.byref(self.text), None):
            raise SystemExit("davit refuses the file: davit tokenize says why")

    def free(self):
        self.lib.davit_text_free(self.text)

    def one_call(self, lines):
        """All lines in one call of encode_batch on one thread; seconds and ids."""
        n = len(lines)
        texts = (ctypes.c_char_p * n)(*lines)
        lens = (ctypes.c_size_t * n)(*map(len, lines))
        out = (Encoding * n)()
        for e in out:
            e.struct_size = ctypes.sizeof(Encoding)
        start = time.perf_counter()
        status = self.lib.davit_text_encode_batch(self.text, texts, lens, ctypes.c_size_t(n),
                                                  ctypes.byref(self.params), out, None)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit("davit_text_encode_batch failed")
        ids = [e.ids[:e.n] for e in out]
        for e in out:
            self.lib.davit_encoding_clear(ctypes.byref(e))
        return seconds, ids


def long_input(davit, path, rounds=7):
    """One text by one thread and by two, in turns: the time is of davit_text_encode alone."""
    with open(path, "rb") as f:
        raw = f.read()
    wall, cpu = {1: [], 2: []}, {1: [], 2: []}
    for turn in range(2 * rounds):
        n = 1 + turn % 2
        params, out = EncodeParams(ctypes.sizeof(EncodeParams), 1, n, 0), Encoding()
        out.struct_size = ctypes.sizeof(Encoding)
        start, busy = time.perf_counter(), time.process_time()
        if davit.lib.davit_text_encode(davit.text, raw, ctypes.c_size_t(len(raw)),
                                       ctypes.byref(params), ctypes.byref(out), None):
            raise SystemExit("davit_text_encode failed")
        wall[n].append(time.perf_counter() - start)
        cpu[n].append(time.process_time() - busy)
        davit.lib.davit_encoding_clear(ctypes.byref(out))
    one, two = (statistics.median(wall[n]) for n in (1, 2))
    print("%s, %.1f MB in one input: one thread %.3f s, two %.3f s, %.2f times; processor time "
          "%.3f and %.3f s" % (path, len(raw) / 1e6, one, two, one / two,
                               *(statistics.median(cpu[n]) for n in (1, 2))))


def tiktoken_encoding(path):
    import tiktoken
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    letters, extra = {}, 0
    for byte in range(256):
        plain = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        letters[chr(byte) if plain else chr(256 + extra)] = byte
        extra += not plain
    ranks = {bytes(letters[c] for c in t): i for t, i in data["model"]["vocab"].items()}
    stages = data["pre_tokenizer"].get("pretokenizers", [data["pre_tokenizer"]])
    return tiktoken.Encoding("file", pat_str=stages[0]["pattern"]["Regex"],
                             mergeable_ranks=ranks, special_tokens={})


def timed(fn, lines):
    start = time.perf_counter()
    ids = [fn(line) for line in lines]
    return time.perf_counter() - start, ids


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("library")
    ap.add_argument("tokenizer")
    ap.add_argument("texts", nargs="*")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--tiktoken", action="store_true")
    ap.add_argument("--long", nargs="*", default=[], metavar="TEXT")
    args = ap.parse_args()

    best = {}
    davit = Davit(args.library, args.tokenizer)

    def load(name, fn):
        wall, cpu = time.perf_counter(), time.process_time()
        got = fn()
        for kind, took in (("wall", time.perf_counter() - wall),
                           ("processor", time.process_time() - cpu)):
            best[name, kind] = min(best.get((name, kind), 1e9), took)
        return got

    for _ in range(args.rounds):
        load("davit", davit.load)
        davit.free()
        load("tokenizers", lambda: tokenizers.Tokenizer.from_file(args.tokenizer))
    for kind in ("wall", "processor"):
        mine, other = best["davit", kind], best["tokenizers", kind]
        print("load, %s time: davit %.3f s, tokenizers %s %.3f s, ratio %.1f"
              % (kind, mine, tokenizers.__version__, other, other / mine))
    if args.long:
        davit.load()
        for path in args.long:
            long_input(davit, path)
        davit.free()
    tik = tiktoken_encoding(args.tokenizer) if args.tiktoken else None

    for path in args.texts:
        with open(path, encoding="utf-8", newline="") as f:
            lines = [line for line in f.read().split("\n")]
        raw = [line.encode() for line in lines]
        mb = sum(map(len, raw)) / 1e6
        took = {}
        for _ in range(args.rounds):
            davit.load()
            seconds, ids = davit.one_call(raw)
            davit.free()
            took["davit"] = min(took.get("davit", 1e9), seconds)
            hf = tokenizers.Tokenizer.from_file(args.tokenizer)  # its cache of words is cold, too
            seconds, other = timed(
                lambda s: hf.encode(s, add_special_tokens=False).ids, lines)
            took["tokenizers"] = min(took.get("tokenizers", 1e9), seconds)
            if ids != other:
                raise SystemExit(path + ": ids differ from tokenizers'")
            if tik:
                seconds, other = timed(tik.encode_ordinary, lines)
                took["tiktoken"] = min(took.get("tiktoken", 1e9), seconds)
        print("%s, %.1f MB: %s" % (path, mb, ", ".join(
            "%s %.1f MB/s (%.1fx)" % (k, mb / v, v / took["davit"])
            for k, v in took.items())))


if __name__ == "__main__":
    main()
