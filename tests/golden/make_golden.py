#!/usr/bin/env python3
"""Make the tiny random checkpoints under tests/golden and their reference logits.

Every folder under models/ is a checkpoint that davit can open, with the logits
that Hugging Face transformers computes on the same files in float32. README.md
beside this script tells how to run it and what golden.json holds.

Run again, it writes the same bytes: every random number comes from a generator
seeded by the model's name and the number of the attempt.
"""
import os

# Fixed arithmetic: one thread, no CPU-dependent code paths where we can choose.
for _key, _value in {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE",
                     "ATEN_CPU_CAPABILITY": "default", "HF_HUB_OFFLINE": "1",
                     "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false",
                     "USE_HUB_KERNELS": "0", "TQDM_DISABLE": "1"}.items():
    os.environ[_key] = _value

import argparse
import copy
import hashlib
import json
import math
import re
import shutil
import sys
import tempfile
import zlib
from importlib import metadata
from pathlib import Path

import gguf
import numpy as np
import safetensors
import torch
import transformers
from gguf import GGMLQuantizationType as Q
from gguf import quants
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.backends.mkldnn.enabled = False
torch.set_grad_enabled(False)
transformers.utils.logging.disable_progress_bar()

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-4          # of the largest logit
TWIN_MIN = 100 * TOLERANCE
GREEDY = 12               # tokens
ARGMAX_MARGIN = 1e-2      # between first and second logit of each greedy step
ROUTER_MARGIN = 1e-3      # between the k-th and the next router probability
MAX_ATTEMPTS = 4000

VERSIONS = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
            "gguf": metadata.version("gguf"), "safetensors": safetensors.__version__, "numpy": np.__version__}


# ---------------------------------------------------------------- small helpers

def seed_of(text, attempt=0):
    return zlib.crc32(text.encode()) + 100_000 * attempt


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_config(path, value):
    """As transformers writes it: two spaces, sorted keys."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def rounded(x, digits=4):
    """Figures in golden.json keep four digits, so that they do not hang on the last bits."""
    return None if x is None else float(f"{x:.{digits}g}")


def merge_patch(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge_patch(target.get(key), value)
    return target


def link(path, target):
    if path.is_symlink() or path.exists():
        path.unlink()
    path.symlink_to(target)


def rel_diff(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


# ---------------------------------------------------------------- weights

def randomise(shapes, seed, spec):
    """One generator, tensors in order of name. Nothing keeps its initial value."""
    rng = np.random.Generator(np.random.PCG64(seed))
    gains = spec.get("gains", {})
    tensors = {}
    for name in sorted(shapes):
        shape = shapes[name]
        x = rng.standard_normal(shape)
        leaf = name.rsplit(".", 1)[-1]
        fan_in = shape[-1]
        if leaf == "bias" or leaf.endswith("_bias"):
            x *= 0.5
        elif leaf == "sinks":
            x *= 0.5
        elif "norm" in name:
            x = 0.2 * x + (0.0 if spec.get("norm_plus_one") and "vision" not in name else 1.0)
        elif name.endswith("embed_tokens.weight"):
            x *= spec.get("embed_std", 0.3 if spec["config_tied"] else 0.015)
        else:
            gain = 1.0
            if name.endswith("lm_head.weight"):
                gain = 3.0
            elif ".q_proj." in name or ".k_proj." in name:
                gain = 1.6
            elif name.endswith("mlp.gate.weight") or ".router." in name:
                gain = 2.0
            if spec["family"] == "gpt_oss" and ".experts." in name:
                fan_in = shape[1]
            for pattern, value in gains.items():
                if re.search(pattern, name):
                    gain = value
            x *= gain / math.sqrt(fan_in)
        t = torch.from_numpy(x.astype(np.float32))
        if spec.get("round"):
            t = t.to(DTYPES[spec["round"]]).float()
        tensors[name] = t
    return tensors


def hub_shapes(config):
    """Names and shapes as transformers writes them for the hub (v5 reverts its own stacking)."""
    with tempfile.TemporaryDirectory() as tmp:
        model_of_config(config).save_pretrained(tmp)
        return {k: list(v.shape) for k, v in load_file(Path(tmp) / "model.safetensors").items()}


HUB_NAME = re.compile(
    r"(model\.embed_tokens\.weight|model\.norm\.(weight|bias)|lm_head\.weight"
    r"|model\.layers\.\d+\.(input_layernorm|post_attention_layernorm|pre_feedforward_layernorm|post_feedforward_layernorm)\.(weight|bias)"
    r"|model\.layers\.\d+\.self_attn\.([qkvo]_proj\.(weight|bias)|[qk]_norm\.weight|[qk]_layernorm\.norms\.\d+\.weight|sinks)"
    r"|model\.layers\.\d+\.mlp\.((gate|up|down)_proj\.(weight|bias)|gate\.weight|experts\.\d+\.(gate|up|down)_proj\.weight"
    r"|router\.(weight|bias)|experts\.(gate_up|down)_proj(_bias)?))")


# ---------------------------------------------------------------- the reference

def config_of(config):
    config = copy.deepcopy(config)
    return AutoConfig.for_model(config.pop("model_type"), **config)


def model_of_config(config):
    return AutoModelForCausalLM.from_config(config_of(config), dtype=torch.float32, attn_implementation="eager")


def open_folder(folder):
    """transformers' own loader on the files as they lie."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        output_loading_info=True, local_files_only=True)
    model.eval()
    assert model.dtype == torch.float32
    return model, info


def open_tensors(config, tensors):
    """The reference model of a config and hub-named tensors."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
        save_file({k: v.contiguous() for k, v in tensors.items()}, Path(tmp) / "model.safetensors", {"format": "pt"})
        write_config(Path(tmp) / "config.json", config)
        model, info = open_folder(tmp)
    assert not info["missing_keys"] and not info["mismatched_keys"], info
    return model


def text_parts(model):
    """The text stack of a plain or wrapped model, and its config."""
    base = model.model
    if hasattr(base, "language_model"):
        base = base.language_model
    return base, base.config


def rope_types(model):
    base, config = text_parts(model)
    rope = config.rope_parameters
    return {rope["rope_type"]} if "rope_type" in rope else {r["rope_type"] for r in rope.values()}


def length_dependent(model):
    return bool(rope_types(model) & {"dynamic", "longrope"})


def set_rope(model, n):
    """Fix a length-dependent rope for n positions; HF's own state is thrown away."""
    base, config = text_parts(model)
    if not length_dependent(model):
        return
    rotary = type(base.rotary_emb)(config)
    rotary.inv_freq, rotary.attention_scaling = ROPE_INIT_FUNCTIONS[rotary.rope_type](config, None, seq_len=n)
    rotary.rope_type = "default"
    base.rotary_emb = rotary


def fresh_rope(model):
    base, config = text_parts(model)
    if length_dependent(model):
        base.rotary_emb = type(base.rotary_emb)(config)


def forward(model, ids):
    """One pass over the whole prompt, no cache: [T,V]."""
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


def forward_cached(model, ids, first=None):
    """Prefill of `first` tokens, then one at a time."""
    first = min(len(ids), first or 13)
    cache = DynamicCache(config=model.config)
    rows = []
    for part in [ids[:first]] + [[t] for t in ids[first:]]:
        rows.append(model(input_ids=torch.tensor([part]), cache=cache, use_cache=True).logits[0])
    return torch.cat(rows).float().numpy()


def top_margin(row):
    two = np.partition(row, -2)[-2:]
    return float(two[1] - two[0])


class Router:
    """Records what every MoE router chose, through a hook on the router itself."""

    def __init__(self, model, k):
        self.k, self.calls, self.handles = k, [], []
        for name, module in model.named_modules():
            if re.search(r"layers\.\d+\.mlp\.(gate|router)$", name):
                layer = int(re.search(r"layers\.(\d+)", name).group(1))
                self.handles.append(module.register_forward_hook(self.hook(layer)))

    def hook(self, layer):
        def record(module, args, out):
            logits = torch.nn.functional.linear(args[0].reshape(-1, args[0].shape[-1]), module.weight, getattr(module, "bias", None))
            p = torch.softmax(logits, -1)
            order = torch.sort(p, -1, descending=True)
            margin = (order.values[:, self.k - 1] - order.values[:, self.k]).min()
            self.calls.append((layer, order.indices[:, :self.k].tolist(), float(margin)))
        return record

    def close(self):
        for h in self.handles:
            h.remove()


class Rejected(Exception):
    pass


def measure(model, prompts, eos=(), strict=True, k=None):
    """Logits, greedy ids and margins of every prompt. Raises Rejected on a near tie."""
    results, router = [], None
    if k:
        router = Router(model, k)
    dependent = length_dependent(model)
    for prompt in prompts:
        ids, r = prompt["ids"], {}
        fresh_rope(model)
        if dependent:
            r["rope_n"] = {"logits": len(ids), "greedy": len(ids) + GREEDY}
            plain = forward(model, ids)
            set_rope(model, len(ids))
        if router:
            router.calls.clear()
        logits = forward(model, ids)
        if router:
            r["router"] = [{"layer": l, "experts": e} for l, e, _ in router.calls]
            r["router_margin"] = min(m for _, _, m in router.calls)
        assert np.isfinite(logits).all()
        if dependent:   # HF's own dynamic update over the whole prompt is the same thing
            assert rel_diff(plain, logits) < 1e-6
        r["logits"] = logits
        r["row_margin"] = min(top_margin(row) for row in logits)
        if prompt.get("rows"):
            results.append(r)
            continue
        set_rope(model, len(ids) + GREEDY)
        seq, margins = list(ids), []
        for _ in range(GREEDY):
            row = forward(model, seq)[-1]
            margins.append(top_margin(row))
            if strict and margins[-1] < ARGMAX_MARGIN:
                raise Rejected("argmax margin")
            seq.append(int(row.argmax()))
            if seq[-1] in eos:
                raise Rejected("eos")
        r["greedy"], r["greedy_margins"] = seq[len(ids):], margins
        if router:
            r["router_margin"] = min(m for _, _, m in router.calls)
            if strict and r["router_margin"] < ROUTER_MARGIN:
                raise Rejected("router margin")
        if strict and len(set(r["greedy"])) < 3:
            raise Rejected("greedy repeats itself")
        results.append(r)
    if router:
        router.close()
    return results


def check_cache(model, prompts):
    """The path through the cache gives the same logits: the figure is kept."""
    worst = 0.0
    for prompt in prompts:
        if prompt.get("rows"):
            continue
        set_rope(model, len(prompt["ids"]))
        a, b = forward(model, prompt["ids"]), forward_cached(model, prompt["ids"])
        worst = max(worst, rel_diff(b, a))
    assert worst < 2e-5, worst
    return worst


# ---------------------------------------------------------------- prompts

def prompt_ids(vocab, length):
    rng = np.random.Generator(np.random.PCG64(seed_of(f"prompt {vocab} {length}")))
    return [int(x) for x in rng.integers(3, vocab - 3, length)]


def prompts_of(vocab, lengths):
    return [{"ids": prompt_ids(vocab, n)} for n in lengths]


def window_prompt(vocab):
    """Past the class default window of 4096: the first tokens are all one id, which then leaves the window."""
    ids = prompt_ids(vocab, 4200)
    return {"ids": [vocab - 2] * 100 + ids[100:], "rows": [50, 4090, 4095, 4120, 4160, 4199], "tolerance": 3e-4}


# ---------------------------------------------------------------- changes to stored bytes

class Tensors:
    """Where each tensor's bytes lie in a safetensors or GGUF file."""

    def __init__(self, path):
        self.path, self.data, self.at = path, Path(path).read_bytes(), {}
        if str(path).endswith(".gguf"):
            reader = gguf.GGUFReader(path)
            for t in reader.tensors:
                self.at[t.name] = (int(t.data_offset), int(t.n_bytes), [int(x) for x in reversed(t.shape)])
            self.reader = reader
        else:
            n = int.from_bytes(self.data[:8], "little")
            for name, e in json.loads(self.data[8:8 + n]).items():
                if name != "__metadata__":
                    a, b = e["data_offsets"]
                    self.at[name] = (8 + n + a, b - a, e["shape"])

    def zero(self, name):
        at, size, _ = self.at[name]
        return [{"at": at, "zero": size}]

    def swap(self, a, b):
        (pa, sa, _), (pb, sb, _) = self.at[a], self.at[b]
        assert sa == sb
        return [{"at": pa, "from": pb, "size": sb}, {"at": pb, "from": pa, "size": sa}]

    def rows(self, name, order):
        at, size, shape = self.at[name]
        row = size // shape[0]
        assert len(order) == shape[0]
        return [{"at": at + i * row, "from": at + s * row, "size": row} for i, s in enumerate(order) if i != s]

    def floats(self, name, fn):
        """A small float32 or bfloat16 tensor, rewritten."""
        at, size, shape = self.at[name]
        count = int(np.prod(shape))
        raw = self.data[at:at + size]
        if size == 4 * count:
            new = fn(np.frombuffer(raw, np.float32)).astype(np.float32).tobytes()
        else:
            t = torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).float().numpy()
            new = torch.from_numpy(fn(t).astype(np.float32)).bfloat16().view(torch.int16).numpy().tobytes()
        return [{"at": at, "hex": new.hex()}]

    def key(self, name, new):
        """A scalar value of GGUF metadata."""
        field = self.reader.fields[name]
        at = int(field.offset) + sum(int(p.nbytes) for p in field.parts[:field.data[0]])
        part = field.parts[field.data[0]]
        return [{"at": at, "hex": np.array([new], part.dtype).tobytes().hex()}]


def apply_edits(path, edits):
    old = path.read_bytes()
    new = bytearray(old)
    for e in edits:
        if "zero" in e:
            new[e["at"]:e["at"] + e["zero"]] = bytes(e["zero"])
        elif "hex" in e:
            b = bytes.fromhex(e["hex"])
            new[e["at"]:e["at"] + len(b)] = b
        else:
            new[e["at"]:e["at"] + e["size"]] = old[e["from"]:e["from"] + e["size"]]
    assert len(new) == len(old) and bytes(new) != old
    path.write_bytes(bytes(new))


def half_to_inter(heads, hd):
    """Row order of llama.cpp's q/k: GGUF row 2j+s of a head is HF row s*hd/2+j."""
    return [h * hd + s * (hd // 2) + j for h in range(heads) for j in range(hd // 2) for s in range(2)]


def inter_to_half(heads, hd):
    order = half_to_inter(heads, hd)
    back = [0] * len(order)
    for i, s in enumerate(order):
        back[s] = i
    return back


# ---------------------------------------------------------------- the stub vocabulary

def byte_alphabet():
    """GPT-2's map of bytes to printable characters, in GPT-2's order of ids."""
    first = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in first]
    return [chr(b) for b in first] + [chr(256 + i) for i in range(len(rest))]


STUB_MERGES = ["h e", "Ġ t"]
STUB_TOKENS = byte_alphabet() + ["he", "Ġt"] + ["<|endoftext|>"]
STUB_VOCAB = len(STUB_TOKENS)                                     # 259


def stub_tokenizer_json():
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": STUB_VOCAB - 1, "content": "<|endoftext|>", "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}],
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {t: i for i, t in enumerate(STUB_TOKENS[:-1])},
                      "merges": [m.split(" ") for m in STUB_MERGES]}}


# ---------------------------------------------------------------- GGUF

GGUF_NAMES = [   # hub name, GGUF name; the first match wins
    (r"model\.embed_tokens", "token_embd"), (r"model\.norm", "output_norm"), (r"lm_head", "output"),
    (r"model\.layers\.(\d+)\.self_attn\.q_norm", r"blk.\1.attn_q_norm"),
    (r"model\.layers\.(\d+)\.self_attn\.k_norm", r"blk.\1.attn_k_norm"),
    (r"model\.layers\.(\d+)\.self_attn\.([qkv])_proj", r"blk.\1.attn_\2"),
    (r"model\.layers\.(\d+)\.self_attn\.o_proj", r"blk.\1.attn_output"),
    (r"model\.layers\.(\d+)\.input_layernorm", r"blk.\1.attn_norm"),
    (r"model\.layers\.(\d+)\.pre_feedforward_layernorm", r"blk.\1.ffn_norm"),
    (r"model\.layers\.(\d+)\.post_feedforward_layernorm", r"blk.\1.post_ffw_norm"),
    (r"model\.layers\.(\d+)\.mlp\.gate(?=\.weight)", r"blk.\1.ffn_gate_inp"),
    (r"model\.layers\.(\d+)\.mlp\.(gate|up|down)_proj", r"blk.\1.ffn_\2"),
]


def gguf_name(name, gemma):
    post = r"blk.\1.post_attention_norm" if gemma else r"blk.\1.ffn_norm"
    for pattern, out in [(r"model\.layers\.(\d+)\.post_attention_layernorm", post)] + GGUF_NAMES:
        new, n = re.subn("^" + pattern + r"(?=\.)", out, name)
        if n:
            return new
    raise KeyError(name)


def dims(config):
    nh = config["num_attention_heads"]
    return nh, config.get("num_key_value_heads") or nh, config.get("head_dim") or config["hidden_size"] // nh


def to_gguf_tensors(arch, config, tensors):
    """The converter's work: stack experts, permute llama's q/k rows, bake gemma's +1."""
    nh, nkv, hd = dims(config)
    out, experts = {}, {}
    for name, t in tensors.items():
        t = t.numpy()
        m = re.match(r"model\.layers\.(\d+)\.mlp\.experts\.(\d+)\.(gate|up|down)_proj\.weight", name)
        if m:
            experts.setdefault(f"blk.{m[1]}.ffn_{m[3]}_exps.weight", {})[int(m[2])] = t
            continue
        new = gguf_name(name, arch == "gemma3")
        if arch == "llama" and re.search(r"attn_[qk]\.", new):
            t = t[half_to_inter(nh if "attn_q" in new else nkv, hd)]
        if arch == "gemma3" and new.endswith("norm.weight"):
            t = t + np.float32(1)
        out[new] = np.ascontiguousarray(t)
    for name, e in experts.items():
        out[name] = np.stack([e[i] for i in range(len(e))])
    if arch == "llama" and config["rope_parameters"]["rope_type"] == "llama3":
        out["rope_freqs.weight"] = llama3_factors(config, hd)
    # file order as the converter's: embedding, output, then by layer
    def order(n):
        m = re.match(r"blk\.(\d+)\.(.*)", n)
        return (1, int(m[1]), m[2]) if m else (0, 0, n)
    return {n: out[n] for n in sorted(out, key=order)}


def llama3_factors(config, hd):
    r = config["rope_parameters"]
    lo, hi, o = r["low_freq_factor"], r["high_freq_factor"], r["original_max_position_embeddings"]
    out = []
    for j in range(hd // 2):
        wave = 2 * math.pi * r["rope_theta"] ** (2 * j / hd)
        if wave < o / hi:
            out.append(1.0)
        elif wave > o / lo:
            out.append(r["factor"])
        else:
            s = (o / wave - lo) / (hi - lo)
            out.append(1 / ((1 - s) / r["factor"] + s))
    return np.array(out, np.float32)


FILE_TYPES = {Q.F32: 0, Q.F16: 1, Q.Q4_0: 2, Q.Q4_1: 3, Q.Q8_0: 7, Q.Q5_0: 8, Q.Q5_1: 9, Q.Q2_K: 10,
              Q.Q3_K: 12, Q.Q4_K: 15, Q.Q5_K: 17, Q.Q6_K: 18, Q.BF16: 32}


def write_gguf(path, arch, config, tensors, label):
    """tensors: name -> float32 array, or (raw bytes, type)."""
    nh, nkv, hd = dims(config)
    w = gguf.GGUFWriter(path, arch)
    w.add_type("model")
    w.add_name(path.parent.name)
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(nh)
    w.add_head_count_kv(nkv)
    rope = config["rope_parameters"]
    full = rope.get("full_attention", rope)
    w.add_rope_freq_base(full["rope_theta"])
    if full["rope_type"] in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(full["rope_type"]))
        w.add_rope_scaling_factor(full["factor"])
        if full["rope_type"] == "yarn":
            w.add_rope_scaling_orig_ctx_len(full["original_max_position_embeddings"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if config.get("head_dim"):
        w.add_key_length(hd)
        w.add_value_length(hd)
    if arch == "llama":
        w.add_vocab_size(config["vocab_size"])
        w.add_rope_dimension_count(hd)
    if arch == "gemma3":
        w.add_sliding_window(config["sliding_window"])
    if arch == "qwen3moe":
        w.add_expert_count(config["num_experts"])
        w.add_expert_used_count(config["num_experts_per_tok"])
        w.add_expert_feed_forward_length(config["moe_intermediate_size"])
    w.add_file_type(FILE_TYPES[label])
    w.add_quantization_version(2)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(STUB_TOKENS)
    w.add_token_types([1] * (STUB_VOCAB - 1) + [3])
    w.add_token_merges(STUB_MERGES)
    w.add_bos_token_id(STUB_VOCAB - 1)
    w.add_eos_token_id(STUB_VOCAB - 1)
    w.add_add_bos_token(False)
    for name, t in tensors.items():
        if isinstance(t, tuple):
            w.add_tensor(name, t[0], raw_dtype=t[1])
        else:
            w.add_tensor(name, t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


ARCH_TYPES = {"llama": ("llama", "LlamaForCausalLM"), "qwen2": ("qwen2", "Qwen2ForCausalLM"),
              "qwen3": ("qwen3", "Qwen3ForCausalLM"), "qwen3moe": ("qwen3_moe", "Qwen3MoeForCausalLM"),
              "gemma3": ("gemma3_text", "Gemma3ForCausalLM")}


def read_gguf(path):
    """Config, hub-named float32 tensors and rope divisors, from the GGUF alone."""
    r = gguf.GGUFReader(path)
    get = lambda k: r.fields[k].contents() if k in r.fields else None
    arch = get("general.architecture")
    key = lambda k: get(f"{arch}.{k}")
    raw = {t.name: quants.dequantize(t.data, t.tensor_type).astype(np.float32, copy=True) for t in r.tensors}
    factors = raw.pop("rope_freqs.weight", None)
    nh, nkv = key("attention.head_count"), key("attention.head_count_kv")
    hd = key("attention.key_length") or key("embedding_length") // nh
    rope = {"rope_type": "default", "rope_theta": key("rope.freq_base")}
    if key("rope.scaling.type"):
        rope.update(rope_type=key("rope.scaling.type"), factor=key("rope.scaling.factor"))
        if rope["rope_type"] == "yarn":
            rope["original_max_position_embeddings"] = key("rope.scaling.original_context_length")
    config = {"architectures": [ARCH_TYPES[arch][1]], "model_type": ARCH_TYPES[arch][0],
              "vocab_size": raw["token_embd.weight"].shape[0], "hidden_size": key("embedding_length"),
              "intermediate_size": key("feed_forward_length"), "num_hidden_layers": key("block_count"),
              "num_attention_heads": nh, "num_key_value_heads": nkv, "head_dim": hd,
              "max_position_embeddings": key("context_length"), "rms_norm_eps": key("attention.layer_norm_rms_epsilon"),
              "rope_parameters": rope, "tie_word_embeddings": "output.weight" not in raw}
    if arch == "qwen2":
        del config["head_dim"]
    if arch == "qwen3moe":
        config.update(num_experts=key("expert_count"), num_experts_per_tok=key("expert_used_count"),
                      moe_intermediate_size=key("expert_feed_forward_length"), norm_topk_prob=True)
    if arch == "gemma3":
        config.update(sliding_window=key("attention.sliding_window"), query_pre_attn_scalar=hd, rope_parameters={
            "full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
    tensors = {}
    for name, t in raw.items():
        m = re.match(r"blk\.(\d+)\.ffn_(gate|up|down)_exps\.weight", name)
        if m:
            for e in range(len(t)):
                tensors[f"model.layers.{m[1]}.mlp.experts.{e}.{m[2]}_proj.weight"] = torch.from_numpy(t[e].copy())
            continue
        if arch == "llama" and re.search(r"attn_[qk]\.", name):
            t = t[inter_to_half(nh if "attn_q" in name else nkv, hd)]
        if arch == "gemma3" and name.endswith("norm.weight"):
            t = t - np.float32(1)
        tensors[hub_of_gguf(name, arch)] = torch.from_numpy(np.ascontiguousarray(t))
    return config, tensors, factors


def hub_of_gguf(name, arch):
    top = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    stem, leaf = name.rsplit(".", 1)
    if stem in top:
        return f"{top[stem]}.{leaf}"
    _, i, part = stem.split(".")
    table = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate"}
    if arch == "gemma3":
        table.update(ffn_norm="pre_feedforward_layernorm", post_attention_norm="post_attention_layernorm",
                     post_ffw_norm="post_feedforward_layernorm")
    return f"model.layers.{i}.{table[part]}.{leaf}"


def open_gguf(path):
    config, tensors, factors = read_gguf(path)
    model = open_tensors(config, tensors)
    if factors is not None:
        rotary = model.model.rotary_emb
        rotary.inv_freq = rotary.inv_freq / torch.from_numpy(factors)
    return model


def open_any(folder, file):
    if file and file.endswith(".gguf"):
        return open_gguf(Path(folder) / file)
    model, info = open_folder(folder)
    assert not info["missing_keys"] and not info["mismatched_keys"], (folder, info)
    return model


# ---------------------------------------------------------------- the models

HUB_KEYS = {"dtype": "float32", "initializer_range": 0.02, "transformers_version": "5.24.0", "use_cache": True}


def llama_config(vocab=128, **changes):
    config = {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
              "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 64,
              "max_position_embeddings": 256, "mlp_bias": False, "model_type": "llama", "num_attention_heads": 4,
              "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-5,
              "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "tie_word_embeddings": False,
              "vocab_size": vocab, **HUB_KEYS}
    config.update(changes)
    return {k: v for k, v in config.items() if v is not ...}


def v4(config):
    """The same config as old hub files spell it."""
    config = copy.deepcopy(config)
    rope = config.pop("rope_parameters")
    if "rope_type" in rope:
        rope = {"full_attention": rope}
    full = dict(rope["full_attention"])
    config["rope_theta"] = full.pop("rope_theta")
    kind = full.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else {("type" if kind in ("linear", "dynamic") else "rope_type"): kind, **full}
    if "sliding_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config.pop("layer_types", None)
        config["sliding_window_pattern"] = 6
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.0"
    return config


SPECS = []


def spec(name, family, config=None, **more):
    more.setdefault("base", None)
    more.setdefault("kind", "link" if more["base"] else "own")
    s = {"name": name, "family": family, "config": config, "twins": lambda t, c: [], "same": [], "refused": [],
         "store": "float32", "config_tied": bool(config and config.get("tie_word_embeddings")), **more}
    SPECS.append(s)
    return s


def patch(name, **changes):
    return {"name": name, "patch": changes}


def rope_patch(name, **changes):
    return {"name": name, "patch": {"rope_parameters": changes}}


def edit(name, edits, file="model.safetensors"):
    return {"name": name, "file": file, "edits": edits}


def layers(config):
    return range(config["num_hidden_layers"])


def rope_pairing(t, config, prefix="model.", name="rope_pairing_of_neighbours", order=half_to_inter):
    """Rows of the first layer moved so that pairing (2j, 2j+1) would be needed."""
    nh, nkv, hd = dims(config)
    edits = []
    edits += t.rows(f"{prefix}layers.0.self_attn.q_proj.weight", order(nh, hd))
    edits += t.rows(f"{prefix}layers.0.self_attn.k_proj.weight", order(nkv, hd))
    return edit(name, edits)


def dense_twins(t, config):
    """What every Llama-like model in one safetensors file can have flipped."""
    l0 = "model.layers.0."
    out = [rope_patch("rope_theta_doubled", rope_theta=2 * config["rope_parameters"]["rope_theta"]),
           patch("one_layer_less", num_hidden_layers=config["num_hidden_layers"] - 1),
           edit("gate_and_up_swapped", t.swap(l0 + "mlp.gate_proj.weight", l0 + "mlp.up_proj.weight")),
           edit("norms_swapped", t.swap(l0 + "input_layernorm.weight", l0 + "post_attention_layernorm.weight"))]
    if dims(config)[2] % 4 == 0 and not any("bias" in n for n in t.at):
        out.append(rope_pairing(t, config))
    return out


# Llama: plain, tied, biases with an explicit head_dim, every rope type.

plain = llama_config(vocab=STUB_VOCAB, intermediate_size=80)
spec("llama", "llama", plain, lengths=[12, 40], stub_tokenizer=True,
     twins=lambda t, c: dense_twins(t, c) + [patch("rms_norm_eps_default_instead", rms_norm_eps=1e-6),
                                             patch("activation_gelu", hidden_act="gelu"),
                                             edit("head_is_embedding", head_to_embedding(t))],
     same=[{"name": "v4_spelling", "config": v4(plain)},
           {"name": "keys_at_class_default_left_out", "config": {k: v for k, v in plain.items() if k not in (
               "attention_bias", "mlp_bias", "hidden_act", "rope_parameters", "tie_word_embeddings", "pretraining_tp")}},
           {"name": "null_is_derived", "config": {**plain, "head_dim": None}}],
     refused=[{"name": "wrong_width", "patch": {"intermediate_size": 81},
               "expect": "shape of mlp.gate_proj.weight: 81 rows by config, 80 in the file"}])


def head_to_embedding(t):
    at, size, _ = t.at["lm_head.weight"]
    return [{"at": at, "from": t.at["model.embed_tokens.weight"][0], "size": size}]


tied = llama_config(tie_word_embeddings=True, dtype="bfloat16")
spec("llama_tied", "llama", tied, lengths=[12, 40], store="bfloat16", round="bfloat16", twins=dense_twins, same=[{"name": "v4_spelling", "config": v4(tied)}],
     refused=[{"name": "untied", "patch": {"tie_word_embeddings": False}, "expect": "lm_head.weight is missing"},
              {"name": "class_default_is_untied", "patch": {"tie_word_embeddings": None}, "expect": "lm_head.weight is missing"}])

biased = llama_config(attention_bias=True, mlp_bias=True, head_dim=24, dtype="bfloat16")
spec("llama_bias_hd24", "llama", biased, lengths=[12, 40], store="bfloat16", round="bfloat16", same=[{"name": "v4_spelling", "config": v4(biased)}],
     twins=lambda t, c: dense_twins(t, c) + [
         edit(f"no_{p}_bias", sum((t.zero(f"model.layers.{i}.{b}.{p}_proj.bias") for i in layers(c)), []))
         for p, b in [("q", "self_attn"), ("k", "self_attn"), ("v", "self_attn"), ("o", "self_attn"),
                      ("gate", "mlp"), ("up", "mlp"), ("down", "mlp")] if p != "k"])

hd32 = llama_config(head_dim=32)
spec("llama_rope_default", "llama", hd32, lengths=[12, 40], twins=dense_twins, same=[{"name": "v4_spelling", "config": v4(hd32)}])

SHORT = [round(1.0 + 0.05 * j, 2) for j in range(16)]
LONG = [round(1.0 + 0.4 * j, 2) for j in range(16)]
ROPES = {
    "linear": (96, [12, 40], {"factor": 4.0}, [("factor_2", {"factor": 2.0})]),
    "dynamic": (24, [8, 20, 40], {"factor": 4.0}, [("factor_2", {"factor": 2.0})]),
    "llama3": (256, [12, 40], {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 32},
               [("low_freq_factor_2", {"low_freq_factor": 2.0}), ("high_freq_factor_2", {"high_freq_factor": 2.0}),
                ("original_64", {"original_max_position_embeddings": 64}), ("factor_4", {"factor": 4.0})]),
    "yarn": (128, [12, 40], {"factor": 4.0, "original_max_position_embeddings": 32},
             [("no_attention_factor", {"attention_factor": 1.0}), ("original_is_max", {"original_max_position_embeddings": 128}),
              ("truncate_off", {"truncate": False}), ("factor_2", {"factor": 2.0}), ("beta_slow_half", {"beta_slow": 0.25})]),
    "yarn_notrunc": (128, [12, 40], {"factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False},
                     [("truncate_on", {"truncate": True}), ("beta_fast_default", {"beta_fast": 32.0}), ("beta_slow_default", {"beta_slow": 1.0})]),
    "yarn_mscale": (128, [12, 40], {"factor": 4.0, "original_max_position_embeddings": 32, "mscale": 1.0, "mscale_all_dim": 0.5},
                    [("mscale_ignored", {"mscale": None, "mscale_all_dim": None}), ("mscale_all_dim_1", {"mscale_all_dim": 1.0})]),
    "yarn_attn": (128, [12, 40], {"factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 0.8},
                  [("attention_factor_derived", {"attention_factor": None})]),
    "longrope": (96, [8, 20, 40], {"long_factor": LONG, "short_factor": SHORT, "original_max_position_embeddings": 24},
                 [("factors_swapped", {"long_factor": SHORT, "short_factor": LONG}), ("always_short", {"long_factor": SHORT}),
                  ("always_long", {"short_factor": LONG}), ("no_attention_factor", {"attention_factor": 1.0}),
                  ("factor_8", {"factor": 8.0})]),
}
for kind, (max_pos, lengths, keys, flips) in ROPES.items():
    c = llama_config(head_dim=32, max_position_embeddings=max_pos,
                     rope_parameters={"rope_theta": 10000.0, "rope_type": kind.split("_")[0], **keys})
    same = [{"name": "v4_spelling", "config": v4(c)}]
    if "original_max_position_embeddings" in keys:
        top = copy.deepcopy(c)
        top["original_max_position_embeddings"] = top["rope_parameters"].pop("original_max_position_embeddings")
        same.append({"name": "original_at_top_level", "config": top})
    if kind == "yarn":
        same.append({"name": "null_factor_is_derived", "config": {**c, "rope_parameters": {**c["rope_parameters"], "factor": None}}})
    if kind == "longrope":
        same.append({"name": "factor_given", "config": {**c, "rope_parameters": {**c["rope_parameters"], "factor": 4.0}}})
    spec("llama_rope_" + kind, "llama", c, base="llama_rope_default", lengths=lengths, same=same,
         twins=lambda t, c, flips=flips: [rope_patch("no_scaling", rope_type="default"),
                                          rope_patch("rope_theta_doubled", rope_theta=20000.0)]
                                         + [rope_patch(n, **f) for n, f in flips])

# The same small llama in every file layout, and as GGUF.

mini = llama_config(vocab=STUB_VOCAB, hidden_size=32, intermediate_size=48)
spec("llama_mini", "llama", mini, lengths=[12, 40], stub_tokenizer=True, twins=dense_twins)


def copy_twins(t, c):
    theta = {"rope_theta": 20000.0}
    return [patch("rope_theta_doubled", **(theta if "rope_theta" in c else {"rope_parameters": theta})), patch("one_layer_less", num_hidden_layers=1)]


spec("llama_mini_bf16", "llama", {**mini, "dtype": "bfloat16"}, base="llama_mini", kind="rounded", store="bfloat16", lengths=[12, 40], twins=copy_twins)
spec("llama_mini_f16", "llama", {**mini, "dtype": "float16"}, base="llama_mini", kind="rounded", store="float16", lengths=[12, 40], twins=copy_twins)
spec("llama_mini_sharded", "llama", mini, base="llama_mini", kind="sharded", lengths=[12, 40], twins=copy_twins)
spec("llama_mini_v4", "llama", v4(mini), base="llama_mini", lengths=[12, 40], twins=copy_twins, same_logits=True)
for suffix, prefix in (("no_prefix", ""), ("long_prefix", "model.language_model.")):
    spec("llama_mini_" + suffix, "llama", {**mini, "dtype": "bfloat16"}, base="llama_mini_bf16", kind="prefix", prefix=("model.", prefix),
         store="bfloat16", lengths=[12, 40], twins=copy_twins)
spec("llama_mini_eos", "llama", mini, base="llama_mini", lengths=[12, 40], twins=copy_twins, same_logits=True, stop_at=5)
mini_l3 = llama_config(vocab=STUB_VOCAB, hidden_size=32, intermediate_size=48, rope_parameters={
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 32})
spec("llama_mini_llama3", "llama", mini_l3, base="llama_mini", lengths=[12, 40],
     twins=lambda t, c: [rope_patch("no_scaling", rope_type="default"), rope_patch("rope_theta_doubled", rope_theta=1000.0)])


def gguf_edit(name, edits):
    return edit(name, edits, "model.gguf")


def gguf_pairing(t, config, order):
    nh, nkv, hd = dims(config)
    return gguf_edit("rope_pairing_other", t.rows("blk.0.attn_q.weight", order(nh, hd)) + t.rows("blk.0.attn_k.weight", order(nkv, hd)))


def gguf_twins(arch, order):
    def twins(t, c):
        theta = 10000.0 if arch == "gemma3" else 2 * c["rope_parameters"]["rope_theta"]
        out = [gguf_edit("rope_freq_base_other", t.key(f"{arch}.rope.freq_base", theta)), gguf_pairing(t, c, order)]
        if arch == "qwen3moe":
            out.append(gguf_edit("gate_and_up_swapped", t.swap("blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight")))
        else:
            out.append(gguf_edit("gate_and_up_swapped", t.swap("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight")))
        if arch == "gemma3":
            out.append(gguf_edit("norms_without_one", sum((t.floats(f"blk.{i}.attn_norm.weight", lambda x: x - 1) for i in layers(c)), [])))
            out.append(gguf_edit("norms_with_one_twice", t.floats("output_norm.weight", lambda x: x + 1)))
            out.append(gguf_edit("window_9", t.key("gemma3.attention.sliding_window", 9)))
        if "rope_freqs.weight" in t.at:
            out.append(gguf_edit("rope_freqs_ignored", t.floats("rope_freqs.weight", lambda x: x * 0 + 1)))
        return out
    return twins


spec("gguf_llama", "llama", mini, base="llama_mini", kind="gguf", arch="llama", label=Q.F32, lengths=[12, 40], twins=gguf_twins("llama", inter_to_half))
spec("gguf_llama_llama3", "llama", mini_l3, base="llama_mini_llama3", kind="gguf", arch="llama", label=Q.F32, lengths=[12, 40],
     twins=gguf_twins("llama", inter_to_half))

# Mistral: window set, absent (class default 4096) and null, on the weights of `llama`.

mistral = {k: v for k, v in plain.items() if k not in ("attention_bias", "mlp_bias", "pretraining_tp")}
mistral.update(architectures=["MistralForCausalLM"], model_type="mistral", max_position_embeddings=8192)
mistral8 = {**mistral, "sliding_window": 8}
spec("mistral_window8", "mistral", mistral8, base="llama", lengths=[6, 29], same=[{"name": "v4_spelling", "config": v4(mistral8)}],
     twins=lambda t, c: [patch("window_7", sliding_window=7), patch("window_9", sliding_window=9), patch("window_off", sliding_window=4096)])
spec("mistral_absent", "mistral", mistral, base="llama", lengths=[29], long=True,
     twins=lambda t, c: [patch("window_8", sliding_window=8), patch("window_2048", sliding_window=2048), patch("window_off", sliding_window=8192)])
spec("mistral_null", "mistral", {**mistral, "sliding_window": None}, base="llama", lengths=[29], long=True,
     twins=lambda t, c: [patch("window_8", sliding_window=8), patch("class_default_4096", sliding_window=4096)])

# Qwen2

qwen2 = {"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
         "hidden_size": 64, "intermediate_size": 48, "max_position_embeddings": 256, "max_window_layers": 1, "model_type": "qwen2",
         "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
         "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "sliding_window": 8, "tie_word_embeddings": True,
         "use_sliding_window": False, "vocab_size": STUB_VOCAB, **HUB_KEYS, "dtype": "float16"}


def qkv_twins(t, c):
    return [edit(f"no_{p}_bias", sum((t.zero(f"model.layers.{i}.self_attn.{p}_proj.bias") for i in layers(c)), [])) for p in "qv"]


spec("qwen2", "qwen2", qwen2, lengths=[12, 29], store="float16", round="float16", same=[{"name": "v4_spelling", "config": v4(qwen2)}],
     twins=lambda t, c: dense_twins(t, c) + qkv_twins(t, c) + [patch("window_on", use_sliding_window=True)],
     refused=[{"name": "class_default_is_untied", "patch": {"tie_word_embeddings": None}, "expect": "lm_head.weight is missing"}])
qwen2_window = {**qwen2, "use_sliding_window": True}
spec("qwen2_window", "qwen2", qwen2_window, base="qwen2", store="float16", lengths=[12, 29], same=[
         {"name": "v4_spelling", "config": v4(qwen2_window)},
         {"name": "layer_types_wins", "config": {**qwen2_window, "max_window_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}}],
     twins=lambda t, c: [patch("window_off", use_sliding_window=False), patch("window_7", sliding_window=7), patch("window_9", sliding_window=9),
                         patch("all_layers", max_window_layers=0), patch("no_layer", max_window_layers=2)])
spec("gguf_qwen2", "qwen2", qwen2, base="qwen2", kind="gguf", arch="qwen2", label=Q.F16, lengths=[12, 29], twins=gguf_twins("qwen2", half_to_inter))

# Qwen3 and Qwen3-MoE

qwen3 = {"architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
         "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 48, "max_position_embeddings": 256,
         "max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 1,
         "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "sliding_window": None,
         "tie_word_embeddings": True, "use_sliding_window": False, "vocab_size": STUB_VOCAB, **HUB_KEYS, "dtype": "bfloat16"}


def qk_norm_twins(t, c):
    return [edit("q_and_k_norm_swapped", sum((t.swap(f"model.layers.{i}.self_attn.q_norm.weight",
                                                     f"model.layers.{i}.self_attn.k_norm.weight") for i in layers(c)), []))]


spec("qwen3", "qwen3", qwen3, lengths=[12, 40], store="bfloat16", round="bfloat16", same=[{"name": "v4_spelling", "config": v4(qwen3)}],
     twins=lambda t, c: dense_twins(t, c)[:-1] + [pairing_with_norms(t, c)])


def pairing_with_norms(t, c):
    """With q/k norms a shared row order is not enough: the norm weights must move too."""
    nh, nkv, hd = dims(c)
    e = rope_pairing(t, c)["edits"]
    for n in "qk":
        e += t.rows(f"model.layers.0.self_attn.{n}_norm.weight", half_to_inter(1, hd))
    return edit("rope_pairing_of_neighbours", e)


spec("gguf_qwen3", "qwen3", qwen3, base="qwen3", kind="gguf", arch="qwen3", label=Q.BF16, lengths=[12, 40], twins=gguf_twins("qwen3", half_to_inter))

moe = {**qwen3, "architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "head_dim": 16, "mlp_only_layers": [],
       "model_type": "qwen3_moe", "moe_intermediate_size": 16, "norm_topk_prob": True, "num_experts": 8, "num_experts_per_tok": 2,
       "num_key_value_heads": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001}


def moe_twins(t, c):
    e = "model.layers.0.mlp.experts."
    return [patch("norm_topk_prob_flipped", norm_topk_prob=not c.get("norm_topk_prob", False)),
            patch("top_3", num_experts_per_tok=3), patch("top_1", num_experts_per_tok=1),
            edit("gate_and_up_swapped", sum((t.swap(f"{e}{i}.gate_proj.weight", f"{e}{i}.up_proj.weight") for i in range(c["num_experts"])), [])),
            edit("experts_0_and_1_swapped", sum((t.swap(f"{e}0.{p}_proj.weight", f"{e}1.{p}_proj.weight") for p in ("gate", "up", "down")), []))]


spec("qwen3_moe", "qwen3_moe", moe, lengths=[12, 29], store="bfloat16", round="bfloat16", twins=moe_twins, same=[{"name": "v4_spelling", "config": v4(moe)}])
spec("qwen3_moe_stacked", "qwen3_moe", {**{k: v for k, v in moe.items() if k != "num_experts"}, "num_local_experts": 8},
     base="qwen3_moe", kind="stacked", store="bfloat16", lengths=[12, 29],
     twins=lambda t, c: [edit("down_of_experts_0_and_1_swapped", stacked_swap(t))])
spec("qwen3_moe_not_renormalised", "qwen3_moe", {k: v for k, v in moe.items() if k != "norm_topk_prob"}, base="qwen3_moe", store="bfloat16", lengths=[12, 29],
     twins=lambda t, c: [patch("norm_topk_prob_flipped", norm_topk_prob=True)])
spec("gguf_qwen3_moe", "qwen3_moe", moe, base="qwen3_moe", kind="gguf", arch="qwen3moe", label=Q.BF16, lengths=[12, 29], twins=gguf_twins("qwen3moe", half_to_inter))

moe_dense = {**moe, "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3], "vocab_size": 128}
spec("qwen3_moe_dense_layers", "qwen3_moe", moe_dense, lengths=[12, 29], store="bfloat16", round="bfloat16",
     refused=[{"name": "layer_3_sparse", "patch": {"mlp_only_layers": []}, "expect": "layer 3: mlp.gate.weight is missing"},
              {"name": "step_1", "patch": {"decoder_sparse_step": 1}, "expect": "layer 0: mlp.gate.weight is missing"}],
     twins=lambda t, c: [patch("norm_topk_prob_flipped", norm_topk_prob=False)])


def stacked_swap(t):
    at, size, shape = t.at["model.layers.0.mlp.experts.down_proj"]
    n = size // shape[0]
    return [{"at": at, "from": at + n, "size": n}, {"at": at + n, "from": at, "size": n}]


# Gemma 3

gemma3 = {"architectures": ["Gemma3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "attn_logit_softcapping": None,
          "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1, "final_logit_softcapping": None, "head_dim": 16,
          "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 48, "intermediate_size": 64,
          "max_position_embeddings": 256, "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 6,
          "num_key_value_heads": 1, "pad_token_id": 0, "query_pre_attn_scalar": 24, "rms_norm_eps": 1e-6,
          "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000.0,
          "sliding_window": 8, "sliding_window_pattern": 6, "torch_dtype": "bfloat16", "transformers_version": "4.50.0",
          "initializer_range": 0.02, "use_cache": True, "vocab_size": STUB_VOCAB}
GEMMA_TYPES = ["sliding_attention"] * 5 + ["full_attention"]
GEMMA_ROPE = {"full_attention": {"factor": 8.0, "rope_theta": 1000000.0, "rope_type": "linear"},
              "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}


def gemma_v5(config):
    config = {k: v for k, v in config.items() if k not in ("rope_local_base_freq", "rope_scaling", "rope_theta", "torch_dtype",
                                                           "sliding_window_pattern", "cache_implementation")}
    return {**config, "dtype": "bfloat16", "layer_types": GEMMA_TYPES, "rope_parameters": GEMMA_ROPE, "transformers_version": "5.24.0"}


def gemma_twins(t, c, prefix="model."):
    wrap = (lambda p: {"text_config": p}) if "text_config" in c else (lambda p: p)
    c = c.get("text_config", c)
    norms = [n for n in t.at if n.startswith(prefix) and n.endswith("norm.weight")]
    one = lambda part: sum((t.floats(n, lambda x: x - 1) for n in norms if part in n), [])
    l0 = prefix + "layers.0."
    flips = [("window_7", {"sliding_window": 7}), ("window_9", {"sliding_window": 9}), ("window_off", {"sliding_window": 4096}),
             ("scale_of_head_dim", {"query_pre_attn_scalar": 16}), ("scale_class_default", {"query_pre_attn_scalar": None}),
             ("local_theta_is_global", {"rope_local_base_freq": 1000000.0}), ("global_theta_is_local", {"rope_theta": 10000.0}),
             ("linear_factor_ignored", {"rope_scaling": None}), ("pattern_3", {"sliding_window_pattern": 3}),
             ("final_softcap", {"final_logit_softcapping": 5.0}), ("activation_relu", {"hidden_activation": "relu"})]
    return [{"name": n, "patch": wrap(p)} for n, p in flips] + [
        edit("input_norm_without_one", one("input_layernorm")), edit("post_attention_norm_without_one", one("post_attention_layernorm")),
        edit("pre_feedforward_norm_without_one", one("pre_feedforward_layernorm")),
        edit("post_feedforward_norm_without_one", one("post_feedforward_layernorm")),
        edit("q_norm_without_one", one("q_norm")), edit("final_norm_without_one", one(prefix + "norm.")),
        edit("gate_and_up_swapped", t.swap(l0 + "mlp.gate_proj.weight", l0 + "mlp.up_proj.weight"))]


spec("gemma3", "gemma3", gemma3, lengths=[12, 29], store="bfloat16", round="bfloat16", norm_plus_one=True, config_tied=True, embed_std=0.12,
     twins=gemma_twins, same=[{"name": "v5_spelling", "config": gemma_v5(gemma3)}])
wrapper = {"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255, "eoi_token_index": 256, "eos_token_id": [1, 106],
           "image_token_index": 257, "initializer_range": 0.02, "mm_tokens_per_image": 4, "model_type": "gemma3",
           "text_config": {k: v for k, v in gemma3.items() if k in (
               "head_dim", "hidden_size", "intermediate_size", "model_type", "num_attention_heads", "num_hidden_layers",
               "num_key_value_heads", "query_pre_attn_scalar", "rope_scaling", "sliding_window", "vocab_size", "max_position_embeddings")},
           "torch_dtype": "bfloat16", "transformers_version": "4.50.0",
           "vision_config": {"hidden_size": 16, "image_size": 16, "intermediate_size": 16, "model_type": "siglip_vision_model",
                             "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 4, "vision_use_head": False}}
spec("gemma3_wrapped", "gemma3", wrapper, base="gemma3", kind="wrapper", store="bfloat16", lengths=[12, 29],
     twins=lambda t, c: [w for w in gemma_twins(t, c, "language_model.model.") if w["name"] in (
         "window_9", "scale_class_default", "local_theta_is_global", "linear_factor_ignored", "input_norm_without_one")])
gemma3_hd = {**gemma_v5(gemma3), "query_pre_attn_scalar": 16}
spec("gemma3_scale_hd", "gemma3", gemma3_hd, base="gemma3", store="bfloat16", lengths=[12, 29],
     twins=lambda t, c: [patch("scale_24", query_pre_attn_scalar=24),
                         rope_patch("linear_factor_ignored", full_attention={"rope_type": "default"}),
                         rope_patch("linear_factor_everywhere", sliding_attention={"rope_type": "linear", "factor": 8.0}),
                         patch("layers_all_sliding", layer_types=["sliding_attention"] * 6)])
spec("gguf_gemma3", "gemma3", gemma3_hd, base="gemma3_scale_hd", kind="gguf", arch="gemma3", label=Q.BF16, lengths=[12, 29], twins=gguf_twins("gemma3", half_to_inter))

# StableLM: LayerNorm with bias, partial rope.

stablelm = {"architectures": ["StableLmForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
            "hidden_dropout": 0.0, "hidden_size": 64, "intermediate_size": 48, "layer_norm_eps": 1e-5, "max_position_embeddings": 256,
            "model_type": "stablelm", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4,
            "partial_rotary_factor": 0.25, "qk_layernorm": False, "rope_theta": 10000, "tie_word_embeddings": False,
            "torch_dtype": "float32", "transformers_version": "4.38.0", "initializer_range": 0.02, "use_cache": True,
            "use_parallel_residual": False, "use_qkv_bias": True, "vocab_size": 128}


def stablelm_twins(t, c):
    l0 = "model.layers.0."
    out = [patch("rope_theta_1000", rope_theta=1000), patch("rope_whole_head", partial_rotary_factor=1.0),
           patch("rope_half_head", partial_rotary_factor=0.5), patch("layer_norm_eps_1e-6", layer_norm_eps=1e-6),
           edit("gate_and_up_swapped", t.swap(l0 + "mlp.gate_proj.weight", l0 + "mlp.up_proj.weight")),
           edit("no_final_norm_bias", t.zero("model.norm.bias")),
           edit("no_input_norm_bias", sum((t.zero(f"model.layers.{i}.input_layernorm.bias") for i in layers(c)), []))]
    if c["use_qkv_bias"]:
        out.append(edit("no_v_bias", sum((t.zero(f"model.layers.{i}.self_attn.v_proj.bias") for i in layers(c)), [])))
    if c["qk_layernorm"]:
        out.append(edit("q_and_k_norm_swapped", t.swap(l0 + "self_attn.q_layernorm.norms.0.weight", l0 + "self_attn.k_layernorm.norms.0.weight")))
    return out


stablelm_v5 = {k: v for k, v in stablelm.items() if k not in ("rope_theta", "partial_rotary_factor", "torch_dtype")}
stablelm_v5.update(dtype="float32", rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
                   transformers_version="5.24.0")
spec("stablelm", "stablelm", stablelm, lengths=[12, 40], twins=stablelm_twins, same=[{"name": "v5_spelling", "config": stablelm_v5}])
spec("stablelm_parallel", "stablelm", {**stablelm, "use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": False,
                                       "num_key_value_heads": 2, "torch_dtype": "bfloat16"}, lengths=[12, 40],
     store="bfloat16", round="bfloat16", twins=stablelm_twins)

# gpt-oss in its bf16 layout; in MXFP4: quant_gpt_oss.py.

gpt_oss = {"architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": 2,
           "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initial_context_length": 32, "initializer_range": 0.02,
           "intermediate_size": 32, "layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 128,
           "model_type": "gpt_oss", "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
           "num_local_experts": 4, "output_router_logits": False, "pad_token_id": 0, "rms_norm_eps": 1e-5,
           "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 4.0, "original_max_position_embeddings": 32,
                            "rope_type": "yarn", "truncate": False},
           "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 8, "swiglu_limit": 7.0, "tie_word_embeddings": False,
           "transformers_version": "4.55.0", "use_cache": True, "vocab_size": 128}
gpt_oss_v5 = {k: v for k, v in gpt_oss.items() if k not in ("rope_scaling", "rope_theta")}
gpt_oss_v5.update(rope_parameters={**gpt_oss["rope_scaling"], "rope_theta": 150000}, transformers_version="5.24.0")
spec("gpt_oss", "gpt_oss", gpt_oss, lengths=[12, 40], same=[{"name": "v5_spelling", "config": gpt_oss_v5}],
     store="bfloat16", round="bfloat16",
     twins=lambda t, c: [edit("sinks_zeroed", sum((t.zero(f"model.layers.{i}.self_attn.sinks") for i in layers(c)), [])),
                         patch("window_9", sliding_window=9), patch("truncate", rope_scaling={"truncate": True}),
                         patch("top_1", num_experts_per_tok=1)])

# Quantised GGUF: the reference runs on the dequantised values.

quant_config = llama_config(vocab=STUB_VOCAB, intermediate_size=96)
for kind in (Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0):
    spec(f"gguf_{kind.name.lower()}", "llama", quant_config, kind="quant", label=kind, lengths=[12, 29], types=lambda name, kind=kind: kind,
         twins=gguf_twins("llama", inter_to_half))

k_config = llama_config(vocab=STUB_VOCAB, hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_key_value_heads=1,
                        tie_word_embeddings=True)
for kind in (Q.Q2_K, Q.Q3_K, Q.Q5_K):
    spec(f"gguf_{kind.name.lower()}", "llama", k_config, embed_std=0.05, kind="quant", label=kind, lengths=[12, 29], types=lambda name, kind=kind: kind,
         twins=gguf_twins("llama", inter_to_half))
mix_config = {**k_config, "intermediate_size": 512}
spec("gguf_q4_k_m", "llama", mix_config, embed_std=0.05, kind="quant", label=Q.Q4_K, lengths=[12, 29], twins=gguf_twins("llama", inter_to_half),
     types=lambda name: Q.Q6_K if re.search(r"token_embd|attn_v|ffn_down", name) else Q.Q4_K)


# ---------------------------------------------------------------- quantised blocks

def f16_bytes(x):
    return np.asarray(x, np.float32).astype(np.float16).reshape(-1, 1).view(np.uint8)


def pack_k_scales(sc, mn):
    """Twelve bytes for eight 6-bit scales and eight 6-bit mins (Q4_K, Q5_K)."""
    p = np.zeros((len(sc), 12), np.uint8)
    p[:, 0:4] = (sc[:, :4] & 63) | ((sc[:, 4:] >> 4) << 6)
    p[:, 4:8] = (mn[:, :4] & 63) | ((mn[:, 4:] >> 4) << 6)
    p[:, 8:12] = (sc[:, 4:] & 15) | ((mn[:, 4:] & 15) << 4)
    return p


def random_k_blocks(kind, n, std, rng):
    """Blocks whose values have about the wanted spread and mean 0."""
    byte = lambda *shape: rng.integers(0, 256, (n, *shape), dtype=np.uint8)
    jitter = rng.uniform(0.8, 1.25, n)
    if kind in (Q.Q4_K, Q.Q5_K):
        sc = rng.integers(12, 64, (n, 8)).astype(np.uint8)
        mn = np.clip(sc.astype(int) + rng.integers(-3, 4, (n, 8)), 0, 63).astype(np.uint8)
        mean = 7.5 if kind == Q.Q4_K else 15.5
        d = std / (38 * mean * 0.6) * jitter
        parts = [f16_bytes(d), f16_bytes(d * mean), pack_k_scales(sc, mn)]
        return np.hstack(parts + ([byte(32)] if kind == Q.Q5_K else []) + [byte(128)])
    if kind == Q.Q2_K:
        sc = rng.integers(4, 16, (n, 16))
        mn = np.clip(sc + rng.integers(-1, 2, (n, 16)), 0, 15)
        d = std / (9.5 * 1.1) * jitter
        return np.hstack([(sc | (mn << 4)).astype(np.uint8), byte(64), f16_bytes(d), f16_bytes(d * 1.5)])
    if kind == Q.Q3_K:
        return np.hstack([byte(32), byte(64), byte(12), f16_bytes(std / (18 * 2.3) * jitter)])
    if kind == Q.Q6_K:
        return np.hstack([byte(128), byte(64), byte(16), f16_bytes(std / (74 * 18.5) * jitter)])
    raise KeyError(kind)


def quantised_tensors(s, seed):
    """GGUF tensors of a random llama in the wanted types: name -> float32 array or (bytes, type)."""
    config = s["config"]
    plain_tensors = to_gguf_tensors("llama", config, randomise(hub_shapes(config), seed, s))
    rng = np.random.Generator(np.random.PCG64(seed + 1))
    out = {}
    for name, t in plain_tensors.items():
        if t.ndim == 1:
            out[name] = t
            continue
        kind = s["types"](name)
        if kind.name.endswith("_K"):
            block, size = gguf.GGML_QUANT_SIZES[kind]
            raw = random_k_blocks(kind, t.size // block, float(t.std()), rng).reshape(t.shape[0], -1)
            assert raw.shape[1] == t.shape[1] // block * size
        else:
            raw = quants.quantize(t, kind)
        out[name] = (np.ascontiguousarray(raw), kind)
    return out


BLOCK_TYPES = (Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K)
F16_FIELDS = {Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0], Q.Q2_K: [80, 82], Q.Q3_K: [108],
              Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q6_K: [208]}
# zeros of both signs, subnormals, one, largest, and ordinary scales
F16_EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x3400, 0x2C1F]


def write_blocks(folder):
    folder.mkdir(parents=True)
    index = {"about": "TYPE.bin holds the stored blocks, TYPE.f32.bin the float32 values (little-endian) that gguf.quants.dequantize gives; "
                      "compare bit by bit", "made_with": VERSIONS, "types": {}}
    for kind in BLOCK_TYPES:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = 64 if block == 32 else 32
        rng = np.random.Generator(np.random.PCG64(seed_of("blocks " + kind.name)))
        raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
        raw[0, :], raw[1, :], raw[2, :], raw[3, :] = 0x00, 0xFF, 0x80, 0x7F
        raw[4, :] = np.arange(size) % 256
        for k, at in enumerate(F16_FIELDS[kind]):
            d = rng.integers(0, 0x10000, n).astype(np.uint16)
            d = np.where((d & 0x7C00) == 0x7C00, d & 0xBFFF, d).astype(np.uint16)     # every scale finite
            d[:5] = [0x3C00, 0x3C00, 0x3800, 0xB400, 0x2E66]
            d[5:5 + len(F16_EDGES)] = np.roll(F16_EDGES, 5 * k)
            raw[:, at:at + 2] = d.reshape(-1, 1).view(np.uint8)
        values = quants.dequantize(raw.reshape(-1), kind).astype(np.float32).reshape(-1)
        assert values.size == n * block and np.isfinite(values).all()
        (folder / f"{kind.name}.bin").write_bytes(raw.tobytes())
        (folder / f"{kind.name}.f32.bin").write_bytes(values.astype("<f4").tobytes())
        index["types"][kind.name] = {"id": int(kind), "blocks": n, "block_elements": block, "block_bytes": size}
    rng = np.random.Generator(np.random.PCG64(seed_of("blocks 16 bit")))
    for kind in (Q.F16, Q.BF16):
        bits = rng.integers(0, 0x10000, 2048).astype(np.uint16)
        bits[:16] = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x7F, 0x80, 0x7F7F, 0xFF7F, 0x3C00, 0xBC00, 0x3F80, 0xBF80]
        mask = 0x7C00 if kind == Q.F16 else 0x7F80
        bits = np.where((bits & mask) == mask, bits & 0xBFFF, bits).astype("<u2")      # finite; infinities and NaN have tests of their own
        values = quants.dequantize(bits.view(np.uint8), kind).astype(np.float32).reshape(-1)
        assert np.isfinite(values).all()
        (folder / f"{kind.name}.bin").write_bytes(bits.tobytes())
        (folder / f"{kind.name}.f32.bin").write_bytes(values.astype("<f4").tobytes())
        index["types"][kind.name] = {"id": int(kind), "blocks": 2048, "block_elements": 1, "block_bytes": 2}
    write_json(folder / "index.json", index)


# ---------------------------------------------------------------- making one group

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def top_k(s):
    return s["config"].get("num_experts_per_tok") if s["config"] else None


def eos_of(config):
    e = config.get("eos_token_id", 2)
    return e if isinstance(e, list) else [e]


def vocab_of(config):
    return config.get("text_config", config)["vocab_size"]


def all_prompts(s):
    p = prompts_of(vocab_of(s["config"]), s["lengths"])
    return p + [window_prompt(vocab_of(s["config"]))] if s.get("long") else p


def as_stored(tensors, s):
    """The values that reading the stored type gives back."""
    return {k: v.to(DTYPES[s["store"]]).float() for k, v in tensors.items()}


def stop_token(s, result):
    return result["greedy"][s["stop_at"] - 1]


def make_group(base, members, write):
    """Try seeds until no model of the group has a near tie; then write them all."""
    shapes = None if base["kind"] == "quant" else hub_shapes(base["config"])
    if shapes:
        for n in shapes:
            assert HUB_NAME.fullmatch(n), f"not a hub name: {n}"
    reasons = {}
    for attempt in range(MAX_ATTEMPTS):
        seed = seed_of(base["name"], attempt)
        try:
            measured = {}
            if base["kind"] == "quant":
                tensors = quantised_tensors(base, seed)
                with tempfile.TemporaryDirectory() as tmp:
                    folder = Path(tmp) / base["name"]
                    folder.mkdir()
                    write_gguf(folder / "model.gguf", "llama", base["config"], tensors, base["label"])
                    model = open_gguf(folder / "model.gguf")
                measured[base["name"]] = measure(model, all_prompts(base), [STUB_VOCAB - 1])
                break
            tensors = randomise(shapes, seed, base)
            for s in [base] + members:
                if s["kind"] in ("own", "link", "rounded") and not s.get("same_logits"):
                    model = open_tensors(s["config"], as_stored(tensors, s))
                    eos = set(eos_of(s["config"])) | {STUB_VOCAB - 1}
                    prompts = prompts_of(vocab_of(s["config"]), s["lengths"])     # the long one has no margins to hold
                    measured[s["name"]] = measure(model, prompts, eos, k=top_k(s))
            for s in [base] + members:
                if s.get("long"):
                    model = open_tensors(s["config"], as_stored(tensors, s))
                    measured[s["name"]] = measure(model, all_prompts(s), set(eos_of(s["config"])) | {STUB_VOCAB - 1}, k=top_k(s))
            break
        except Rejected as e:
            reasons[str(e)] = reasons.get(str(e), 0) + 1
    else:
        raise SystemExit(f"{base['name']}: no seed in {MAX_ATTEMPTS} attempts: {reasons}")
    print(f"{base['name']}: attempt {attempt}, rejected {reasons}", flush=True)
    for s in [base] + members:
        write(s, tensors, seed, attempt, measured)


class Writer:
    def __init__(self, root):
        self.root, self.of = root, {}

    def __call__(self, s, tensors, seed, attempt, measured):
        folder = self.root / s["name"]
        folder.mkdir(parents=True)
        self.of[s["name"]] = s
        getattr(self, "files_" + s["kind"])(s, folder, tensors)
        if s["config"] and s["kind"] not in ("gguf", "quant"):
            write_config(folder / "config.json", s["config"])
            generation = {"_from_model_config": True, "bos_token_id": s["config"].get("bos_token_id", 1),
                          "eos_token_id": eos_of(s["config"]) if len(eos_of(s["config"])) > 1 else eos_of(s["config"])[0],
                          "transformers_version": s["config"]["transformers_version"]}
            if s.get("stop_at"):
                generation["eos_token_id"] = [eos_of(s["config"])[0], stop_token(s, measured[s["base"]][0])]
            write_config(folder / "generation_config.json", generation)
        if s.get("stub_tokenizer"):
            (folder / "tokenizer.json").write_text(json.dumps(stub_tokenizer_json(), ensure_ascii=False, indent=1) + "\n")
        self.golden(s, folder, tensors, seed, attempt, measured)

    # the files of each kind

    def files_own(self, s, folder, tensors):
        save_file({k: v.to(DTYPES[s["store"]]) for k, v in tensors.items()}, folder / "model.safetensors", {"format": "pt"})

    files_rounded = files_own

    def files_link(self, s, folder, tensors):
        link(folder / "model.safetensors", f"../{s['base']}/model.safetensors")

    def files_sharded(self, s, folder, tensors):
        names, shards, total = sorted(tensors), 3, 0
        weight_map = {}
        for i in range(shards):
            part = {n: tensors[n] for n in names[i * len(names) // shards:(i + 1) * len(names) // shards]}
            file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
            save_file(part, folder / file, {"format": "pt"})
            weight_map.update({n: file for n in part})
            total += sum(v.numel() * 4 for v in part.values())
        write_config(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})

    def files_prefix(self, s, folder, tensors):
        old, new = s["prefix"]
        save_file({(new + k[len(old):] if k.startswith(old) else k): v.to(DTYPES[s["store"]]) for k, v in tensors.items()},
                  folder / "model.safetensors", {"format": "pt"})

    def files_stacked(self, s, folder, tensors):
        """What transformers 5 writes when it is told not to revert its stacking."""
        model = open_tensors(self.of[s["base"]]["config"], tensors).to(DTYPES[s["store"]])
        with tempfile.TemporaryDirectory() as tmp:
            model.save_pretrained(tmp, save_original_format=False)
            save_file(load_file(Path(tmp) / "model.safetensors"), folder / "model.safetensors", {"format": "pt"})
        names = set(load_file(folder / "model.safetensors"))
        assert "model.layers.0.mlp.experts.gate_up_proj" in names and "model.layers.0.mlp.experts.down_proj" in names

    def files_wrapper(self, s, folder, tensors):
        """A multimodal file: the text under language_model., a vision tower beside it."""
        config = config_of({k: v for k, v in s["config"].items()})
        model = transformers.Gemma3ForConditionalGeneration._from_config(config, dtype=torch.float32)
        with tempfile.TemporaryDirectory() as tmp:
            model.save_pretrained(tmp)
            shapes = {k: list(v.shape) for k, v in load_file(Path(tmp) / "model.safetensors").items()}
        text = {"language_model." + k: v for k, v in tensors.items()}
        assert set(text) == {k for k in shapes if k.startswith("language_model.")}, sorted(shapes)
        rest = randomise({k: v for k, v in shapes.items() if k not in text}, seed_of(s["name"]), {**s, "config_tied": False})
        save_file({k: v.to(DTYPES[s["store"]]) for k, v in {**text, **rest}.items()}, folder / "model.safetensors", {"format": "pt"})

    def files_gguf(self, s, folder, tensors):
        t = to_gguf_tensors(s["arch"], s["config"], tensors)
        if s["label"] != Q.F32:     # vectors and the router stay float32, as the converter has it
            t = {n: (quants.quantize(x, s["label"]), s["label"]) if x.ndim > 1 and "ffn_gate_inp" not in n else x for n, x in t.items()}
        write_gguf(folder / "model.gguf", s["arch"], s["config"], t, s["label"])

    def files_quant(self, s, folder, tensors):
        write_gguf(folder / "model.gguf", "llama", s["config"], tensors, s["label"])

    # golden.json

    def open(self, s, folder):
        """The model as transformers reads this folder; the two prefix kinds it does not know are renamed first."""
        if s["kind"] == "prefix":
            old, new = s["prefix"]
            t = load_file(folder / "model.safetensors")
            return open_tensors(json.loads((folder / "config.json").read_text()), {(old + k[len(new):] if k.startswith(new) and k != "lm_head.weight" else k): v for k, v in t.items()})
        return open_any(folder, "model.gguf" if s["kind"] in ("gguf", "quant") else None)

    def golden(self, s, folder, tensors, seed, attempt, measured):
        is_gguf = s["kind"] in ("gguf", "quant")
        prompts = all_prompts(s)
        source = s["name"]
        while source not in measured:
            source = self.of[source]["base"]
        results = measured[source]
        model = self.open(s, folder)
        out = {"schema": "davit-golden/1", "name": s["name"], "family": s["family"], "path": "model.gguf" if is_gguf else ".",
               "same_logits_as": None if source == s["name"] else source, "made_with": VERSIONS, "seed": seed, "attempt": attempt,
               "weights_sha256": {p.name: sha256(p) for p in sorted(folder.iterdir()) if p.suffix in (".safetensors", ".gguf")},
               "stored_as": s["label"].name if is_gguf else s["store"], "tolerance": TOLERANCE,
               "cache_rel_diff_max": 2e-5, "prompts": []}
        cache = check_cache(model, prompts) if source == s["name"] else None
        arrays = []
        for i, (p, r) in enumerate(zip(prompts, results)):
            rows = p.get("rows")
            logits = r["logits"][rows] if rows else r["logits"]
            arrays.append(logits)
            fresh_rope(model)
            again = forward(model, p["ids"])
            again = again[rows] if rows else again
            assert rel_diff(again, logits) < (1e-5 if is_gguf else 2e-6), (s["name"], rel_diff(again, logits))
            file = folder / f"logits_{i}.npy"
            if source == s["name"]:
                np.save(file, np.ascontiguousarray(logits, np.float32))
            else:
                link(file, f"../{source}/logits_{i}.npy")
            e = {"ids": p["ids"], "rows": rows, "logits": file.name, "max_abs": rounded(np.abs(logits).max()),
                 "row_margin": rounded(r["row_margin"]), "greedy": r.get("greedy"),
                 "greedy_margins": [rounded(m) for m in r["greedy_margins"]] if "greedy" in r else None}
            if "tolerance" in p:
                e["tolerance"] = p["tolerance"]
            if "rope_n" in r:
                e["rope_n"] = r["rope_n"]
            if "router" in r:
                e["router_margin"] = rounded(r["router_margin"])
                e["router"] = r["router"]
            out["prompts"].append(e)
        if s.get("stop_at"):
            stop = stop_token(s, results[0])
            out["stop"] = {"prompt": 0, "eos": stop, "ids": results[0]["greedy"][:results[0]["greedy"].index(stop) + 1]}
        out["same"] = [self.same(s, folder, prompts, arrays, e) for e in s["same"]]
        out["refused"] = s["refused"]
        layout = Tensors(folder / ("model.gguf" if is_gguf else "model.safetensors")) if s["kind"] != "sharded" else None
        out["twins"] = [self.twin(s, folder, prompts, arrays, t) for t in s["twins"](layout, s["config"])]
        write_golden(folder / "golden.json", out)
        worst = min((t["rel_diff"] for t in out["twins"]), default=None)
        print(f"  {s['name']}: max {max(e['max_abs'] for e in out['prompts'])}, cache {cache and rounded(cache)}, "
              f"{len(out['twins'])} twins, least {worst}", flush=True)

    def changed(self, s, folder, prompts, change):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as tmp:
            copy_to = Path(tmp) / s["name"]
            shutil.copytree(folder, copy_to, symlinks=False, ignore=shutil.ignore_patterns("*.npy"))
            change(copy_to)
            model = self.open(s, copy_to)
            out = []
            for p in prompts:
                fresh_rope(model)
                logits = forward(model, p["ids"])
                out.append(logits[p["rows"]] if p.get("rows") else logits)
            return out

    def same(self, s, folder, prompts, arrays, e):
        """A config.json in other words: the logits stay."""
        got = self.changed(s, folder, prompts, lambda d: write_config(d / "config.json", e["config"]))
        worst = max(rel_diff(a, b) for a, b in zip(got, arrays))
        assert worst < 1e-6, (s["name"], e["name"], worst)
        return e

    def twin(self, s, folder, prompts, arrays, t):
        """One quirk flipped: the logits must move far past the tolerance."""
        def change(d):
            if "patch" in t:
                path = d / "config.json"
                new = merge_patch(json.loads(path.read_text()), t["patch"])
                assert new != json.loads(path.read_text()), (s["name"], t["name"])
                write_config(path, new)
            else:
                apply_edits(d / t["file"], t["edits"])
        got = self.changed(s, folder, prompts, change)
        diffs = [rel_diff(a, b) for a, b in zip(got, arrays)]
        worst = max(diffs)
        if worst < TWIN_MIN:
            WEAK.append((s["name"], t["name"], worst))
            print(f"    WEAK {s['name']} {t['name']} {worst:.3g}", flush=True)
        return {"name": t["name"], "rel_diff": rounded(worst), "prompt": diffs.index(worst), **{k: v for k, v in t.items() if k != "name"}}


WEAK = []


def write_golden(path, out):
    """Readable, but with one line per list of numbers and per edit."""
    text = json.dumps(out, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+((?:-?[\d.e+-]+,\s+)*-?[\d.e+-]+)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    text = re.sub(r"\{\s+(\"at\": [^{}]*?)\s+\}", lambda m: "{" + re.sub(r"\s+", " ", m[1]) + "}", text)
    text = re.sub(r"\[\s+((?:\[[\d, ]+\],\s+)*\[[\d, ]+\])\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    assert json.loads(text) == json.loads(json.dumps(out))
    path.write_text(text + "\n")


def write_index(root):
    models = []
    for path in sorted(root.glob("*/golden.json")):
        g = json.loads(path.read_text())
        models.append({k: g[k] for k in ("name", "family", "path", "stored_as", "same_logits_as")} | {
            "prompts": [len(p["ids"]) for p in g["prompts"]], **{k: len(g[k]) for k in ("twins", "same", "refused")}})
    write_json(root / "INDEX.json", {"schema": "davit-golden-index/1", "made_with": VERSIONS, "models": models})


# ---------------------------------------------------------------- main

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE, help="where models/ and gguf_blocks/ are written (default: beside this script)")
    parser.add_argument("--only", help="make only the groups whose first model matches this expression")
    parser.add_argument("--keep-weak", action="store_true", help="do not fail on a twin that moves too little")
    args = parser.parse_args()
    assert VERSIONS["transformers"] == "5.24.0", "made with transformers 5.24.0; another version needs a look at every golden"
    root = args.out / "models"
    groups = []
    by_name = {s["name"]: s for s in SPECS}
    def root_of(s):
        return s if not s["base"] else root_of(by_name[s["base"]])
    for s in SPECS:
        if not s["base"]:
            groups.append((s, [m for m in SPECS if m is not s and root_of(m) is s]))
    if not args.only:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(args.out / "gguf_blocks", ignore_errors=True)
        write_blocks(args.out / "gguf_blocks")
    writer = Writer(root)
    for base, members in groups:
        if args.only and not re.search(args.only, base["name"]):
            continue
        for s in [base] + members:
            shutil.rmtree(root / s["name"], ignore_errors=True)
        make_group(base, members, writer)
    if WEAK and not args.keep_weak:
        sys.exit("twins that move too little: " + ", ".join(f"{a}/{b} {c:.2g}" for a, b, c in WEAK))
    write_index(root)


if __name__ == "__main__":
    main()
