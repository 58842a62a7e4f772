#!/usr/bin/env python3
"""How long the header checks of `davit doctor` take on a checkpoint of many shards.

    tests/bench/doctor_shards.py build/release/bin/davit [SHARDS] [ROUNDS]

Writes a Llama checkpoint of SHARDS (200) files, one layer each, with a full index, into a
temporary directory (weights are holes: no payload is read), then runs doctor and a command
that only lists the plugins in turn. Prints medians of ROUNDS (9) warm runs of the whole
process: wall time, and CPU time, which a busy machine leaves alone.
"""
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HIDDEN, INNER, HEADS, KV, VOCAB = 1024, 2816, 16, 4, 32000


def tensors(layer):
    p = f"model.layers.{layer}."
    kv = HIDDEN // HEADS * KV
    yield p + "self_attn.q_proj.weight", [HIDDEN, HIDDEN]
    yield p + "self_attn.k_proj.weight", [kv, HIDDEN]
    yield p + "self_attn.v_proj.weight", [kv, HIDDEN]
    yield p + "self_attn.o_proj.weight", [HIDDEN, HIDDEN]
    yield p + "mlp.gate_proj.weight", [INNER, HIDDEN]
    yield p + "mlp.up_proj.weight", [INNER, HIDDEN]
    yield p + "mlp.down_proj.weight", [HIDDEN, INNER]
    yield p + "input_layernorm.weight", [HIDDEN]
    yield p + "post_attention_layernorm.weight", [HIDDEN]


def write_shard(path, rows):
    head, at = {}, 0
    for name, shape in rows:
        n = 2
        for d in shape:
            n *= d
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return at


def write_model(root, n):
    names, total = {}, 0
    for i in range(n):
        file = f"model-{i + 1:05d}-of-{n:05d}.safetensors"
        rows = list(tensors(i))
        if i == 0:
            rows += [("model.embed_tokens.weight", [VOCAB, HIDDEN]), ("model.norm.weight", [HIDDEN]),
                     ("lm_head.weight", [VOCAB, HIDDEN])]
        total += write_shard(os.path.join(root, file), rows)
        names.update({name: file for name, _ in rows})
    json.dump({"metadata": {"total_size": total}, "weight_map": names},
              open(os.path.join(root, "model.safetensors.index.json"), "w"))
    json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
               "intermediate_size": INNER, "num_hidden_layers": n, "num_attention_heads": HEADS,
               "num_key_value_heads": KV, "vocab_size": VOCAB, "max_position_embeddings": 8192,
               "rope_theta": 500000.0, "eos_token_id": 2, "tie_word_embeddings": False},
              open(os.path.join(root, "config.json"), "w"))
    return len(names), total


def cpu():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def run(command):
    start, before = time.perf_counter(), cpu()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return (time.perf_counter() - start) * 1e3, (cpu() - before) * 1e3, done


def main():
    davit = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    with tempfile.TemporaryDirectory() as root:
        n_tensors, total = write_model(root, n)
        _, _, done = run([davit, "doctor", root])
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        doctor, start = [], []
        for _ in range(rounds):
            start.append(run([davit, "plugin", "list"])[:2])
            doctor.append(run([davit, "doctor", root])[:2])
        print(f"{n} shards, {n_tensors} tensors, {total / 1e9:.1f} GB, medians of {rounds}")
        for name, rows in (("doctor", doctor), ("plugin list", start)):
            wall, busy = (statistics.median(r[k] for r in rows) for k in (0, 1))
            print(f"{name}: {wall:.1f} ms wall (min {min(r[0] for r in rows):.1f}), {busy:.1f} ms of CPU")


if __name__ == "__main__":
    main()
