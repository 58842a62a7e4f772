#!/usr/bin/env python3
"""How long opening and planning take on a checkpoint of 20,000 tensors.

    tests/bench/plan_many.py build/release/bin/davit [TENSORS] [ROUNDS]
    tests/bench/plan_many.py --keep DIR [TENSORS]      only writes the checkpoint (for bench_plan)

Writes a mixture-of-experts checkpoint (one file, an expert a tensor, weights are holes) into a
temporary directory and prints the least of ROUNDS (20) warm runs: the load report's own phases of
`run`, and whole processes of plan, plan --json and inspect beside a command that only starts.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

EXPERTS, HIDDEN, INNER, VOCAB = 128, 64, 16, 256


def tensors(layers):
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCAB, HIDDEN]
    for i in range(layers):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", [HIDDEN]
        yield p + "post_attention_layernorm.weight", [HIDDEN]
        yield p + "self_attn.q_proj.weight", [64, HIDDEN]
        yield p + "self_attn.k_proj.weight", [32, HIDDEN]
        yield p + "self_attn.v_proj.weight", [32, HIDDEN]
        yield p + "self_attn.o_proj.weight", [HIDDEN, 64]
        yield p + "self_attn.q_norm.weight", [16]
        yield p + "self_attn.k_norm.weight", [16]
        yield p + "mlp.gate.weight", [EXPERTS, HIDDEN]
        for e in range(EXPERTS):
            q = f"{p}mlp.experts.{e}."
            yield q + "gate_proj.weight", [INNER, HIDDEN]
            yield q + "up_proj.weight", [INNER, HIDDEN]
            yield q + "down_proj.weight", [HIDDEN, INNER]


def write_model(root, n):
    layers = max(n // (3 * EXPERTS + 9), 1)
    head, at = {}, 0
    for name, shape in tensors(layers):
        size = 2
        for d in shape:
            size *= d
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(root, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    json.dump({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
               "hidden_size": HIDDEN, "intermediate_size": 64, "moe_intermediate_size": INNER,
               "num_experts": EXPERTS, "num_experts_per_tok": 2, "num_hidden_layers": layers,
               "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
               "vocab_size": VOCAB, "tie_word_embeddings": False, "rms_norm_eps": 1e-6,
               "max_position_embeddings": 256, "rope_theta": 10000.0, "hidden_act": "silu",
               "decoder_sparse_step": 1, "norm_topk_prob": True, "mlp_only_layers": [],
               "attention_bias": False, "use_sliding_window": False},
              open(os.path.join(root, "config.json"), "w"))
    return len(head), len(text)


def least(rounds, command):
    best, out = None, b""
    for _ in range(rounds):
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        took = (time.perf_counter() - start) * 1e3
        if done.returncode:
            sys.exit(done.stdout.decode() + done.stderr.decode())
        best = took if best is None else min(best, took)
        out = done.stdout
    return best, out


def phases(davit, root, rounds):
    """Least open_s and plan_s of the load report."""
    best = {"open_s": None, "plan_s": None}
    for _ in range(rounds):
        done = subprocess.run([davit, "run", root, "--ids", "1 2", "--max-tokens", "1", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(done.stdout.decode() + done.stderr.decode())
        said = json.loads(done.stdout)["load"]["phases"]
        best = {k: said[k] if v is None else min(v, said[k]) for k, v in best.items()}
    return best


def main():
    if sys.argv[1] == "--keep":
        os.makedirs(sys.argv[2], exist_ok=True)
        write_model(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 20000)
        return
    davit = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as root:
        n_tensors, n_header = write_model(root, n)
        print(f"{n_tensors} tensors, header of {n_header} bytes, least of {rounds}")
        said = phases(davit, root, rounds)
        print(f"open {said['open_s'] * 1e3:.1f} ms (with settings), plan {said['plan_s'] * 1e3:.1f} ms")
        for name, words in (("version", ["version"]), ("plugin list", ["plugin", "list"]),
                            ("inspect", ["inspect", root]), ("inspect --json", ["inspect", root, "--json"]),
                            ("plan", ["plan", root]), ("plan --json", ["plan", root, "--json"])):
            took, out = least(rounds, [davit] + words)
            print(f"{name}: {took:.1f} ms, {len(out)} bytes")


if __name__ == "__main__":
    main()
