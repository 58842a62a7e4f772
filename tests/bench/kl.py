#!/usr/bin/env python3
"""How far int8 activations move a model's next-token distribution.

    python3 kl.py --davit build/release/bin/davit MODEL [--text kl_text.txt] [--flags "--kv-dtype fp8"]

Computes the logits of every position of one text (teacher-forced: the text's own tokens are the
context) with float32 and with int8 activations, or the flags given, through `davit eval --logits`, and
prints

    KL(P_f32 || P_int8), mean over positions in nats, with its median, 99th percentile and largest,
    how often both modes have the same most likely token, and the text's perplexity in both.

DESIGN's bound is a mean below 1e-3. Exits 1 when it is passed. Needs numpy.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def log_softmax(logits):
    x = logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def davit_json(command):
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("--davit", required=True)
    parser.add_argument("--text", type=Path, default=Path(__file__).with_name("kl_text.txt"))
    parser.add_argument("--flags", default="--activations int8", help="of the run that is compared")
    parser.add_argument("--bound", type=float, default=1e-3)
    args = parser.parse_args()

    text = args.text.read_text().replace("\n", " ")
    ids = davit_json([args.davit, "tokenize", args.model, text])["inputs"][0]["ids"]
    logs = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode, flags in (("f32", "--activations f32"), ("int8", args.flags)):
            out = Path(folder) / f"{mode}.npy"
            subprocess.run([args.davit, "eval", args.model, "--ids", " ".join(map(str, ids)),
                            *flags.split(), "--logits", str(out)],
                           stdout=subprocess.DEVNULL, check=True)
            logs[mode] = log_softmax(np.load(out))

    f32, int8 = logs["f32"], logs["int8"]
    kl = (np.exp(f32) * (f32 - int8)).sum(axis=1)
    same = (f32.argmax(axis=1) == int8.argmax(axis=1)).mean()
    following = np.array(ids[1:])
    rows = np.arange(len(following))
    ppl = {mode: float(np.exp(-logs[mode][rows, following].mean())) for mode in logs}
    print(f"{Path(args.model).name}: {len(ids)} tokens, {f32.shape[1]} logits each")
    print(f"KL(f32 || int8): mean {kl.mean():.2e}, median {np.median(kl):.2e}, "
          f"99 % {np.quantile(kl, 0.99):.2e}, max {kl.max():.2e} nats")
    print(f"same most likely token: {100 * same:.1f} %; perplexity f32 {ppl['f32']:.4f}, "
          f"int8 {ppl['int8']:.4f}")
    return 0 if kl.mean() < args.bound else 1


if __name__ == "__main__":
    sys.exit(main())
