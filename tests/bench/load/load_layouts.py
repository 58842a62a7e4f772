#!/usr/bin/env python3
"""Load time of every quantised layout against a plain read of the same bytes, cold, in one run.

    python3 load_layouts.py --davit build/release/bin/davit --dir SCRATCH [--only fp8 awq Q4_K]
        [--layers 22] [--rounds 5] [--json OUT]

Writes one random Llama after another (../layouts.py: 1.1 B weights with 22 layers), measures it and
deletes it: SCRATCH needs 1.2 GB. A round is, in an order drawn anew, a plain read of the file
(8 MiB at a time into one buffer) and `davit run` to one token; before each the file is dropped from
the page cache, and mincore must then find less than 1 % of it there (compare_load.py). Per layout,
medians:

  plain    seconds of the plain read
  load     seconds that davit's report says loading took: what is packed or copied is in memory then,
           what is borrowed is mapped only
  token    seconds from exec to the end of the process after one token, for which every borrowed
           page of the matrices was read too
  ratios   each over the plain read, medians of the rounds' own ratios; goal: load at most 1.5

Run it on a quiet machine. Needs numpy and gguf (PyPI), as ../layouts.py.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import compare_load as cl  # noqa: E402
import layouts  # noqa: E402

IDS = "1 300 307"


def one_plain(paths):
    cl.drop(paths)
    start = time.perf_counter()
    cl.read_all(paths)
    return time.perf_counter() - start


def one_davit(args, model, paths):
    cl.drop(paths)
    wall, peak, out = cl.measure([args.davit, "run", str(model), "--ids", IDS, "-n", "1", "--json", "-q"])
    load = json.loads(out)["load"]
    return {"load": load["seconds"], "token": wall, "anon_mib": peak / 1024,
            "bound_by": load["bound_by"], "private": load["private_bytes"]}


def measure(args, rng, model, paths):
    """Seconds of plain reads, and what davit's runs say, a round after the other."""
    plain, ours = [], []
    for _ in range(args.rounds):
        turns = [lambda: plain.append(one_plain(paths)),
                 lambda: ours.append(one_davit(args, model, paths))]
        rng.shuffle(turns)
        for turn in turns:
            turn()
    return plain, ours


def report(name, n_bytes, plain, ours):
    def ratio(key):
        return statistics.median(o[key] / p for o, p in zip(ours, plain))

    def middle(key):
        return statistics.median(o[key] for o in ours)
    bounds = [o["bound_by"] for o in ours]
    print(f"| {name} | {n_bytes / 1e6:.0f} | {ours[0]['private'] / 1e6:.0f} | "
          f"{statistics.median(plain):.3f} ({min(plain):.3f}..{max(plain):.3f}) | "
          f"{middle('load'):.3f} | {middle('token'):.3f} | {ratio('load'):.2f} | {ratio('token'):.2f} | "
          f"{max(set(bounds), key=bounds.count)} |", flush=True)


def write(args, name):
    """Returns: what davit is given, and its files."""
    path = args.dir / name
    if name in layouts.LAYOUTS:
        layouts.write_folder(path, name, args.layers)
        return path, [path / "model.safetensors"]
    path = path.with_suffix(".gguf")
    layouts.write_gguf(path, name, args.layers)
    return path, [path]


def main():
    every = [*layouts.LAYOUTS, "Q4_K", "Q8_0", *layouts.GGUF]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--davit", required=True)
    parser.add_argument("--dir", required=True, type=Path, help="scratch folder; files are deleted")
    parser.add_argument("--only", nargs="+", choices=every)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    rng, samples = random.Random(1), {}

    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, {args.layers} layers, "
          f"{args.rounds} rounds\n")
    print("| layout | file MB | private MB | plain, s (least..most) | load, s | to a token, s | load / plain | "
          "token / plain | bound by |\n|---|---|---|---|---|---|---|---|---|")
    for name in args.only or every:
        model, paths = write(args, name)
        plain, ours = measure(args, rng, model, paths)
        report(name, sum(p.stat().st_size for p in paths), plain, ours)
        samples[name] = {"plain": plain, "davit": ours}
        shutil.rmtree(model) if model.is_dir() else model.unlink()
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    if args.json:
        args.json.write_text(json.dumps(samples, indent=1) + "\n")


if __name__ == "__main__":
    main()
