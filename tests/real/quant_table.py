#!/usr/bin/env python3
"""SmolLM2-135M in every quantised layout: davit against transformers on the dequantised weights.

Takes the GGUF that scripts/fetch-models.sh writes, dequantises it with the gguf package and stores
it again in each layout: rounded to the nearest (no calibration: the layouts are tested, not
the methods), packed by ../golden/make_quant.py, or in blocks by llama.cpp's own quantiser. GGUF
types of 256 elements go where rows are long enough (ffn_down, K = 1536), Q8_0 elsewhere.

For each: greedy ids (32 tokens, --activations f32) and perplexity must equal those of
transformers in float32 with the weights that the codes stand for. One layout at a time lies on
disk. Prints a Markdown table; exit status 1 if any layout differs.

    python3 quant_table.py build/models build/bin/davit [--only NAME ...] [--work DIR]

Packages as in make_real_goldens.py, and llama-cpp-python==0.3.36 for the GGUF types.
"""
import argparse
import ctypes
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]
import make_quant as mq  # noqa: E402
import make_real_goldens as mr  # noqa: E402
import quant_bnb as qb  # noqa: E402

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW, N_WINDOWS, N_LOGITS, N_PROMPTS = 512, 1, 64, 2
torch.set_grad_enabled(False)
E4M3 = mq.e4m3(np.arange(256))


# ---- rounding to the nearest code ----

def grouped(w, g):
    return w.reshape(w.shape[0], -1, g)


def e2m1_codes(x):
    """Nearest of the sixteen values; halves go to the even code."""
    mid = np.array([.25, .75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)
    a = np.abs(x)
    code = np.searchsorted(mid, a, side="left").astype(np.uint8)
    for i in (1, 3, 5):  # a tie above an odd code goes up
        code[a == mid[i]] = i + 1
    return code | (np.signbit(x) << 3).astype(np.uint8)


def to_e4m3(x):
    t = torch.from_numpy(np.ascontiguousarray(np.clip(x, -448, 448), np.float32))
    return t.to(torch.float8_e4m3fn).view(torch.uint8).numpy()


def asymmetric(w, g):
    """-> codes [N,K], zeros [N,G], scales f16 [N,G] of 4 bits."""
    x = grouped(w, g)
    low, high = np.minimum(x.min(-1), 0), np.maximum(x.max(-1), 0)
    s = np.maximum((high - low) / 15, 1e-5).astype(np.float16)
    f = s.astype(np.float32)
    z = np.clip(np.round(-low / f), 0, 15)
    q = np.clip(np.round(x / f[..., None]) + z[..., None], 0, 15)
    return q.astype(np.uint8).reshape(w.shape), z.astype(np.uint8), s


def words4(codes):
    """make_quant's bits_words for codes of four bits, without its memory."""
    c = np.ascontiguousarray(codes, np.uint8)
    out = np.ascontiguousarray(c[..., 0::2] | c[..., 1::2] << 4).view("<u4")
    assert np.array_equal(out[:2], mq.bits_words(c[:2], 4))
    return out


def awq(g):
    def make(w):
        q, z, s = asymmetric(w, g)
        idx = np.arange(w.shape[1]) // g
        order = np.array([0, 2, 4, 6, 1, 3, 5, 7])

        def pack(x):
            return words4(x.reshape(x.shape[0], -1, 8)[..., order].reshape(x.shape))
        values = (q.astype(np.float32) - z[:, idx]) * s.astype(np.float32)[:, idx]
        return {"qweight": ("I32", pack(q.T)), "qzeros": ("I32", pack(z.T)),
                "scales": ("F16", np.ascontiguousarray(s.T))}, values
    return make


def gptq(g, order):
    """Act order: columns of large norm come first, as if activations were alike."""
    def make(w):
        k = w.shape[1]
        perm = np.argsort(-(w.astype(np.float64) ** 2).sum(0), kind="stable") if order else np.arange(k)
        idx = np.empty(k, np.int64)
        idx[perm] = np.arange(k) // g
        q, z, s = asymmetric(w[:, perm], g)
        if not order:  # symmetric
            s = np.maximum(np.abs(grouped(w, g)).max(-1) / 7, 1e-5).astype(np.float16)
            z = np.full(s.shape, 8, np.uint8)
            q = np.clip(np.round(w / s.astype(np.float32)[:, idx]) + 8, 0, 15).astype(np.uint8)
        else:
            q = q[:, np.argsort(perm)]
        values = (q.astype(np.float32) - z[:, idx]) * s.astype(np.float32)[:, idx]
        return {"qweight": ("I32", words4(q).T),
                "qzeros": ("I32", words4((z.T.astype(np.int64) - 1) % 16)),
                "scales": ("F16", np.ascontiguousarray(s.T)),
                "g_idx": ("I32", idx.astype(np.uint32))}, values
    return make


def fp8_block(w):
    n, k = w.shape
    rows, cols = np.arange(n) // 128, np.arange(k) // 128
    s = np.zeros((rows[-1] + 1, cols[-1] + 1), np.float32)
    for r in range(s.shape[0]):
        for c in range(s.shape[1]):
            s[r, c] = np.abs(w[128 * r:128 * r + 128, 128 * c:128 * c + 128]).max() / np.float32(448)
    full = s[rows[:, None], cols[None]]
    codes = to_e4m3(w / full)
    return {"weight": ("F8_E4M3", codes), "weight_scale_inv": ("F32", s)}, E4M3[codes] * full


def w4a16(g):
    def make(w):
        raw, s = mq.bf16(np.maximum(np.abs(grouped(w, g)).max(-1) / 7.5, 1e-6))
        idx = np.arange(w.shape[1]) // g
        q = np.clip(np.round(w / s[:, idx]), -8, 7)
        return {"weight_packed": ("I32", words4((q + 8).astype(np.uint8))),
                "weight_scale": ("BF16", raw),
                "weight_shape": ("I64", np.array(w.shape, np.int64))}, q.astype(np.float32) * s[:, idx]
    return make


def nvfp4(w):
    big = np.float32(2688) / np.abs(w).max()
    sc = to_e4m3(np.abs(grouped(w, 16)).max(-1) / 6 * big)
    s = (E4M3[sc] / big)[:, np.arange(w.shape[1]) // 16]
    codes = e2m1_codes(w / np.where(s == 0, 1, s)) * (s != 0)
    return {"weight_packed": ("U8", mq.nibbles(codes)), "weight_scale": ("F8_E4M3", sc),
            "weight_global_scale": ("F32", big.reshape(1))}, mq.E2M1[codes] * s


def mxfp4(w):
    e = np.floor(np.log2(np.maximum(np.abs(grouped(w, 32)).max(-1), 1e-30))).astype(np.int64) - 2 + 127
    sc = np.clip(e, 0, 254).astype(np.uint8)
    s = mq.e8m0(sc)[:, np.arange(w.shape[1]) // 32]
    codes = e2m1_codes(w / s)
    return {"weight_packed": ("U8", mq.nibbles(codes)), "weight_scale": ("U8", sc)}, mq.E2M1[codes] * s


def nf4(w):
    n, k = w.shape
    absmax = np.abs(w.reshape(-1, 64)).max(-1)
    x = w.reshape(-1, 64) / absmax[:, None]
    codes = np.searchsorted((qb.NF4[1:] + qb.NF4[:-1]) / 2, x).astype(np.uint8).reshape(-1)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [n, k]}
    parts = {"weight": ("U8", (codes[0::2] << 4 | codes[1::2]).reshape(-1, 1)),
             "weight.quant_map": ("F32", qb.NF4), "weight.absmax": ("F32", absmax),
             "weight.quant_state.bitsandbytes__nf4": ("U8", np.frombuffer(json.dumps(state).encode(), np.uint8))}
    return parts, (qb.NF4[codes].reshape(-1, 64) * absmax[:, None]).reshape(n, k)


def int8(w):
    scb = np.abs(w).max(-1)
    q = np.round(w * (np.float32(127) / scb)[:, None]).astype(np.int8)
    return ({"weight": ("I8", q), "SCB": ("F32", scb), "weight_format": ("U8", np.uint8(0).reshape(()))},
            q.astype(np.float32) * (scb * (np.float32(1) / np.float32(127)))[:, None])


FOLDERS = {
    "AWQ g64": (awq(64), mq.awq_config(group=64)),
    "AWQ g32": (awq(32), mq.awq_config(group=32)),
    "GPTQ g64": (gptq(64, False), mq.gptq_config(4, 64)),
    "GPTQ g64 act-order": (gptq(64, True), mq.gptq_config(4, 64, sym=False, desc_act=True)),
    "FP8 128x128": (fp8_block, mq.fp8_config([128, 128])),
    "W4A16 g64": (w4a16(64), mq.ct_config("pack-quantized", 4, "int", "group", 64)),
    "NVFP4": (nvfp4, mq.ct_config("nvfp4-pack-quantized", 4, "float", "tensor_group", 16)),
    "bitsandbytes nf4": (nf4, qb.bnb_config("nf4")),
    "bitsandbytes int8": (int8, qb.bnb_config("int8")),
    "MXFP4": (mxfp4, mq.ct_config("mxfp4-pack-quantized", 4, "float", "group", 32)),
}
BLOCKS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ1_S", "IQ1_M",
          "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0",
          "MXFP4", "NVFP4", "Q1_0", "Q2_0"]


# ---- writing ----

def write_folder(name, state, config, tokenizer, out):
    quantise, quant_config = FOLDERS[name]
    stored, values, bits = {}, {}, [0, 0]
    for key, w in state.items():
        if "_proj." in key:
            parts, v = quantise(w)
            stored.update({key[:-len("weight")] + s: p for s, p in parts.items()})
            values[key] = np.ascontiguousarray(v, np.float32)
            bits[0] += sum(np.asarray(a).nbytes for _, a in parts.values()) * 8
            bits[1] += w.size
        elif key != "lm_head.weight":
            raw, values[key] = mq.bf16(w)
            stored[key] = ("BF16", raw)
    values["lm_head.weight"] = values["model.embed_tokens.weight"]
    mq.write_safetensors(out / "model.safetensors", stored)
    text = {**config, "quantization_config": quant_config}
    (out / "config.json").write_text(json.dumps(text))
    tokenizer.save(str(out / "tokenizer.json"))
    return out, values, bits[0] / bits[1]


def ggml_base():
    import importlib.util
    where = pathlib.Path(importlib.util.find_spec("llama_cpp").origin).parent / "lib/libggml-base.so"
    lib = ctypes.CDLL(str(where))
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                        ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return lib


# The two types that the gguf package does not dequantise, one it does not know: spec of the format, as
# sdk's decoder has it: a float16 d, then for element i of Q1_0 bit i (+-d), of Q2_0 two bits, -1 to 2 times d.
FEW_BITS = {41: (128, 1), 42: (64, 2)}
gguf.GGML_QUANT_SIZES.setdefault(41, (128, 18))
gguf.GGML_QUANT_SIZES.setdefault(42, (64, 18))


def few_bits(w, kind):
    """Blocks of w and their values."""
    elems, width = FEW_BITS[kind]
    x = np.asarray(w, np.float32).reshape(-1, elems)
    size = np.abs(x).mean(1) if width == 1 else np.abs(x).max(1) / 2
    d = size.astype(np.float16)
    step = d.astype(np.float32)[:, None]
    if width == 1:
        codes = (x >= 0).astype(np.uint8)
        values = np.where(codes == 1, step, -step)
    else:
        codes = (np.clip(np.rint(x / np.where(step == 0, 1, step)), -1, 2) + 1).astype(np.uint8)
        values = (codes.astype(np.float32) - 1) * step
    bits = (codes[:, :, None] >> np.arange(width, dtype=np.uint8)) & 1
    packed = np.packbits(bits.reshape(len(x), -1), axis=1, bitorder="little")
    raw = np.concatenate([d[:, None].view(np.uint8), packed], 1)
    return raw.reshape(w.shape[0], -1), values.reshape(w.shape).astype(np.float32)


def blocks_of(lib, w, kind):
    """Blocks of w by llama.cpp's quantiser, and the values by the gguf package."""
    if int(kind) in FEW_BITS:
        return few_bits(w, int(kind))
    n, k = w.shape
    elems, size = gguf.GGML_QUANT_SIZES[kind]
    src = np.ascontiguousarray(w, np.float32)
    out = np.zeros(n * k // elems * size, np.uint8)
    alike = np.ones(k, np.float32)  # importance of columns; some types demand it
    lib.ggml_quantize_chunk(int(kind), src.ctypes.data, out.ctypes.data, 0, n, k, alike.ctypes.data)
    raw = out.reshape(n, -1)
    return raw, gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(w.shape)


def write_gguf(name, reader, dense, out):
    kind = {"Q1_0": 41, "Q2_0": 42}.get(name) or gguf.GGMLQuantizationType[name]
    lib = ggml_base()
    path = out / "model.gguf"
    w = gguf.GGUFWriter(str(path), "llama")
    for f in reader.fields.values():
        if f.name.startswith("GGUF.") or f.name == "general.architecture":
            continue
        sub = f.types[-1] if f.types[0] == gguf.GGUFValueType.ARRAY else None
        w.add_key_value(f.name, f.contents(), f.types[0], sub_type=sub)
    tensors, bits = {}, [0, 0]
    for key, x in dense.items():
        if x.ndim == 1:
            w.add_tensor(key, x)
            tensors[key] = x
            continue
        k = kind if x.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0 else gguf.GGMLQuantizationType.Q8_0
        raw, tensors[key] = blocks_of(lib, x, k)
        w.add_tensor(key, raw, raw_dtype=k)
        if k == kind:
            bits[0] += raw.nbytes * 8
            bits[1] += x.size
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path, tensors, bits[0] / max(bits[1], 1)


# ---- both sides ----

def log_probs(logits):
    return torch.log_softmax(torch.as_tensor(logits, dtype=torch.float32).double(), -1)


def divergence(p, q):
    """Mean KL(p || q) over positions, nats."""
    a, b = log_probs(p), log_probs(q)
    return float((a.exp() * (a - b)).sum(-1).mean())


def reference(model, ids, prompts):
    nll, n, first = 0.0, 0, None
    for at in range(0, len(ids), WINDOW):
        window = torch.tensor([ids[at:at + WINDOW]])
        logits = model(input_ids=window, use_cache=False).logits[0]
        if first is None:
            first = logits[:N_LOGITS].numpy().copy()
        target = window[0, 1:]
        nll -= float(log_probs(logits[:-1]).gather(1, target[:, None]).sum())
        n += len(target)
    return {"ppl": math.exp(nll / n), "first": first, "n": n,
            "greedy": [mr.greedy(model, p) for p in prompts]}


class Davit:
    def __init__(self, program, work):
        self.program, self.work = program, work

    def ask(self, *args):
        done = subprocess.run([self.program, *map(str, args), "--json", "--threads", "1"],
                              capture_output=True, text=True)
        doc = json.loads(done.stdout)
        if not doc["ok"]:
            r = next(x for x in doc["records"] if x["severity"] == "error")
            raise RuntimeError(f"{r['code']}: {r['subject']}: {r['message']}")
        return doc

    def logits(self, model, ids, how):
        out = self.work / "logits.npy"
        self.ask("eval", model, "--ids", " ".join(map(str, ids)), "--logits", out, "--activations", how)
        return np.load(out)

    def run(self, model, text, ids, prompts):
        e = self.ask("eval", model, "--ppl", text, "--ctx", WINDOW, "--activations", "f32")
        return {"ppl": e["ppl"], "n": e["n_tokens"],
                "first": self.logits(model, ids[:N_LOGITS], "f32"),
                "auto": self.logits(model, ids[:N_LOGITS], "auto"),
                "greedy": [self.ask("run", model, "--ids", " ".join(map(str, p)), "-n", mr.N_NEW,
                                    "--ignore-eos", "--activations", "f32")["ids"] for p in prompts]}


HEAD = ("| layout | bits | perplexity, transformers | davit | ids | logits | KL to float model | KL of "
        "--activations auto |\n|---|---|---|---|---|---|---|---|")


def row(name, bits, ref, our, plain):
    same = all(a[0] == b for a, b in zip(ref["greedy"], our["greedy"]))
    off = abs(our["ppl"] / ref["ppl"] - 1)
    most = np.abs(our["first"] - ref["first"]).max() / np.abs(ref["first"]).max()
    good = same and off < 1e-3 and our["n"] == ref["n"]
    margin = min(m for _, m in ref["greedy"])
    print(f"| {name} | {bits:.2f} | {ref['ppl']:.3f} | {our['ppl'] / ref['ppl'] - 1:+.1e} | "
          f"{'equal' if same else f'differ (least margin {margin})'} | {most:.0e} | "
          f"{divergence(plain, ref['first']):.3f} | {divergence(our['first'], our['auto']):.1e} |"
          + ("" if good else " **differs**"), flush=True)
    return good


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("models", type=pathlib.Path)
    args.add_argument("davit")
    args.add_argument("--only", nargs="*")
    args.add_argument("--work", type=pathlib.Path)
    a = args.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(dir=a.work))
    torch.set_num_threads(1)
    reader = gguf.GGUFReader(a.models / FILE)
    dense = {k: v.numpy() for k, v in mr.tensors(reader).items()}
    model, tok = mr.llama_model(reader), mr.smollm2_tokenizer(reader)
    state = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    config = {k: v for k, v in model.config.to_dict().items() if k not in ("dtype", "_name_or_path")}
    config["architectures"] = ["LlamaForCausalLM"]

    source = (HERE.parent.parent / "LICENSE").read_text()
    ids = tok.encode(source).ids[:WINDOW * N_WINDOWS]
    text = work / "text.txt"
    while tok.encode(tok.decode(ids)).ids != ids:
        ids.pop()
    text.write_text(tok.decode(ids))
    prompts = [tok.encode(p).ids for p in mr.PROMPTS[:N_PROMPTS]]
    davit = Davit(a.davit, work)
    plain = reference(model, ids, [])
    print(f"{time.strftime('%Y-%m-%d')}, {len(ids)} tokens of LICENSE, windows of {WINDOW}; perplexity "
          f"of the float model {plain['ppl']:.3f}\n\n{HEAD}", flush=True)
    good = True
    for name in [*FOLDERS, *("GGUF " + b for b in BLOCKS)]:
        if a.only and name not in a.only:
            continue
        out = work / "model"
        out.mkdir()
        try:
            if name in FOLDERS:
                path, values, bits = write_folder(name, state, config, tok, out)
                model.load_state_dict({k: torch.from_numpy(v) for k, v in values.items()})
            else:
                path, values, bits = write_gguf(name[5:], reader, dense, out)
                mr.tensors = lambda _, v=values: {k: torch.from_numpy(x.copy()) for k, x in v.items()}
                model = mr.llama_model(reader)
            ref = reference(model, ids, prompts)
            good &= row(name, bits, ref, davit.run(path, text, ids, prompts), plain["first"])
        except RuntimeError as e:
            print(f"| {name} | | | | | | | | **{e}**", flush=True)
            good = False
        finally:
            shutil.rmtree(out)
    shutil.rmtree(work)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
