#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers of every family, and what Hugging Face's `tokenizers` makes of texts.

Writes, beside itself, <family>.json (a tokenizer.json with a vocabulary trained here on the
few lines below) and <family>.golden.json: cases with ids and decoded text in full, and the
sha256 of the ids and texts of random strings that the test makes again from the start value.

  python3 make_tokenizer_goldens.py                     all families
  python3 make_tokenizer_goldens.py --real FOLDER       hashes for real files:
      FOLDER/<name>/tokenizer.json -> real.golden.json (the files are not in the tree)
  python3 make_tokenizer_goldens.py --only FAMILY...    these
  python3 make_tokenizer_goldens.py --dump FAMILY [CHUNK]  the random lines, to find a
      difference
  python3 make_tokenizer_goldens.py --random FOLDER CHUNKS [FAMILY...]: hashes of CHUNKS times
      CHUNK random strings a family, each chunk with an alphabet of its own over all planes;
      files that are there are kept, so it may be stopped and started again.
      `test_tokenizer_golden FOLDER` compares. Last done 2026-11-30 with commit f872846: 1,340,000
      strings, 30,000 of each of 42 families and 20,000 of the other four, all equal (ids with and
      without special tokens, decoded with and without them).

  python3 make_tokenizer_goldens.py --count N --to FOLDER [--only FAMILY...]   more strings

  python3 make_tokenizer_goldens.py --corpus            ids of the texts in corpus/, as hashes:
      corpus.golden.json
  python3 make_tokenizer_goldens.py --spans             which bytes each id stands for:
      spans.golden.json

Needs the PyPI packages tokenizers 0.23, whose version is in the output, and sentencepiece.
"""
import hashlib
import json
import os
import re
import sys

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = HERE
START, COUNT, CHUNK = 20260, 4000, 10000

sys.path.insert(0, HERE)
import encoder_families  # noqa: E402

CORPUS = """The quick brown fox jumps over the lazy dog. It's what we've said: they'll say it, I'd say so.
The capital of France is Paris, and the capital of Japan is Tokyo. In 1999 there were 12345 of them.
def main(argc, argv):\n    return 0 if argc > 1 else sum(x * x for x in range(10))\n\n\n
static int parse(const char *text, size_t n)\n{\n\treturn text[n] == '\\0';\n}\n
Быстрая лиса прыгает через ленивую собаку. Столица Франции — Париж. ПРИВЕТ Привет привет
素早い茶色の狐がのろまな犬を飛び越える。日本の首都は東京です。敏捷的棕色狐狸跳过懒狗。法国的首都是巴黎。
Der schnelle Fuchs springt über den faulen Hund; größe, naïve, café, déjà vu, señor, crème brûlée.
الثعلب البني السريع يقفز فوق الكلب الكسول. שועל חום זריז קופץ מעל כלב עצלן. हिन्दी में एक वाक्य है।
😀 😃 👍🏽 👩‍👩‍👧 🇫🇷 x² + y² = z² ½ ⅔ № ™ → ← ∑ ∫ eBay iPhone camelCase HTMLParser XMLHttpRequest
""".replace("\\n", "\n").replace("\\t", "\t") * 3

# One code point for each class and each literal of the regexes, and known troublemakers.
ALPHABET = [ord(c) for c in "aeZsStTrReEvVmMlLdD'' \t\n\r09!-/([_$+^|~`.,:@#\"\\\0\x1b\x7f<>"] + [
    0x20, 0x20, 0x61, 0x74, 0x85, 0xa0, 0x180e, 0x2028, 0x2029, 0x200b, 0x200d, 0x17f, 0x212a,
    0x300, 0x301, 0x345, 0x903, 0x20dd, 0x660, 0x966, 0x2160, 0xb2, 0xbc, 0x1c5, 0x1c8, 0x2b0,
    0x3005, 0xaa, 0x5d0, 0x4e00, 0x9fa5, 0x9fa6, 0x3040, 0x3042, 0x3099, 0x309b, 0x30a0, 0x30a2,
    0x30fb, 0x30fc, 0x3007, 0x3000, 0x378, 0xe000, 0xfeff, 0xfffd, 0xad, 0x11de0, 0x1f600,
    0x1f3fb, 0xfe0f, 0x20000, 0x10ffff, 0xac00, 0x1100, 0x1161, 0xe9, 0x130, 0x1e9e, 0x344,
    0x958, 0x2581, 0x43f, 0x41f, 0x65e5, 0x672c]

# Texts that a family's stages look for, dropped into its random strings.
EXTRA = {
    "jais2": [" " * 9, " " * 130, " " * 600, " \u3000" * 6],
    "exaone_moe": ["a b c", "x \u0301y", "a  b"],
    "minicpm5": ["1234567", "  12"], "laguna": ["\n\n\n", " \r\n"],
    "tiny_aya": ["1234567", "12345a", "1234\u00bd", "1234_"],
    "youtu": ["가나ㄱ", "！…“”", "ㄅㄆ", "々〇〡〪", "カ゛", "가's", "！\n/"],
    "superbpe": ["1234567", "123\u00bd456789", "\u00bd123"],
    "afmoe": ["1234567", "1๒3๔5", "๑๒๓๔", "กข", "ะา", "豈", "ក១", "\u2e80"],
    "afmoe_wide": ["1234567", "1๒3๔5", "๑๒๓๔", "กข", "ะา", "豈", "谈", "\ue000"],
    "chameleon": ["IMGIMGABCZ", "IMGIMGZ", "IMGIMGIMGAZ", "IMGIMGABCDEZ", "<sentinel:12>",
                  "     ", "\t \n"],
}

TEXTS = [
    "", " ", "  ", "\n", "Hello", " Hello", "Hello world", "Hello  world", "a\n\n  b", "x<s>y",
    "<s>", "<s> <s>", "a <x> <x> b", "day DAY Day", "The capital of France is Paris.",
    "it's IT'S they'LL 'ſ we've", "12345 1234567 3.14 ½²Ⅷ", "eBay iPhone HTMLParser ПРИВЕТмир",
    "日本の首都は東京です。", "っているとき", "café cafe\u0301 naïve", "e\u0301\u0327\u0323",
    "👩‍👩‍👧 🇫🇷 😀", "a\u200bb \0\1x", "\tif (x) {\n\t\treturn;\n\t}\n", "  \r\n \r\n  x",
    "a" * 200, " " * 70 + "x", "=" * 130, "\u0300" * 80, "'" * 9, "king ing", "<tool> a<tool>b",
    "über größe crème", "हिन्दी مرحبا שלום", "▁a ▁▁ b▁", "¡¿«»", "x\u2581\u2581y  z",
]


class Random:
    """xorshift64; the test has the same."""

    def __init__(self, start):
        self.state = start * 0x9e3779b97f4a7c15 % 2 ** 64 or 1

    def below(self, n):
        x = self.state
        x ^= x << 13 & (2 ** 64 - 1)
        x ^= x >> 7
        x ^= x << 17 & (2 ** 64 - 1)
        self.state = x
        return (x >> 11) % n


def alphabet_of(name):
    return ALPHABET + (encoder_families.WIDE if name.startswith(("unigram", "bert")) else [])


def random_text(rnd, specials, alphabet=ALPHABET):
    out = []
    for _ in range(1 + rnd.below(24)):
        pick = rnd.below(40)
        if pick == 0 and specials:
            out.append(specials[rnd.below(len(specials))])
            continue
        times = 1 + (rnd.below(6) if rnd.below(8) == 0 else 0)
        out.append(chr(alphabet[rnd.below(len(alphabet))]) * times)
    return "".join(out)


# ---- tokenizers ----

def trained(pre, normalizer=None, alphabet=True, size=900):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre
    if normalizer:
        tok.normalizer = normalizer
    tok.train_from_iterator(CORPUS.split("\n"), trainers.BpeTrainer(
        vocab_size=size, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else []))
    return json.loads(tok.to_str())["model"]


def vocab_of(model):
    return model["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" "))
                            for m in model["merges"]]


def spec_regex():
    """The regexes of the families (facts; see the plugins' READMEs)."""
    word = r"[^\r\n\p{L}\p{N}]?"
    short = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    tail = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    sign = r"| ?[^\s\p{L}\p{N}]+"
    return {
        "llama3": short + "|" + word + r"\p{L}+|\p{N}{1,3}" + sign + r"[\r\n]*" + tail,
        "qwen2": short + "|" + word + r"\p{L}+|\p{N}" + sign + r"[\r\n]*" + tail,
        "qwen35": short + "|" + word + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
                  + tail,
        "o200k": word + upper + "*" + lower + "+" + short + "?|" + word + upper + "+" + lower
                 + "*" + short + r"?|\p{N}{1,3}" + sign + r"[\r\n/]*" + tail,
        "tekken": word + upper + "*" + lower + "+|" + word + upper + "+" + lower + r"*|\p{N}"
                  + sign + r"[\r\n/]*" + tail,
        "deepseek_v3": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
                       r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + tail,
        "kimi": r"[\p{Han}]+|" + word + no_han(upper) + "*" + no_han(lower) + "+" + short + "?|"
                + word + no_han(upper) + "+" + no_han(lower) + "*" + short + r"?|\p{N}{1,3}"
                + sign + r"[\r\n]*" + tail,
        "bailing": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++"
                   r"[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        "seed_coder": short + "|" + word + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + tail,
        "jais2": short + "|" + word + r"\p{L}+|\p{N}{1,3}" + sign + r"[\r\n]*|\s*[\r\n]+"
                 + "".join(r"|\s{%d}(?!\S)" % (512 >> i) for i in range(8))
                 + r"|\s{1,2}(?!\S)|\s{1}",
        "exaone_moe": short + "|" + word + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}" + sign
                      + r"[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        "minicpm5": short + "|" + word + r"\p{L}+|\p{N}+" + sign + r"[\r\n]*" + tail,
        "youtu": word + upper + "*" + lower + "+" + short + "?|" + word + upper + "+" + lower
                 + "*" + short + r"?|\p{N}" + sign + r"[\r\n/]*" + tail,
    }


# Stages in front of a regex of spec_regex(), or before ByteLevel alone (None).
FRONTS = {
    "minicpm5": ([r"\p{N}{1,3}"], "minicpm5"),
    "laguna": ([r"[^\n]+|[\n]+"], "qwen2"),
    "tiny_aya": ([r"\d{1,3}(?=(?:\d{3})*\b)"], "o200k"),
    "youtu": (["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+"], "youtu"),
    "superbpe": ([r"\p{N}+", r"(?=(\d{3})+(?!\d))"], None),
}
for first in ("\uf900", "\u8c48"):
    FRONTS["afmoe" if first == "\uf900" else "afmoe_wide"] = ([
        r"\p{Nd}{1,510}(?=(?>\p{Nd}{510})*(?:\P{Nd}|$))|\G\p{Nd}{510}",
        r"\A\p{Nd}{1,2}(?=\p{Nd}{3}+\z)", r"\A\p{Nd}{3}|\G\p{Nd}{3}",
        "[一-鿿㐀-䶿" + first + "-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ff"
        "က-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+"], "deepseek_v3")


def no_han(chars):
    return chars[:-1] + r"&&[^\p{Han}]]"


def staged(*regexes):
    """Split of each regex, Digits, ByteLevel: BLOOM and the older DeepSeek files."""
    return [split(regex) for regex in regexes]


def claimed_regex(folder, name):
    """A regex that stands in a plugin as a C macro: too long to have twice."""
    path = os.path.join(HERE, "../../../plugins/tokenizers", folder, folder + ".c")
    with open(path, encoding="utf-8") as f:
        text = f.read().replace("\\\n", "")
    body = re.search("#define " + name + "((?:\\s+\"(?:[^\"\\\\]|\\\\.)*\")+)", text).group(1)
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', body)
    return re.sub(r"\\(u....|U........)", lambda m: chr(int(m.group(1)[1:], 16)), "".join(parts))


def byte_level(pre, normalizer=None, alphabet=True, specials=(), bos=None, **flags):
    vocab, merges = vocab_of(trained(pre, normalizer, alphabet))
    if flags.get("ignore_merges"):
        # A token that no merge reaches: the whole piece is found, its parts are not joined.
        vocab.setdefault("ĠJapan", len(vocab))
        merges = [m for m in merges if "".join(m) != "ĠJapan"]
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, **flags))
    tok.pre_tokenizer = pre
    if normalizer:
        tok.normalizer = normalizer
    tok.decoder = decoders.ByteLevel()
    for token in specials:
        (tok.add_special_tokens if token.special else tok.add_tokens)([token])
    if bos:
        tok.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=bos + " $A", special_tokens=[
                (bos, tok.token_to_id(bos))])])
    return tok


def special(text, **flags):
    return AddedToken(text, special=True, normalized=False, **flags)


def plain(text, **flags):
    return AddedToken(text, special=False, **flags)


def split(regex, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(regex), behavior, invert)


def regex_family(name, normalizer=None, **more):
    pre = pre_tokenizers.Sequence([split(spec_regex()[name]),
                                   pre_tokenizers.ByteLevel(False, use_regex=False)])
    return byte_level(pre, normalizer, specials=[special("<s>"), plain("<tool>")], **more)


def spm(normalizer, pre, strip, byte_fallback=True, fuse_unk=True, specials=()):
    """A SentencePiece-like vocabulary: specials, bytes, then what training found."""
    vocab, merges = vocab_of(trained(pre_tokenizers.Metaspace(), None, alphabet=False, size=900))
    table = {"<unk>": 0, "<s>": 1, "</s>": 2}
    if byte_fallback:
        for b in range(256):
            table["<0x%02X>" % b] = len(table)
    rare = set("ßüéÀ東😀") if byte_fallback else set("ßüé😀東京abc")
    for text in ["▁", "▁▁", "▁▁▁▁"] + list(vocab):
        if text not in table and not (len(text) == 1 and text in rare):
            table[text] = len(table)
    merges = [m for m in [("▁", "▁"), ("▁▁", "▁▁")] + merges
              if all(x in table for x in (*m, "".join(m)))]
    tok = Tokenizer(models.BPE(vocab=table, merges=merges, unk_token="<unk>",
                               byte_fallback=byte_fallback, fuse_unk=fuse_unk))
    if normalizer:
        tok.normalizer = normalizer
    if pre:
        tok.pre_tokenizer = pre
    chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tok.decoder = decoders.Sequence(chain + ([decoders.Strip(" ", 1, 0)] if strip else []))
    tok.add_special_tokens([special(t) for t in ("<unk>", "<s>", "</s>")])
    for token in specials:
        tok.add_tokens([token])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A",
                                                       special_tokens=[("<s>", 1)])
    return tok


def families():
    space = normalizers.Replace(" ", "▁")
    legacy = normalizers.Sequence([normalizers.Prepend("▁"), space])
    three = pre_tokenizers.Sequence([
        split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(spec_regex()["deepseek_v3"]),
        pre_tokenizers.ByteLevel(False, use_regex=False)])
    flags = [special("<s>"), special("<x>", lstrip=True, rstrip=True),
             plain("ing", single_word=True, normalized=False), plain("day", normalized=True),
             plain("<tool>", rstrip=True, normalized=False), plain("<too", normalized=False),
             plain("Über", normalized=True), plain("\n\n", normalized=False)]
    yield "gpt2", byte_level(pre_tokenizers.ByteLevel(False), specials=[special("<s>")])
    yield "gpt2_prefix", byte_level(pre_tokenizers.ByteLevel(True), normalizers.NFC(),
                                    specials=[special("<s>")])
    yield "gpt2_digits", byte_level(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]),
        alphabet=False, specials=[special("<s>"), special("<|im_start|>")])
    yield "llama3", regex_family("llama3", bos="<s>", ignore_merges=True)
    yield "llama3_removed", byte_level(pre_tokenizers.Sequence([
        split(spec_regex()["llama3"], "removed", True),
        pre_tokenizers.ByteLevel(False, use_regex=False)]), specials=[special("<s>")])
    yield "qwen2", regex_family("qwen2", normalizers.NFC())
    yield "qwen35", regex_family("qwen35", normalizers.NFC())
    yield "o200k", regex_family("o200k", ignore_merges=True)
    yield "tekken", regex_family("tekken", bos="<s>")
    yield "deepseek_v3", byte_level(three, normalizers.Sequence([]), specials=[special("<s>")])
    cjk = "[一-龥ࠀ-一가-\ud7ff]+"
    digits, letters256 = pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False, use_regex=False)
    bloom = " ?[^(\\s|[.,!?…。，、।۔،])]+"
    yield "kimi", regex_family("kimi", ignore_merges=True)
    yield "bailing", regex_family("bailing")
    yield "seed_coder", regex_family("seed_coder")
    yield "deepseek_coder", byte_level(pre_tokenizers.Sequence(
        staged("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", cjk) + [digits, letters256]),
        specials=[special("<s>")])
    yield "deepseek_llm", byte_level(pre_tokenizers.Sequence(
        staged("[\r\n]", r"\s?[" + claimed_regex("deepseek_llm", "LIST") + "]+",
               r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", cjk) + [digits, letters256]),
        specials=[special("<s>")])
    yield "jais2", regex_family("jais2")
    yield "exaone_moe", regex_family("exaone_moe")
    for name, (fronts, regex) in FRONTS.items():
        stages = staged(*fronts) + ([split(spec_regex()[regex])] if regex else [])
        yield name, byte_level(pre_tokenizers.Sequence(stages + [letters256]),
                               specials=[special("<s>")])
    yield "chameleon", byte_level(pre_tokenizers.Sequence(
        staged("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )")
        + [digits, pre_tokenizers.Punctuation("isolated"), pre_tokenizers.ByteLevel(False)]),
        specials=[special("<s>")])
    yield "bloom", byte_level(pre_tokenizers.Sequence(staged(bloom) + [letters256]),
                              specials=[special("<s>")])
    yield "viking", byte_level(pre_tokenizers.Sequence(staged(bloom) + [digits, letters256]),
                               specials=[special("<s>")])
    yield "falcon", byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False),
        pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")]), specials=[special("<s>")])
    yield "added", byte_level(
        pre_tokenizers.ByteLevel(False),
        normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()]), specials=flags)
    yield "spm_legacy", spm(legacy, None, True)
    yield "spm_gemma", spm(space, pre_tokenizers.Split(" ", "merged_with_previous"), False,
                           specials=[plain("\n\n", normalized=False)])
    yield "spm_first", spm(None, pre_tokenizers.Metaspace("▁", "first", False), True)
    yield "spm_always", spm(None, pre_tokenizers.Metaspace("▁", "always", True), True)
    yield "spm_never", spm(None, pre_tokenizers.Metaspace("▁", "never", True), False)
    yield "spm_unk", spm(legacy, None, True, byte_fallback=False, fuse_unk=False)
    yield "spm_fuse", spm(legacy, None, True, byte_fallback=False, fuse_unk=True)
    yield from encoder_families.families(CORPUS, special)


# ---- goldens ----

def line(ids):
    return " ".join(map(str, ids)) + "\n"


def planes(start, n):
    """n scalars: half from the first two planes, where most characters are."""
    rnd, out = Random(start), []
    while len(out) < n:
        c = rnd.below(0x20000 if rnd.below(2) else 0x110000)
        if not 0xd800 <= c < 0xe000:
            out.append(c)
    return out


def random_lines(tok, specials, out):
    rnd = Random(out["start"])
    n_ids = tok.get_vocab_size() + 3
    for _ in range(out["count"]):
        text = random_text(rnd, specials, out["alphabet"])
        plain_ids = tok.encode(text, add_special_tokens=False).ids
        with_ids = tok.encode(text).ids
        noise = [rnd.below(n_ids) for _ in range(rnd.below(9))]
        both = with_ids + noise
        yield (text, line(plain_ids), line(with_ids), line(noise),
               tok.decode(both, skip_special_tokens=False) + "\n",
               tok.decode(both, skip_special_tokens=True) + "\n")


def frame(tok, name, chunk=None):
    """A golden without cases and hashes: what its random strings are made of."""
    specials = [a.content for _, a in sorted(tok.get_added_tokens_decoder().items())][:8]
    more = [] if chunk is None else planes(chunk + 1, 400)
    return {"versions": {"tokenizers": tokenizers.__version__},
            "start": START + (0 if chunk is None else 1 + chunk),
            "count": COUNT if chunk is None else CHUNK, "alphabet": alphabet_of(name) + more,
            "specials": specials + EXTRA.get(name, []), "n_ids": tok.get_vocab_size() + 3,
            "cases": []}


def golden(tok, name, cases, chunk=None):
    out = frame(tok, name, chunk)
    for text in cases:
        ids = tok.encode(text).ids
        out["cases"].append({
            "text": text, "ids": tok.encode(text, add_special_tokens=False).ids,
            "with": ids, "decoded": tok.decode(ids, skip_special_tokens=False),
            "skipped": tok.decode(ids, skip_special_tokens=True)})
    sums = [hashlib.sha256() for _ in range(4)]
    for _, a, b, _, c, d in random_lines(tok, out["specials"], out):
        for total, part in zip(sums, (a, b, c, d)):
            total.update(part.encode())
    for key, total in zip(("ids", "with", "decoded", "skipped"), sums):
        out["sha256_" + key] = total.hexdigest()
    return out


def write(name, value, indent=None, folder=None):
    with open(os.path.join(folder or OUT, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"), indent=indent)
        f.write("\n")


def all_families(only, made={}):
    """The committed files, read once."""
    if not made:
        for file in sorted(os.listdir(HERE)):
            name = file[:-len(".json")]
            if file.endswith(".json") and not file.endswith(".golden.json") and (
                    not only or name in only):
                made[name] = Tokenizer.from_file(os.path.join(HERE, file))
    return made.items()


def corpus():
    """{family: {file: [number of ids, sha256 of the ids without and with special tokens]}}"""
    out = {}
    for name, tok in all_families([]):
        out[name] = {}
        for file in sorted(os.listdir(os.path.join(HERE, "corpus"))):
            with open(os.path.join(HERE, "corpus", file), encoding="utf-8", newline="") as f:
                text = f.read()
            plain_ids = tok.encode(text, add_special_tokens=False).ids
            ids = line(plain_ids) + line(tok.encode(text).ids)
            out[name][file] = [len(plain_ids), hashlib.sha256(ids.encode()).hexdigest()]
    return out


# Normalisers and pre-tokenizers that change the text, put something in or drop something.
SPANS = ["qwen2", "added", "spm_legacy", "spm_gemma", "spm_first", "spm_always", "spm_fuse", "spm_unk",
         "gpt2_prefix", "unigram_t5", "unigram_albert", "unigram_blanks", "bert_cased", "bert_uncased",
         "bert_forms"]


def spans():
    """{family: [[text, ids, starts and ends in bytes]]}; Hugging Face counts characters."""
    out = {}
    for name, tok in all_families(SPANS):
        rnd, out[name] = Random(START), []
        for text in TEXTS + [random_text(rnd, [], alphabet_of(name)) for _ in range(40)]:
            if len(text) > 60:
                continue
            at = [0]
            for c in text:
                at.append(at[-1] + len(c.encode()))
            e = tok.encode(text, add_special_tokens=False)
            out[name].append([text, e.ids, [at[i] for pair in e.offsets for i in pair]])
    return out


def main():
    if sys.argv[1:2] == ["--spans"]:
        write("spans.golden.json", spans())
        return
    if sys.argv[1:2] == ["--real"]:
        out = {}
        for name in sorted(os.listdir(sys.argv[2])):
            path = os.path.join(sys.argv[2], name, "tokenizer.json")
            if os.path.exists(path):
                out[name] = golden(Tokenizer.from_file(path), name, TEXTS)
        write("real.golden.json", out)
        return
    if sys.argv[1:2] == ["--count"] and sys.argv[3:4] == ["--to"]:
        global COUNT, OUT
        COUNT, OUT = int(sys.argv[2]), sys.argv[4]
        del sys.argv[1:5]
    if sys.argv[1:2] == ["--corpus"]:
        write("corpus.golden.json", corpus())
        return
    if sys.argv[1:2] == ["--random"]:
        for chunk in range(int(sys.argv[3])):
            for name, tok in all_families(sys.argv[4:]):
                file = "%s.%d.golden.json" % (name, chunk)
                if not os.path.exists(os.path.join(sys.argv[2], file)):
                    write(file, golden(tok, name, [], chunk), folder=sys.argv[2])
        return
    only = sys.argv[2:] if sys.argv[1:2] == ["--only"] else []
    for name, tok in families():
        if only and name not in only:
            continue
        if sys.argv[1:2] == ["--dump"]:
            if name == sys.argv[2]:
                out = frame(tok, name, *map(int, sys.argv[3:]))
                for parts in random_lines(tok, out["specials"], out):
                    print(*map(repr, parts), sep="\n  ")
            continue
        # Through the file, because that is what the contract names.
        text = tok.to_str()
        write(name + ".json", json.loads(text))
        write(name + ".golden.json", golden(Tokenizer.from_str(text), name, TEXTS))


if __name__ == "__main__":
    main()
