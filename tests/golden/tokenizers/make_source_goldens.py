#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small vocabularies of other kinds than tokenizer.json, and what their own libraries make
of texts.

Writes, beside itself, sources/<name>.{model,json} and sources/<name>.golden.json: texts and
their ids. A SentencePiece model is trained here on the lines of make_tokenizer_goldens.py;
tekken.json holds the rank list that training finds in them.

  python3 make_source_goldens.py [--unigram|--charsmap]    all, or the Unigram ones, or those of
      BPE with a charsmap

Needs the PyPI packages sentencepiece, mistral-common and tokenizers; versions are in the
output.
"""
import base64
import importlib.metadata
import io
import json
import os
import sys
import tempfile

import sentencepiece
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "sources")
COUNT = 300

sys.path.insert(0, HERE)
import encoder_families  # noqa: E402
import make_tokenizer_goldens as texts  # noqa: E402


def all_texts(specials, alphabet=texts.ALPHABET, count=COUNT):
    rnd = texts.Random(texts.START)
    out = [t for t in texts.TEXTS]
    for _ in range(count):
        out.append(texts.random_text(rnd, specials, alphabet))
    return out


def write(name, package, encode, specials, decode=None, **how):
    cases = [{"text": t, "ids": encode(t)} for t in all_texts(specials, **how)]
    for case in cases if decode else []:
        case["decoded"] = decode(case["ids"])
    versions = {package: importlib.metadata.version(package)}
    with open(os.path.join(OUT, name + ".golden.json"), "w", encoding="utf-8") as f:
        json.dump({"versions": versions, "cases": cases}, f, ensure_ascii=False,
                  separators=(",", ":"))
        f.write("\n")


def spm_model(name, **options):
    model = io.BytesIO()
    lines = [line for line in texts.CORPUS.split("\n") if line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="bpe", minloglevel=2,
        num_threads=1, **options)
    with open(os.path.join(OUT, name + ".model"), "wb") as f:
        f.write(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def spm(name, specials, **options):
    sp = spm_model(name, normalization_rule_name="identity", remove_extra_whitespaces=False,
                   **options)
    write(name, "sentencepiece", lambda t: [sp.bos_id()] + sp.encode(t), specials)


# Some of what nmt_nfkc does, whose charsmap is 240 kB: forms, blanks, what disappears, and a
# text that begins a longer one.
RULES = {"\u2167": "VIII", "\ufb01": "fi", "\u00bd": "1/2", "\t": " ", "\n": " ", "\r": " ",
         "\u3000": " ", "\u00a0": " ", "\u200b": "", "e\u0301": "\u00e9", "\u0301": "",
         "\uff01": "!", "\u30ab": "ka", "\u30ab\u3099": "ga", "\u2028": " ", "\u00e9": "e",
         "\U0001f600": ":)", "\u2581": "_"}


def spm_charsmap(name, specials, **options):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        for text, to in RULES.items():
            f.write("%s\t%s\n" % tuple(" ".join("%X" % ord(c) for c in s) for s in (text, to)))
        f.flush()
        sp = spm_model(name, normalization_rule_tsv=f.name, **options)
    extra = list(RULES) * 2 + ["  ", "day", " \u3000 ", "a\u00a0 b"]
    write(name, "sentencepiece", lambda t: [sp.bos_id()] + sp.encode(t), specials + extra,
          lambda ids: None if sp.unk_id() in ids else sp.decode(ids))


def unigram(name, specials, **options):
    model, sp = encoder_families.train(texts.CORPUS, **options)
    with open(os.path.join(OUT, name + ".model"), "wb") as f:
        f.write(model)

    def decode(ids):
        # an unknown is " \u2047 " there, and its own text with davit
        return None if sp.unk_id() in ids else sp.decode(ids)

    write(name, "sentencepiece",
          lambda t: ([sp.bos_id()] if sp.bos_id() >= 0 else []) + sp.encode(t), specials, decode,
          alphabet=texts.ALPHABET + encoder_families.WIDE)


def tekken():
    pre = texts.pre_tokenizers.Sequence([
        texts.split(texts.spec_regex()["tekken"]),
        texts.pre_tokenizers.ByteLevel(False, use_regex=False)])
    vocab, _ = texts.vocab_of(texts.trained(pre))
    letters = {}
    extra = 0
    for byte in range(256):
        plain = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        letters[chr(byte) if plain else chr(256 + extra)] = byte
        extra += not plain
    tokens = [bytes(letters[c] for c in t) for t, _ in sorted(vocab.items(),
                                                              key=lambda x: x[1])]
    tokens.sort(key=lambda t: len(t) > 1)  # single bytes first, in the order of bytes
    tokens[:256] = [bytes([b]) for b in range(256)]
    entries = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
               for i, t in enumerate(tokens)]
    # Some more than the model uses, as real files have.
    file = {"config": {"pattern": texts.spec_regex()["tekken"],
                       "num_vocab_tokens": len(entries),
                       "default_vocab_size": len(entries) - 20 + 30,
                       "default_num_special_tokens": 30, "version": "v3"},
            "vocab": entries}
    path = os.path.join(OUT, "tekken_small.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(file, f, separators=(",", ":"))
        f.write("\n")
    tok = Tekkenizer.from_file(path)
    write("tekken_small", "mistral-common", lambda t: tok.encode(t, True, False),
          ["[INST]", "<s>"])


os.makedirs(OUT, exist_ok=True)
if sys.argv[1:] == ["--unigram"]:
    spm = tekken = spm_charsmap = lambda *a, **k: None
if sys.argv[1:] == ["--charsmap"]:
    spm = tekken = unigram = lambda *a, **k: None
unigram("unigram_nmt", ["<s>", "[INST]", "x  y"], vocab_size=400,
        normalization_rule_name="nmt_nfkc", control_symbols=["[INST]"],
        user_defined_symbols=["day", "x  y", "Ⅷ"])
unigram("unigram_bytes", ["<s>"], vocab_size=560, character_coverage=0.98, byte_fallback=True,
        normalization_rule_name="identity", add_dummy_prefix=False, bos_id=-1)
spm("spm_bytes", ["<s>", "[INST]", "\n\n"], vocab_size=760, byte_fallback=True,
    control_symbols=["[INST]"], user_defined_symbols=["\n\n", "day"])
spm("spm_plain", ["<s>"], vocab_size=420, add_dummy_prefix=False)
spm_charsmap("spm_charsmap", ["<s>", "[INST]"], vocab_size=760, byte_fallback=True,
             control_symbols=["[INST]"], user_defined_symbols=["day", "x  y", "\u2167", "ka"])
spm_charsmap("spm_charsmap_bare", ["<s>"], vocab_size=420, add_dummy_prefix=False,
             remove_extra_whitespaces=False, user_defined_symbols=["day", "\u00bd"])
tekken()
