#!/usr/bin/env python3
"""Parameter counts of transformers' own models, for core/estimate/test_estimate.c.

Writes estimate.json beside this file: a list of {name, model_type, config, parameters,
embedding}. Models are built on the meta device, so nothing is allocated. `parameters`
counts what a checkpoint stores, every tensor once: parameters (a tied head is the
embedding) and persistent buffers, such as the routing bias of some mixtures. Configs of
public checkpoints are typed from their config.json on the hub; "defaults" rows are the
class's own, written without the keys that equal them, so that class defaults are tested.

Made with transformers 5.24.0 and torch 2.13.0.
"""
import json
import os

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))

# name, model_type, overrides, full (every key) or diff (only what differs from the class)
ROWS = [
    ("llama-3.2-1b", "llama", dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
     num_attention_heads=32, num_key_value_heads=8, head_dim=64, max_position_embeddings=131072,
     tie_word_embeddings=True), "full"),
    ("llama-3.1-8b", "llama", dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
     num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072), "full"),
    ("llama-3.1-70b", "llama", dict(vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80,
     num_attention_heads=64, num_key_value_heads=8), "diff"),
    ("llama-2-7b defaults", "llama", {}, "diff"),
    ("smollm2-135m", "llama", dict(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
     num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True), "full"),
    ("llama with biases", "llama", dict(vocab_size=1000, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
     num_attention_heads=4, num_key_value_heads=2, attention_bias=True, mlp_bias=True), "full"),
    ("mistral-7b", "mistral", dict(vocab_size=32768), "full"),
    ("mistral defaults", "mistral", {}, "diff"),
    ("mistral-nemo-12b", "mistral", dict(vocab_size=131072, hidden_size=5120, intermediate_size=14336,
     num_hidden_layers=40, num_attention_heads=32, num_key_value_heads=8, head_dim=128), "full"),
    ("qwen2.5-0.5b", "qwen2", dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
     num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True), "full"),
    ("qwen2.5-7b", "qwen2", dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
     num_attention_heads=28, num_key_value_heads=4), "full"),
    ("qwen2.5-72b", "qwen2", dict(vocab_size=152064, hidden_size=8192, intermediate_size=29568, num_hidden_layers=80,
     num_attention_heads=64, num_key_value_heads=8), "diff"),
    ("qwen2 defaults", "qwen2", {}, "diff"),
    ("qwen3-0.6b", "qwen3", dict(vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
     num_attention_heads=16, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True), "full"),
    ("qwen3-8b", "qwen3", dict(vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36,
     num_attention_heads=32, num_key_value_heads=8, head_dim=128), "full"),
    ("qwen3-32b", "qwen3", dict(vocab_size=151936, hidden_size=5120, intermediate_size=25600, num_hidden_layers=64,
     num_attention_heads=64, num_key_value_heads=8, head_dim=128), "diff"),
    ("qwen3 defaults", "qwen3", {}, "diff"),
    ("qwen3-30b-a3b", "qwen3_moe", dict(vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=48,
     num_attention_heads=32, num_key_value_heads=4, head_dim=128, moe_intermediate_size=768, num_experts=128,
     num_experts_per_tok=8, norm_topk_prob=True), "full"),
    ("qwen3-235b-a22b", "qwen3_moe", dict(vocab_size=151936, hidden_size=4096, intermediate_size=12288,
     num_hidden_layers=94, num_attention_heads=64, num_key_value_heads=4, head_dim=128, moe_intermediate_size=1536,
     num_experts=128, num_experts_per_tok=8), "full"),
    ("qwen3_moe, some layers dense", "qwen3_moe", dict(num_hidden_layers=6, mlp_only_layers=[1, 4]), "full"),
    ("qwen3_moe defaults", "qwen3_moe", {}, "diff"),
    ("gemma-3-270m", "gemma3_text", dict(vocab_size=262144, hidden_size=640, intermediate_size=2048, num_hidden_layers=18,
     num_attention_heads=4, num_key_value_heads=1, head_dim=256, query_pre_attn_scalar=256, sliding_window=512), "full"),
    ("gemma-3-1b", "gemma3_text", dict(vocab_size=262144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=26,
     num_attention_heads=4, num_key_value_heads=1, head_dim=256, sliding_window=512), "full"),
    ("gemma-3-12b text", "gemma3_text", dict(vocab_size=262208, hidden_size=3840, intermediate_size=15360,
     num_hidden_layers=48, num_attention_heads=16, num_key_value_heads=8, head_dim=256, sliding_window=1024), "full"),
    ("gemma3 defaults", "gemma3_text", {}, "diff"),
    ("smollm3-3b", "smollm3", dict(vocab_size=128256, hidden_size=2048, intermediate_size=11008, num_hidden_layers=36,
     num_attention_heads=16, num_key_value_heads=4, tie_word_embeddings=True), "full"),
    ("smollm3 defaults", "smollm3", {}, "diff"),
    ("gpt-oss-20b", "gpt_oss", dict(num_hidden_layers=24, num_local_experts=32), "full"),
    ("gpt-oss-120b defaults", "gpt_oss", {}, "diff"),
    ("tinyllama-1.1b", "llama", dict(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
     num_attention_heads=32, num_key_value_heads=4), "diff"),
    ("yi-34b", "llama", dict(vocab_size=64000, hidden_size=7168, intermediate_size=20480, num_hidden_layers=60,
     num_attention_heads=56, num_key_value_heads=8), "full"),
    ("smollm2-1.7b", "llama", dict(vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=24,
     num_attention_heads=32, num_key_value_heads=32, tie_word_embeddings=True), "full"),
    ("falcon3-7b", "llama", dict(vocab_size=131072, hidden_size=3072, intermediate_size=23040, num_hidden_layers=28,
     num_attention_heads=12, num_key_value_heads=4, head_dim=256), "full"),
    ("llama-3.1-405b", "llama", dict(vocab_size=128256, hidden_size=16384, intermediate_size=53248,
     num_hidden_layers=126, num_attention_heads=128, num_key_value_heads=8), "full"),
    ("mistral-small-24b", "mistral", dict(vocab_size=131072, hidden_size=5120, intermediate_size=32768,
     num_hidden_layers=40, num_attention_heads=32, num_key_value_heads=8, head_dim=128), "full"),
    ("qwen2.5-1.5b", "qwen2", dict(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28,
     num_attention_heads=12, num_key_value_heads=2, tie_word_embeddings=True), "full"),
    ("qwen2.5-14b", "qwen2", dict(vocab_size=152064, hidden_size=5120, intermediate_size=13824, num_hidden_layers=48,
     num_attention_heads=40, num_key_value_heads=8), "full"),
    ("qwen3-1.7b", "qwen3", dict(vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28,
     num_attention_heads=16, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True), "diff"),
    ("qwen3-14b", "qwen3", dict(vocab_size=151936, hidden_size=5120, intermediate_size=17408, num_hidden_layers=40,
     num_attention_heads=40, num_key_value_heads=8, head_dim=128), "full"),
    ("gemma-3-4b text", "gemma3_text", dict(vocab_size=262208, hidden_size=2560, intermediate_size=10240,
     num_hidden_layers=34, num_attention_heads=8, num_key_value_heads=4, head_dim=256, sliding_window=1024), "full"),
    ("gemma-3-27b text", "gemma3_text", dict(vocab_size=262208, hidden_size=5376, intermediate_size=21504,
     num_hidden_layers=62, num_attention_heads=32, num_key_value_heads=16, head_dim=128, query_pre_attn_scalar=168,
     sliding_window=1024), "full"),
    # architectures that a later tree declares; the test passes over what nobody takes
    ("mixtral defaults", "mixtral", {}, "diff"),
    ("mixtral small", "mixtral", dict(hidden_size=512, intermediate_size=1024, num_hidden_layers=4), "full"),
    ("phi3 defaults", "phi3", {}, "diff"),
    ("phi-4", "phi3", dict(vocab_size=100352, hidden_size=5120, intermediate_size=17920, num_hidden_layers=40,
     num_attention_heads=40, num_key_value_heads=10, pad_token_id=0), "full"),
    ("gemma defaults", "gemma", {}, "diff"),
    ("gemma2 defaults", "gemma2", {}, "diff"),
    ("gemma-2-9b", "gemma2", dict(hidden_size=3584, intermediate_size=14336, num_hidden_layers=42, num_attention_heads=16,
     num_key_value_heads=8), "full"),
    ("olmo2 defaults", "olmo2", {}, "diff"),
    ("olmo2-7b", "olmo2", dict(vocab_size=100352), "full"),
    ("olmo3 defaults", "olmo3", {}, "diff"),
    ("granite defaults", "granite", {}, "diff"),
    ("granite-3-2b", "granite", dict(vocab_size=49155, hidden_size=2048, intermediate_size=8192, num_hidden_layers=40,
     num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True), "full"),
    ("granitemoe defaults", "granitemoe", {}, "diff"),
    ("glm defaults", "glm", {}, "diff"),
    ("glm4 defaults", "glm4", {}, "diff"),
    ("glm4_moe defaults", "glm4_moe", {}, "diff"),
    ("cohere defaults", "cohere", {}, "diff"),
    ("cohere2 defaults", "cohere2", {}, "diff"),
    ("stablelm defaults", "stablelm", {}, "diff"),
    ("starcoder2 defaults", "starcoder2", {}, "diff"),
    ("gpt2 defaults", "gpt2", {}, "diff"),
    ("gpt_neox defaults", "gpt_neox", {}, "diff"),
    ("opt defaults", "opt", {}, "diff"),
    ("falcon defaults", "falcon", {}, "diff"),
    ("ernie4_5 defaults", "ernie4_5", {}, "diff"),
    ("seed_oss defaults", "seed_oss", {}, "diff"),
    ("exaone4 defaults", "exaone4", {}, "diff"),
    ("lfm2 defaults", "lfm2", {}, "diff"),
    ("lfm2_moe defaults", "lfm2_moe", {}, "diff"),
    ("deepseek_v2 defaults", "deepseek_v2", {}, "diff"),
    ("deepseek_v3 defaults", "deepseek_v3", {}, "diff"),
    ("minimax_m2 defaults", "minimax_m2", {}, "diff"),
    ("qwen2_moe defaults", "qwen2_moe", {}, "diff"),
    ("qwen3_next defaults", "qwen3_next", {}, "diff"),
    ("qwen3_5 defaults", "qwen3_5_text", {}, "diff"),
    ("ministral3 defaults", "ministral3", {}, "diff"),
    ("mamba defaults", "mamba", {}, "diff"),
    ("mamba2 defaults", "mamba2", {}, "diff"),
    ("falcon_h1 defaults", "falcon_h1", {}, "diff"),
    ("nemotron_h defaults", "nemotron_h", {}, "diff"),
    ("granitemoehybrid defaults", "granitemoehybrid", {}, "diff"),
    ("gemma4 defaults", "gemma4_text", {}, "diff"),
    ("internlm3 as llama", "llama", dict(vocab_size=128512, hidden_size=4096, intermediate_size=10240,
     num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=2, head_dim=128), "full"),
    ("apertus defaults", "apertus", {}, "diff"),
    ("olmoe defaults", "olmoe", {}, "diff"),
    ("phi defaults", "phi", {}, "diff"),
    ("llama4 text defaults", "llama4_text", {}, "diff"),
    ("hunyuan dense defaults", "hunyuan_v1_dense", {}, "diff"),
    ("hunyuan moe defaults", "hunyuan_v1_moe", {}, "diff"),
    ("ernie4_5_moe defaults", "ernie4_5_moe", {}, "diff"),
    ("glm4_moe_lite defaults", "glm4_moe_lite", {}, "diff"),
    ("bloom defaults", "bloom", {}, "diff"),
]


def count(config):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    seen, total = set(), 0
    for p in model.state_dict(keep_vars=True).values():
        if id(p) not in seen:
            seen.add(id(p))
            total += p.numel()
    return total, model.get_input_embeddings().weight.numel(), type(model).__name__


def main():
    out = []
    for name, model_type, overrides, form in ROWS:
        try:
            config = AutoConfig.for_model(model_type, **overrides)
            total, embedding, cls = count(config)
        except Exception as error:  # a family that this transformers lacks
            print(f"{name}: passed over: {type(error).__name__}: {str(error)[:100]}")
            continue
        config.architectures = [cls]
        text = config.to_json_string(use_diff=form == "diff")
        doc = json.loads(text)
        doc["model_type"] = config.model_type
        out.append(dict(name=name, model_type=config.model_type, config=doc, parameters=total, embedding=embedding))
        print(f"{name}: {total}")
    with open(os.path.join(HERE, "estimate.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in out) + "\n]\n")
    print(len(out), "rows, transformers", transformers.__version__, "torch", torch.__version__)


if __name__ == "__main__":
    main()
