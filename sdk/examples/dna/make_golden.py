#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tokenizer.json and golden.txt of the dna family, with tokenizers 0.23.3.

  python3 make_golden.py
"""
import pathlib

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["ACGTNA", "ACGTACGTACGT", "ACG TTT GGGGGGGG", "acgt ACGT", "NNNNNNNACG-TT", "plain words", "Tés AAAAAAAAAAAAAA"]

tok = Tokenizer(models.BPE())
tok.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex("[ACGTN]{1,6}|[^ACGTN]+"), behavior="isolated"),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
tok.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
tok.train_from_iterator(TEXTS * 3 + ["ACGTTGCAACGTTGCA NNNN acg"] * 5, trainer)
tok.save(str(HERE / "tokenizer.json"))
(HERE / "golden.txt").write_text(
    "".join(f"{text}\t{' '.join(map(str, tok.encode(text).ids))}\n" for text in TEXTS))
