#!/usr/bin/env python3
"""Write Llama GGUF files with random weights, as inputs of speed measurements.

    python3 make_random_llama.py OUT_DIR [--type BF16 Q8_0 Q4_K_M] [--layers 22]

The shape is TinyLlama's: 22 layers, hidden 2048, feed-forward 5632, 32 heads, 4 key/value
heads of 64, 32000 tokens: 1.1 billion weights. The files answer with nonsense, but every byte
is read and multiplied as in a real file. Q4_K_M takes Q6_K for the output head and for
attn_v and ffn_down of the layers for which llama.cpp's quantiser does (half of them), Q4_K for
the rest. Quantised blocks are random bytes under scales that keep weights near +-0.02, so
that activations stay finite.

The vocabulary is a stub that davit and llama.cpp read alike: a SentencePiece BPE of the 256
bytes and of short runs of Latin letters; "the cat sat on me" is six tokens with BOS.

Needs numpy and gguf (PyPI; made with gguf 0.19.0). The same arguments give the same bytes.
"""
import argparse
import itertools
import string
import sys
import time
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

HIDDEN, FEED, HEADS, KV_HEADS, HEAD = 2048, 5632, 32, 4, 64
VOCAB, CONTEXT = 32000, 2048
SPREAD = 0.02  # standard deviation of a weight, roughly
POOL = 1 << 24  # random bytes drawn once; every tensor takes them from another start

# Where the float16 scales and minima of the other block types lie.
HALVES = {Q.Q4_0: (0,), Q.Q4_1: (0, 2), Q.Q5_0: (0,), Q.Q5_1: (0, 2), Q.Q2_K: (80, 82),
          Q.Q3_K: (108,), Q.Q5_K: (0, 2), Q.IQ2_XXS: (0,), Q.IQ2_XS: (0,), Q.IQ2_S: (0,),
          Q.IQ3_XXS: (0,), Q.IQ3_S: (0,), Q.IQ1_S: (0,), Q.IQ4_NL: (0,), Q.IQ4_XS: (0,),
          Q.TQ1_0: (52,), Q.TQ2_0: (64,), Q.Q1_0: (0,)}
FILE_TYPES = {"BF16": gguf.LlamaFileType.MOSTLY_BF16,
              "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
              "Q4_K_M": gguf.LlamaFileType.MOSTLY_Q4_K_M}


class Noise:
    """Random bytes, cheap: slices of one pool."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.pool = rng.integers(0, 256, POOL, dtype=np.uint8)
        normal = rng.standard_normal(POOL // 4, dtype=np.float32) * np.float32(SPREAD)
        self.bf16 = (normal.view(np.uint32) >> 16).astype(np.uint16)

    def _take(self, source, n):
        start = int(self.rng.integers(0, source.size))
        out = np.empty(n, source.dtype)
        done = 0
        while done < n:
            part = source[start:start + n - done]
            out[done:done + part.size] = part
            done, start = done + part.size, 0
        return out

    def bytes(self, n):
        return self._take(self.pool, n)

    def halves(self, n, around):
        """@n float16 scales between 0.5 and 1.5 times @around, as two bytes each."""
        scale = self.rng.uniform(0.5, 1.5, n) * around
        return scale.astype(np.float16).view(np.uint8).reshape(n, 2)

    def blocks(self, kind, n_weights):
        """Random blocks of @kind, as the bytes of a tensor with @n_weights."""
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = n_weights // block
        if kind == Q.BF16:
            return self._take(self.bf16, n_weights).view(np.uint8)
        out = self.bytes(n * size).reshape(n, size)
        if kind == Q.Q8_0:
            out[:, :2] = self.halves(n, SPREAD / 74)
        elif kind == Q.Q4_K:  # d * sc * q - dmin * m, mean of q is 7.5
            d = self.halves(n, SPREAD / 200)
            out[:, :2] = d
            out[:, 2:4] = (d.reshape(-1).view(np.float16) * np.float16(7.5)).view(
                np.uint8).reshape(n, 2)
        elif kind == Q.Q6_K:  # signed 8-bit sub-scales, kept small
            scales = (out[:, 192:208] & 0x3F).astype(np.int16) - 32
            out[:, 192:208] = scales.astype(np.int8).view(np.uint8)
            out[:, 208:] = self.halves(n, SPREAD / 340)
        elif kind == Q.IQ1_M:  # its scale's bits are the high ones of four words
            for word, nibble in enumerate((0, 0, 0, 0x10)):
                at = 48 + 2 * word + 1
                out[:, at] = out[:, at] & 0x0F | nibble
        elif kind == Q.MXFP4:  # one power of two
            out[:, 0] = 119 + (out[:, 0] & 3)
        elif kind == Q.NVFP4:  # four unsigned e4m3
            out[:, :4] = 0x08 + (out[:, :4] & 0x07)
        for at in HALVES.get(kind, ()):
            out[:, at:at + 2] = self.halves(n, SPREAD / 200)
        return out.reshape(-1)


def more_bits(layer, layers):
    """llama.cpp's rule for the layers that get Q6_K in a Q4_K_M file."""
    return (layer < layers // 8 or layer >= 7 * layers // 8
            or (layer - layers // 8) % 3 == 2)


def kind_of(name, layer, layers, file_type):
    if file_type != "Q4_K_M":
        return Q[file_type]
    if name == "output.weight":
        return Q.Q6_K
    if name.endswith(("attn_v.weight", "ffn_down.weight")) and more_bits(layer, layers):
        return Q.Q6_K
    return Q.Q4_K


def tensors(layers):
    """(name, layer, rows, columns); rows = 0 for a float32 vector."""
    yield "token_embd.weight", -1, VOCAB, HIDDEN
    for i in range(layers):
        for name, rows, columns in (
                ("attn_norm", 0, HIDDEN), ("attn_q", HEADS * HEAD, HIDDEN),
                ("attn_k", KV_HEADS * HEAD, HIDDEN), ("attn_v", KV_HEADS * HEAD, HIDDEN),
                ("attn_output", HIDDEN, HEADS * HEAD), ("ffn_norm", 0, HIDDEN),
                ("ffn_gate", FEED, HIDDEN), ("ffn_up", FEED, HIDDEN),
                ("ffn_down", HIDDEN, FEED)):
            yield f"blk.{i}.{name}.weight", i, rows, columns
    yield "output_norm.weight", -1, 0, HIDDEN
    yield "output.weight", -1, VOCAB, HIDDEN


def vocabulary():
    """Tokens, scores and types. Every prefix of a piece is a piece, so that merges reach it."""
    mark = "\u2581"
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    letters = string.ascii_lowercase
    runs = ["".join(c) for n in (1, 2, 3) for c in itertools.product(letters, repeat=n)]
    # Pieces that begin a word first in the order of merging, then those inside of words.
    starts = [mark] + [mark + r for r in runs]
    room = VOCAB - len(tokens) - len(starts)
    pieces = starts + runs[:room]
    tokens += pieces
    kinds += [1] * len(pieces)
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces))]
    assert len(tokens) == VOCAB and len(set(tokens)) == VOCAB
    return tokens, scores, kinds


def write_model(path, file_type, layers, seed):
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_name(f"random llama {file_type}")
    w.add_file_type(FILE_TYPES[file_type])
    w.add_quantization_version(2)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FEED)
    w.add_block_count(layers)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_rope_dimension_count(HEAD)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(VOCAB)
    tokens, scores, kinds = vocabulary()
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores(scores)
    w.add_token_types(kinds)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)

    noise = Noise(seed)
    plan = []
    for name, layer, rows, columns in tensors(layers):
        kind = kind_of(name, layer, layers, file_type) if rows else Q.F32
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = max(rows, 1) * columns
        shape = (rows, columns) if rows else (columns,)
        n_bytes = n // block * size
        # A quantised tensor is declared with the shape of its bytes.
        raw = shape[:-1] + (shape[-1] // block * size,)
        w.add_tensor_info(name, raw if kind != Q.F32 else shape,
                          np.dtype(np.uint8 if kind != Q.F32 else np.float32), n_bytes,
                          raw_dtype=kind if kind != Q.F32 else None)
        plan.append((kind, n, raw))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    for kind, n, raw in plan:
        if kind == Q.F32:
            w.write_tensor_data(np.ones(n, np.float32))
        else:
            w.write_tensor_data(noise.blocks(kind, n).reshape(raw))
    w.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=Path, help="folder of the files")
    parser.add_argument("--type", nargs="+", choices=FILE_TYPES, default=list(FILE_TYPES))
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for file_type in args.type:
        path = args.out / f"random-llama-{args.layers}l-{file_type}.gguf"
        start = time.monotonic()
        write_model(path, file_type, args.layers, args.seed)
        print(f"{path}: {path.stat().st_size / 1e6:.0f} MB in {time.monotonic() - start:.1f} s",
              file=sys.stderr)


if __name__ == "__main__":
    main()
