#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small tokenizer.json files with what no training gives, and what Hugging Face's `tokenizers`
makes of them: added tokens that claim each other's blanks, whose normalised form is another, or
whose ids lie behind holes; NUL bytes; padding and truncation that contradict themselves.

  python3 make_odd_goldens.py      writes odd.golden.json beside itself:
      [{name, file (as a text: Jansson takes no NUL in keys), encode: [[text, special, ids]], decode: [[ids, skip, text]]}]

Needs the PyPI package tokenizers 0.23; 0.22 decodes normalized added tokens as they are spelled.
"""
import json
import os

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
ON = {"normalized": True}
NONE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 5}, "merges": []}


def added(content, id, **flags):
    return {"id": id, "content": content,
            **{k: flags.get(k, False)
               for k in ("single_word", "lstrip", "rstrip", "normalized", "special")}}


def file(tokens=(), model=None, **members):
    out = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer",
                         "post_processor", "decoder"))
    letters = {"type": "BPE", "vocab": {c: i for i, c in enumerate("▁abcxy")}, "merges": []}
    return {"version": "1.0", **out, **members, "added_tokens": list(tokens),
            "model": model or letters}


def bert(**members):
    return file(model={"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "#",
                       "max_input_chars_per_word": 4,
                       "vocab": {t: i for i, t in enumerate(["?", "a", "#a", "b", "#\0", "\0"])}},
                pre_tokenizer={"type": "WhitespaceSplit"},
                post_processor={"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 3]},
                **members)


def pad(strategy, multiple=None, direction="Right"):
    return {"strategy": strategy, "direction": direction, "pad_to_multiple_of": multiple,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "?"}


def cut(most):
    return {"direction": "Right", "max_length": most, "strategy": "LongestFirst", "stride": 0}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def words(*steps):
    """Metaspace that marks the start of the whole text only: where a text starts counts."""
    return file(normalizer={"type": "Sequence", "normalizers": list(steps)},
                pre_tokenizer={"type": "Sequence", "pretokenizers": [
                    {"type": "WhitespaceSplit"},
                    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                     "split": True}]})


SPACED = {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, replace({"String": " "}, "▁"), {"type": "Lowercase"}]}

CASES = {
    "ids_behind_holes": (file([added("c", 5), added("new", 6), added("more", 7)], NONE),
                         ["a new more c b"]),
    "a_blank_is_claimed_twice": (
        file([added("x", 4, rstrip=True), added(" ", 6, lstrip=True, rstrip=True)]),
        ["x   a", "x a", "a   b", "x  x"]),
    "a_blank_within_a_claimed_one": (file([added("x", 4, rstrip=True), added(" ", 6)]),
                                     ["x   a", "x a", "a   b"]),
    "normalized_ones_decode_as_such": (
        file([added("<T ool>", 6, **ON), added("<R aw>", 7), added("a", 1, **ON),
              added("<S P>", 8, special=True, **ON), added("<s>", 9, special=True)],
             normalizer=SPACED),
        ["b<T ool>", "<T ool>a <S P>", "<R aw><s>A"]),
    "the_normal_form_is_a_special_token": (
        file([added("day", 6, special=True), added("Day", 7, **ON)],
             normalizer={"type": "Lowercase"}), ["DAY day a", "Day"]),
    "an_entry_twice": (
        file([added("S", 6, special=True), added("S", 6, rstrip=True, **ON)],
             normalizer={"type": "Lowercase"}, decoder={"type": "Fuse"}), ["S a", "s  a"]),
    "an_entry_twice_and_back": (
        file([added("S", 6, **ON), added("S", 6)], normalizer={"type": "Lowercase"}),
        ["S a", "s  a"]),
    "nul_in_added_tokens": (file([added("a\0b", 6), added("\0", 7)]), ["a\0b\0a\0", "ab"]),
    "nul_in_a_word": (bert(), ["a\0", "\0a", "a\0aaa", "a\0aa"]),
    "the_unknown_has_a_nul": (
        file(model={"type": "BPE", "unk_token": "a\0b", "vocab": {"a": 0, "a\0b": 1},
                    "merges": []}), ["ac"]),
    "fixed_length_and_a_multiple": (bert(padding=pad({"Fixed": 3}, 4)),
                                    ["a", "a b a b", "a b a b a"]),
    "a_multiple_on_the_left": (bert(padding=pad("BatchLongest", 4, "Left")), ["", "a b a"]),
    "shorter_than_what_is_added": (bert(truncation=cut(1)), ["a b a", ""]),
    "as_short_as_what_is_added": (bert(truncation=cut(2)), ["a b a", ""]),
    "the_start_was_two_characters": (words(replace({"String": "ab"}, "c")),
                                     ["abb", "ab abab", "cab"]),
    "the_start_was_one_character": (words(replace({"String": "a"}, "c")), ["abb", "a a"]),
    "the_start_was_blanks": (words(replace({"Regex": " {2,}"}, "c")), ["  b", "a  b", " b"]),
    "the_start_was_a_match": (words(replace({"Regex": "a+"}, "c")), ["aab", "ab", "baa"]),
    "what_vanishes_lets_marks_meet": (
        file(normalizer=replace({"String": " "}, "▁"),
             model={"type": "BPE", "vocab": {"▁": 0, "▁▁": 1, "a": 2},
                    "merges": ["▁ ▁"]}), [" \n  a", "a z  z b", "   \n "]),
    "two_processors_round_all": (
        file(post_processor={"type": "Sequence", "processors": [
            {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]},
            {"type": "RobertaProcessing", "cls": ["c", 3], "sep": ["x", 4], "trim_offsets": True,
             "add_prefix_space": True}]}), ["ab", ""]),
}


def main():
    out = []
    for name, (content, texts) in CASES.items():
        tok = Tokenizer.from_str(json.dumps(content))
        encode = [[text, special, tok.encode(text, add_special_tokens=special).ids]
                  for text in texts for special in (False, True)]
        every = list(range(tok.get_vocab_size() + 3))
        decode = [[ids, skip, tok.decode(ids, skip_special_tokens=skip)]
                  for ids in [every, every[::-1]] + [e[2] for e in encode]
                  for skip in (False, True)]
        out.append({"name": name, "file": json.dumps(content, ensure_ascii=False), "encode": encode, "decode": decode})
    with open(os.path.join(HERE, "odd.golden.json"), "w", encoding="utf-8") as f:
        f.write("[" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":"))
                                 for case in out) + "]\n")


if __name__ == "__main__":
    main()
