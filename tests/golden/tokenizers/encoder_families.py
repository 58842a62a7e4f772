#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Families of make_tokenizer_goldens.py that encoder and encoder-decoder models carry:
Unigram with a SentencePiece charsmap, WordPiece, and normalisers and decoders beside them.

Needs the PyPI package sentencepiece too: it trains the Unigram vocabularies, and the charsmap
nmt_nfkc is the one built into it.
"""
import base64
import io
import json
import random

import sentencepiece
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

# All planes: marks, joiners, compatibility forms and the unassigned come up often enough.
RANDOM = random.Random(20261130)
WIDE = [0x200c, 0x200d, 0xfe0f, 0x301, 0x308, 0x327, 0x94d, 0x915, 0x930, 0x1100, 0xac01, 0x11a8,
        0x600, 0x903, 0xa9, 0xae, 0x1f468, 0x1f469, 0x1f3fd, 0x1f1e6, 0xfb01, 0xff21, 0xff76,
        0xff9e, 0x2460, 0x33a5, 0x3392, 0xfdfa, 0x1e9b, 0x323, 0x212b, 0x2126, 0x1d7d8, 0x8, 0xb,
        0x1f, 0x8f, 0x9f, 0x1680, 0x200e, 0x200f, 0xfeff, 0x2015, 0xff5e, 0x301c, 0x3164, 0x115f,
        0xd, 0xa, 0x9, 0x3ff, 0x9fff, 0x3400, 0x2b820, 0xf900, 0x2f800, 0x16d63, 0x11f02, 0x1107f]
for plane, times in ((0, 400), (1, 160), (2, 20), (3, 10), (14, 40), (15, 6), (16, 6)):
    for _ in range(times):
        c = plane * 0x10000 + RANDOM.randrange(0x10000)
        if not 0xD800 <= c < 0xE000:
            WIDE.append(c)


def fields(message):
    """(number, value) of a protobuf message; value is bytes or an int."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        n = varint() if key & 7 == 2 else 4 if key & 7 == 5 else 8
        yield key >> 3, message[at:at + n]
        at += n


def train(corpus, **options):
    """(model bytes, processor) of a Unigram model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([t for t in corpus.split("\n") if t]), model_writer=model,
        model_type="unigram", minloglevel=2, num_threads=1, hard_vocab_limit=False,
        **options)
    return model.getvalue(), sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def charsmap(model):
    spec = dict(fields(model))[3]
    return dict(fields(spec)).get(2, b"")


def scored(sp, front, behind, skip=3):
    """[text, score] as Hugging Face's converters write them."""
    return ([(t, 0.0) for t in front]
            + [(sp.id_to_piece(i), sp.get_score(i)) for i in range(skip, sp.get_piece_size())]
            + [(t, 0.0) for t in behind])


def unigram(vocab, unk, normalizer, pre, decoder, post, specials, byte_fallback=False):
    tok = Tokenizer(models.Unigram(vocab, unk, byte_fallback))
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer = pre
    tok.decoder = decoder
    tok.add_special_tokens(specials)
    tok.post_processor = processors.TemplateProcessing(
        single=post, special_tokens=[(t, tok.token_to_id(t)) for t in post.split() if t != "$A"])
    return tok


def unigrams(corpus, special):
    model, sp = train(corpus, vocab_size=400, normalization_rule_name="nmt_nfkc")
    small_model, small = train(corpus.lower(), vocab_size=560, character_coverage=0.98,
                               normalization_rule_name="identity", byte_fallback=True)
    metaspace = pre_tokenizers.Metaspace
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace()])
    blanks = Regex(" {2,}")
    nmt = normalizers.Precompiled(charsmap(model))
    yield "unigram_t5", unigram(
        scored(sp, ["<pad>", "</s>", "<unk>"], ["<extra_id_1>", "<extra_id_0>"]), 2, nmt, words,
        decoders.Metaspace(), "$A </s>",
        [special(t) for t in ("<pad>", "</s>", "<unk>", "<extra_id_1>", "<extra_id_0>")])
    yield "unigram_blanks", unigram(
        scored(sp, ["<s>", "<pad>", "</s>", "<unk>"], ["<mask>"]), 3,
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(False, True),
                              normalizers.Replace(blanks, "▁")]),
        metaspace(), decoders.Metaspace(), "<s> $A </s>",
        [special(t) for t in ("<s>", "<pad>", "</s>", "<unk>")] + [special("<mask>", lstrip=True)])
    yield "unigram_albert", unigram(
        scored(sp, ["<pad>", "<unk>", "[CLS]", "[SEP]"], []), 1,
        normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'),
                              normalizers.NFKD(), normalizers.StripAccents(),
                              normalizers.Lowercase(),
                              normalizers.Replace(Regex("[0-9]+|\\s\\s"), "x")]),
        words, decoders.Metaspace(), "[CLS] $A [SEP]",
        [special(t) for t in ("<pad>", "<unk>", "[CLS]", "[SEP]")])
    chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
             decoders.Strip(" ", 1, 0)]
    yield "unigram_bytes", unigram(
        scored(small, ["<unk>", "<s>", "</s>"], []), 0, None, metaspace("▁", "first", False),
        decoders.Sequence(chain), "<s> $A", [special(t) for t in ("<unk>", "<s>", "</s>")],
        byte_fallback=True)


def wordpiece(corpus, normalizer, pre, decoder, post, special, size=500, **options):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizer
    tok.pre_tokenizer = pre
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(corpus.split("\n"), trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=names))
    vocab = json.loads(tok.to_str())["model"]["vocab"]
    out = Tokenizer(models.WordPiece(vocab=vocab, unk_token="[UNK]", **options))
    out.normalizer, out.pre_tokenizer, out.decoder = normalizer, pre, decoder
    out.add_special_tokens([special(t) for t in names])
    out.post_processor = post(out.token_to_id)
    return out


def wordpieces(corpus, special):
    bert = normalizers.BertNormalizer
    pre = pre_tokenizers.BertPreTokenizer()

    def template(find):
        return processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[
            ("[CLS]", find("[CLS]")), ("[SEP]", find("[SEP]"))])

    def bert_post(find):
        return processors.BertProcessing(("[SEP]", find("[SEP]")), ("[CLS]", find("[CLS]")))

    def roberta_post(find):
        return processors.RobertaProcessing(("[SEP]", find("[SEP]")), ("[CLS]", find("[CLS]")))

    yield "bert_uncased", wordpiece(corpus, bert(), pre, decoders.WordPiece(), template, special)
    yield "bert_cased", wordpiece(corpus, bert(lowercase=False), pre,
                                  decoders.WordPiece(cleanup=False), bert_post, special,
                                  max_input_chars_per_word=12)
    yield "bert_plain", wordpiece(
        corpus, bert(clean_text=False, handle_chinese_chars=False, strip_accents=False,
                     lowercase=True),
        pre_tokenizers.WhitespaceSplit(), decoders.BPEDecoder("##"), roberta_post, special)
    yield "bert_forms", wordpiece(
        corpus, normalizers.Sequence([normalizers.NFD(), normalizers.Nmt(), normalizers.NFKC(),
                                      normalizers.Replace(Regex("[$€]|`|[0-9]{3}"), "")]),
        pre_tokenizers.Whitespace(), decoders.CTC("[PAD]", "a", True), template, special)


def families(corpus, special):
    yield from unigrams(corpus, special)
    yield from wordpieces(corpus, special)
    for name, tok in wordpieces(corpus, special):
        if name == "bert_cased":
            tok.enable_truncation(9, direction="left")
            tok.enable_padding(direction="left", pad_id=0, pad_token="[PAD]",
                               pad_to_multiple_of=4)
            yield "bert_fit_left", tok
        if name == "bert_uncased":
            tok.enable_truncation(12)
            tok.enable_padding(length=7, pad_id=0, pad_token="[PAD]")
            yield "bert_fit", tok
