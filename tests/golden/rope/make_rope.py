#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inverse frequencies and attention factors as transformers computes them -> rope.json.

Each case is a config.json in the spelling of the hub, the layer type asked for, and what the
rotary module of the model class holds. Read by core/config/test_rope.c. Made with transformers
5.24.0 and torch 2.13.0 (CPU)."""
import json
import os

import torch
import transformers
from transformers import Gemma3TextConfig, LlamaConfig, StableLmConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.stablelm.modeling_stablelm import StableLmRotaryEmbedding
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

torch.set_num_threads(1)
SIZES = {"hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 6,
         "intermediate_size": 64, "vocab_size": 64}


def llama(head_dim, max_pos, **rope):
    return {**SIZES, "model_type": "llama", "head_dim": head_dim, "max_position_embeddings": max_pos, **rope}


FACTORS = {"short_factor": [round(1 + 0.01 * j, 4) for j in range(48)], "long_factor": [round(1 + 0.7 * j, 4) for j in range(48)]}
CASES = {
    "default": llama(64, 2048),
    "theta": llama(128, 8192, rope_theta=500000.0),
    "linear_v4": llama(64, 4096, rope_scaling={"type": "linear", "factor": 4.0}),
    "dynamic_v4": llama(64, 4096, rope_scaling={"type": "dynamic", "factor": 2.0}),
    "llama31": llama(128, 131072, rope_theta=500000.0, rope_scaling={
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}),
    "llama32_v5": llama(64, 131072, rope_parameters={
        "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3", "rope_theta": 500000.0}),
    "yarn_qwen": llama(128, 40960, rope_theta=1e6, rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    "yarn_gpt_oss": llama(64, 131072, rope_theta=150000, rope_scaling={
        "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": False}),
    "yarn_deepseek": llama(64, 163840, rope_theta=10000, rope_scaling={
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
        "mscale_all_dim": 1.0}),
    "yarn_mscale": llama(64, 8192, rope_scaling={
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 1024, "mscale": 1.0, "mscale_all_dim": 0.5}),
    "yarn_attention_factor": llama(64, 8192, rope_scaling={
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 1024, "attention_factor": 0.75}),
    "yarn_factor_null": llama(64, 8192, rope_scaling={
        "rope_type": "yarn", "factor": None, "original_max_position_embeddings": 1024}),
    "yarn_no_band": llama(64, 64, rope_scaling={"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4}),
    "longrope": llama(96, 131072, rope_scaling={"type": "longrope", "original_max_position_embeddings": 4096, **FACTORS}),
    "longrope_top_level": llama(96, 131072, original_max_position_embeddings=4096, rope_scaling={
        "rope_type": "longrope", "original_max_position_embeddings": 64, **FACTORS}),
    "longrope_factor": llama(96, 8192, rope_scaling={
        "rope_type": "longrope", "original_max_position_embeddings": 2048, "factor": 32.0, **FACTORS}),
    "proportional": llama(256, 131072, rope_parameters={
        "rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}),
    "partial_v4": {**SIZES, "model_type": "stablelm", "max_position_embeddings": 4096, "partial_rotary_factor": 0.25,
                   "rope_theta": 10000},
    "gemma3_v4": {**SIZES, "model_type": "gemma3_text", "head_dim": 256, "max_position_embeddings": 131072, "rope_theta": 1e6,
                  "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "gemma3_v5": {**SIZES, "model_type": "gemma3_text", "head_dim": 256, "max_position_embeddings": 131072, "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}},
    "gemma3_absent": {**SIZES, "model_type": "gemma3_text", "head_dim": 256, "max_position_embeddings": 32768},
}
CLASSES = {"llama": (LlamaConfig, LlamaRotaryEmbedding), "gemma3_text": (Gemma3TextConfig, Gemma3RotaryEmbedding),
           "stablelm": (StableLmConfig, StableLmRotaryEmbedding)}


def exact(x):
    """Shortest text that reads back as the same float32."""
    return [float(str(v)) for v in x.to(torch.float32).numpy()]


def main():
    out = []
    for name, config in CASES.items():
        config_class, rotary_class = CLASSES[config["model_type"]]
        parsed = config_class(**{k: v for k, v in json.loads(json.dumps(config)).items() if k != "model_type"})
        rotary = rotary_class(parsed)
        for layer_type in (["full_attention", "sliding_attention"] if config["model_type"] == "gemma3_text" else [""]):
            prefix = layer_type + "_" if layer_type else ""
            case = {"name": name, "config": config, "layer_type": layer_type,
                    "inv_freq": exact(getattr(rotary, prefix + "inv_freq")),
                    "attention": float(getattr(rotary, prefix + "attention_scaling"))}
            if name.startswith("longrope"):
                long, _ = ROPE_INIT_FUNCTIONS["longrope"](parsed, "cpu", seq_len=10 ** 9)
                case["inv_freq_long"] = exact(long)
            out.append(case)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "rope.json"), "w") as f:
        f.write('{"transformers": "%s", "torch": "%s", "cases": [\n' % (transformers.__version__, torch.__version__))
        f.write(",\n".join(json.dumps(c) for c in out) + "\n]}\n")


main()
