#!/usr/bin/env python3
"""Greedy ids of two real models, by Hugging Face transformers on the dequantised weights.

Reads the GGUF files that scripts/fetch-models.sh writes, dequantises every tensor with the
gguf package, undoes what the converter did (q and k row order of llama, +1 of gemma norms),
and runs the model in float32 with eager attention. Writes goldens.json beside this file.

    pip install torch==2.13.0 transformers==5.24.0 gguf==0.19.0 tokenizers==0.23.3 accelerate
    python3 make_real_goldens.py build/models
"""
import json
import pathlib
import sys

import gguf
import numpy as np
import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea,",
    "def fibonacci(n):\n    \"\"\"Return the n-th number.\"\"\"\n",
    "In 1969, 3 astronauts flew 384400 km to",
    "Die Hauptstadt von Österreich ist",
]
N_NEW = 32


def value(reader, key, default=None):
    field = reader.fields.get(key)
    return default if field is None else field.contents()


def tensors(reader):
    return {t.name: torch.from_numpy(np.ascontiguousarray(
        gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32).reshape(
            tuple(int(n) for n in reversed(t.shape)))))
        for t in reader.tensors}


def unpermute(w, heads):
    """GGUF row 2j+s of a head is row s*d/2+j of Hugging Face."""
    d = w.shape[0] // heads
    return w.reshape(heads, d // 2, 2, -1).swapaxes(1, 2).reshape(w.shape)


def llama_model(reader):
    t = tensors(reader)
    nh, nkv = value(reader, "llama.attention.head_count"), value(reader, "llama.attention.head_count_kv")
    cfg = transformers.LlamaConfig(
        vocab_size=t["token_embd.weight"].shape[0], hidden_size=value(reader, "llama.embedding_length"),
        intermediate_size=value(reader, "llama.feed_forward_length"),
        num_hidden_layers=value(reader, "llama.block_count"), num_attention_heads=nh,
        num_key_value_heads=nkv, max_position_embeddings=value(reader, "llama.context_length"),
        rms_norm_eps=value(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_theta=value(reader, "llama.rope.freq_base"), tie_word_embeddings="output.weight" not in t,
        attn_implementation="eager", dtype="float32")
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    state = {"model.embed_tokens.weight": t["token_embd.weight"], "model.norm.weight": t["output_norm.weight"]}
    for name, w in t.items():
        if name.startswith("blk."):
            _, i, part, _ = name.split(".")
            w = unpermute(w, nh) if part == "attn_q" else unpermute(w, nkv) if part == "attn_k" else w
            state[f"model.layers.{i}.{names[part]}.weight"] = w
    state["lm_head.weight"] = t.get("output.weight", t["token_embd.weight"])
    model = transformers.LlamaForCausalLM(cfg)
    model.load_state_dict(state)
    return model.float().eval()


def gemma_model(reader):
    t = tensors(reader)
    a = "gemma3."
    cfg = transformers.Gemma3TextConfig(
        vocab_size=t["token_embd.weight"].shape[0], hidden_size=value(reader, a + "embedding_length"),
        intermediate_size=value(reader, a + "feed_forward_length"), num_hidden_layers=value(reader, a + "block_count"),
        num_attention_heads=value(reader, a + "attention.head_count"),
        num_key_value_heads=value(reader, a + "attention.head_count_kv"),
        head_dim=value(reader, a + "attention.key_length"), query_pre_attn_scalar=value(reader, a + "attention.key_length"),
        rms_norm_eps=value(reader, a + "attention.layer_norm_rms_epsilon"),
        sliding_window=value(reader, a + "attention.sliding_window"),
        max_position_embeddings=value(reader, a + "context_length"),
        rope_theta=value(reader, a + "rope.freq_base"), rope_local_base_freq=1e4,
        attn_implementation="eager", dtype="float32")
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
             "attn_k_norm": "self_attn.k_norm", "post_attention_norm": "post_attention_layernorm",
             "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    state = {"model.embed_tokens.weight": t["token_embd.weight"], "lm_head.weight": t["token_embd.weight"],
             "model.norm.weight": t["output_norm.weight"] - 1}
    for name, w in t.items():
        if name.startswith("blk."):
            _, i, part, _ = name.split(".")
            state[f"model.layers.{i}.{names[part]}.weight"] = w - 1 if "norm" in part else w
    model = transformers.Gemma3ForCausalLM(cfg)
    model.load_state_dict(state)
    return model.float().eval()


def smollm2_tokenizer(reader):
    """The true shape: Digits(individual), then ByteLevel. (transformers' own conversion loses Digits.)"""
    tokens, types = value(reader, "tokenizer.ggml.tokens"), value(reader, "tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ")) for m in value(reader, "tokenizer.ggml.merges")]
    tok = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False)
                            for t, kind in zip(tokens, types) if kind == 3])
    return tok


@torch.no_grad()
def greedy(model, ids):
    out, margins, past, x = [], [], None, torch.tensor([ids])
    for _ in range(N_NEW):
        r = model(x, past_key_values=past, use_cache=True)
        past, best = r.past_key_values, torch.topk(r.logits[0, -1], 2)
        out.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 4))
        x = torch.tensor([[out[-1]]])
    return out, min(margins)


def prompts_of(model, encode):
    rows = []
    for text in PROMPTS:
        ids = encode(text)
        new, margin = greedy(model, ids)
        rows.append({"text": text, "ids": ids, "greedy": new, "least_margin": margin})
        print(text.split("\n")[0], "->", new[:8], margin, flush=True)
    return rows


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(2)
    reader = gguf.GGUFReader(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
    model, tok = llama_model(reader), smollm2_tokenizer(reader)
    doc = {"schema": "davit-real-goldens/1",
           "made_with": {"torch": torch.__version__, "transformers": transformers.__version__,
                         "tokenizers": tokenizers.__version__}}
    encode = lambda s: tok.encode(s).ids
    doc["smollm2"] = {"file": "SmolLM2-135M-Instruct.Q4_1.gguf", "prompts": prompts_of(model, encode)}
    for p in model.parameters():  # the parameters are rounded, the arithmetic stays float32
        p.data = p.data.bfloat16().float()
    doc["smollm2_bf16"] = {"prompts": prompts_of(model, encode)}

    path = folder / "gemma-3-270m-q4_k_m.gguf"
    model = gemma_model(gguf.GGUFReader(path))
    hf = transformers.AutoTokenizer.from_pretrained(str(folder), gguf_file=path.name)
    doc["gemma3"] = {"file": path.name, "prompts": prompts_of(model, lambda s: hf(s)["input_ids"])}
    out = pathlib.Path(__file__).with_name("goldens.json")
    out.write_text(json.dumps(doc, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
