"""gpt-oss as it is published, and the same weights as llama.cpp's converter writes them: MXFP4
experts beside plain attention. Part of make_quant.py.

Published: experts [E, outputs, inputs / 32, 16] whose rows are gate and up in turn. GGUF: gate, up
and down apart, blocks in GGUF's order of nibbles. transformers computes both goldens in float32
from the dequantised weights; the window, YaRN's band, the clamp of the experts' gates, ties of the
router and equal greedy ids are looked at before a golden is written.
"""
import json
import shutil
import zlib

import gguf
import make_quant as mq
import numpy as np
import torch

H, I, V, NH, NKV, HD, E, K, L = 64, 32, 128, 4, 2, 16, 4, 2, 2
WINDOW, ORIGINAL, FACTOR = 8, 32, 4.0
ROUTER_MARGIN = 1e-3
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.router": "ffn_gate_inp", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "post_attention_norm"}


def config_of():
    config = json.loads((mq.HERE / "models/gpt_oss/config.json").read_text())
    assert (config["hidden_size"], config["intermediate_size"], config["num_local_experts"]) == (H, I, E)
    assert config["sliding_window"] == WINDOW and config["initial_context_length"] == ORIGINAL
    return config


class Weights:
    """plain: name -> float32, rounded to BF16 first; experts: (layer, gate_up | down) -> codes, scales."""

    def __init__(self, seed):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.plain, self.raw, self.experts = {}, {}, {}
        self.put("model.embed_tokens.weight", (V, H), 0.3)
        self.put("lm_head.weight", (V, H), 3 / H**0.5)
        self.put("model.norm.weight", (H,), 0.2, 1.0)
        for i in range(L):
            self.layer(f"model.layers.{i}.", i)

    def put(self, name, shape, std, mean=0.0):
        self.raw[name], self.plain[name] = mq.dense(self.rng, shape, mean, std)

    def layer(self, p, i):
        for name, n in (("q", NH * HD), ("k", NKV * HD), ("v", NKV * HD), ("o", H)):
            fan_in = NH * HD if name == "o" else H
            self.put(f"{p}self_attn.{name}_proj.weight", (n, fan_in), (1.6 if name in "qk" else 1) / fan_in**0.5)
            self.put(f"{p}self_attn.{name}_proj.bias", (n,), 0.5)
        self.put(p + "self_attn.sinks", (NH,), 0.5)
        self.put(p + "mlp.router.weight", (E, H), 2 / H**0.5)
        self.put(p + "mlp.router.bias", (E,), 0.5)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            self.put(p + norm + ".weight", (H,), 0.2, 1.0)
        for name, n, k, scales in (("gate_up_proj", 2 * I, H, (121, 126)), ("down_proj", H, I, (119, 123))):
            codes = self.rng.integers(0, 16, (E, n, k), dtype=np.uint8)
            self.experts[i, name] = codes, self.rng.integers(*scales, (E, n, k // 32), dtype=np.uint8)
            self.put(f"{p}mlp.experts.{name}_bias", (E, n), 0.5)

    def values(self, i, name):
        """[E, outputs, inputs]"""
        codes, scales = self.experts[i, name]
        return np.ascontiguousarray(mq.E2M1[codes] * np.repeat(mq.e8m0(scales), 32, -1), np.float32)

    def state(self):
        """As transformers holds them: experts are [E, inputs, outputs] there."""
        state = dict(self.plain)
        for i, name in self.experts:
            state[f"model.layers.{i}.mlp.experts.{name}"] = self.values(i, name).transpose(0, 2, 1)
        return state


class Watch:
    """What the forward must meet for the golden to prove anything."""

    def __init__(self):
        self.margin, self.clamped = 1.0, 0
        self.model = mq.MODELS["gpt_oss"]
        for name, module in self.model.named_modules():
            if name.endswith("mlp.router"):
                module.register_forward_hook(self.router)
            elif name.endswith("mlp.experts"):
                module._apply_gate = self.gate(module._apply_gate)

    def router(self, module, args, out):
        logits = torch.nn.functional.linear(args[0].reshape(-1, H), module.weight, module.bias)
        p = torch.softmax(logits, -1).sort(-1, descending=True).values
        self.margin = min(self.margin, float((p[:, K - 1] - p[:, K]).min()))

    def gate(self, apply):
        def counted(gate_up):
            self.clamped += int((gate_up > 7).sum())
            return apply(gate_up)
        return counted


def prompts():
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(b"gpt_oss prompts")))
    return [[int(x) for x in rng.integers(3, V, n)] for n in (2 * WINDOW + 5, ORIGINAL + 8)]


def answers(config, w):
    """[(ids, logits, greedy)], or None where the router or a greedy id nearly ties."""
    state, out, watch = w.state(), [], None
    for ids in prompts():
        mq.logits_of(config, state, ids[:2])  # makes the model
        watch = watch or Watch()
        out.append((ids, mq.logits_of(config, state, ids), mq.greedy_of(config, state, ids)))
        if watch.margin < ROUTER_MARGIN or len(set(out[-1][2])) < 3:
            return None
    assert watch.clamped > 20, "no gate reaches the clamp"
    return out


def write_golden(out, dump, found):
    golden = {"dump": dump, "prompts": []}
    for i, (ids, logits, greedy) in enumerate(found):
        np.save(out / f"logits_{i}.npy", logits)
        golden["prompts"].append({"ids": ids, "logits": f"logits_{i}.npy", "greedy": greedy})
    (out / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


def write_published(out, config, w, found):
    stored, dump = {}, {}
    for name in w.plain:
        stored[name] = ("BF16", w.raw[name])
    for (i, name), (codes, scales) in w.experts.items():
        m = f"model.layers.{i}.mlp.experts.{name}"
        blocks = codes[..., 0::2] | codes[..., 1::2] << 4
        stored[m + "_blocks"] = ("U8", blocks.reshape(*scales.shape, 16))
        stored[m + "_scales"] = ("U8", scales)
        dump[m] = f"{zlib.crc32(w.values(i, name).tobytes()):08x}"
    mq.write_safetensors(out / "model.safetensors", stored)
    config = config | {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}
    (out / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    write_golden(out, dump, found)


def gguf_blocks(codes, scales):
    """[..., 17] a block: the scale, then byte j holds elements j and j + 16."""
    c = codes.reshape(*scales.shape, 32)
    raw = np.concatenate([scales[..., None], c[..., :16] | c[..., 16:] << 4], -1)
    return np.ascontiguousarray(raw.reshape(*codes.shape[:-1], -1))


def write_gguf(out, w, found):
    g, dump = gguf.GGUFWriter(out / "model.gguf", "gpt-oss"), {}
    MXFP4, BF16 = gguf.GGMLQuantizationType.MXFP4, gguf.GGMLQuantizationType.BF16
    g.add_context_length(128)
    g.add_embedding_length(H)
    g.add_block_count(L)
    g.add_feed_forward_length(I)
    g.add_expert_feed_forward_length(I)
    g.add_head_count(NH)
    g.add_head_count_kv(NKV)
    g.add_key_length(HD)
    g.add_value_length(HD)
    g.add_layer_norm_rms_eps(1e-5)
    g.add_rope_freq_base(150000.0)
    g.add_rope_dimension_count(HD)
    g.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    g.add_rope_scaling_factor(FACTOR)
    g.add_rope_scaling_orig_ctx_len(ORIGINAL)
    g.add_sliding_window(WINDOW)
    g.add_expert_count(E)
    g.add_expert_used_count(K)
    g.add_vocab_size(V)
    g.add_tokenizer_model("none")

    def plain(name, value):
        if name.endswith(".weight") and value.ndim == 2 and "gate_inp" not in name:
            g.add_tensor(name, mq.bf16(value)[0].view(np.uint8), raw_dtype=BF16)
        else:
            g.add_tensor(name, np.ascontiguousarray(value))
    plain("token_embd.weight", w.plain["model.embed_tokens.weight"])
    plain("output_norm.weight", w.plain["model.norm.weight"])
    plain("output.weight", w.plain["lm_head.weight"])
    for i in range(L):
        p, b = f"model.layers.{i}.", f"blk.{i}."
        for hub, name in NAMES.items():
            for leaf in ("weight", "bias"):
                if f"{p}{hub}.{leaf}" in w.plain:
                    plain(f"{b}{name}.{leaf}", w.plain[f"{p}{hub}.{leaf}"])
        plain(b + "attn_sinks.weight", w.plain[p + "self_attn.sinks"])
        for hub, name, rows in (("gate_up_proj", "gate", slice(0, None, 2)), ("gate_up_proj", "up", slice(1, None, 2)),
                                ("down_proj", "down", slice(None))):
            codes, scales = w.experts[i, hub]
            t = f"{b}ffn_{name}_exps"
            g.add_tensor(t + ".weight", gguf_blocks(codes[:, rows], scales[:, rows]), raw_dtype=MXFP4)
            plain(t + ".bias", w.plain[f"{p}mlp.experts.{hub}_bias"][:, rows])
            dump[t] = f"{zlib.crc32(np.ascontiguousarray(w.values(i, hub)[:, rows]).tobytes()):08x}"
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()
    write_golden(out, dump, found)


def make(root):
    config = config_of()
    for attempt in range(200):
        w = Weights(zlib.crc32(f"gpt_oss_mxfp4 {attempt}".encode()))
        found = answers(config, w)
        if found:
            break
    for name, write in (("gpt_oss_mxfp4", lambda d: write_published(d, config, w, found)),
                        ("gguf_gpt_oss", lambda d: write_gguf(d, w, found))):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
        write(root / name)
    print(f"gpt_oss_mxfp4, gguf_gpt_oss: attempt {attempt}")
