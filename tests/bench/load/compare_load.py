#!/usr/bin/env python3
"""Compare loading in one run: a plain read, davit, safetensors, transformers, llama.cpp.

    python3 compare_load.py --davit BUILD/bin/davit --dir SHARDED_DIR [--gguf FILE.gguf]
        [--llama-simple BIN] [--llama-completion BIN] [--rounds 7] [--state cold --state warm]
        [--only NAME]... [--json OUT]

The inputs come from make_sharded_llama.py and ../make_random_llama.py. All commands of one state
take turns, in an order shuffled anew in every round. Before a cold run every file is written back
and dropped from the page cache with posix_fadvise, and mincore must then find less than 1 % of it
there (a host below a virtual machine may still hold the bytes: compare with the plain read, which
meets the same disk). Before a warm run every file is read once.

Measured, per command:
  seconds  davit and llama.cpp: wall time of the whole process up to its end after one token.
           The Python peers time themselves, imports excluded, and end at `touched` (every page
           of every tensor was looked at) or at one token, as their name says
  load     davit alone: seconds from start to ready, as its report tells; borrowed pages are then
           not touched yet
  anon     peak RssAnon in MiB, polled every 2 ms

The plain read reads the same files in order, 8 MiB at a time, into one buffer. Every other
command's seconds are also given as a ratio to it (R). safetensors and transformers need torch,
from PyPI, in the Python that runs this; a peer that cannot be imported is reported as skipped.
"""
import argparse
import ctypes
import importlib.util
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = mmap.PAGESIZE
IDS = "1 450 7483"
CHUNK = 8 << 20


# ---- the page cache ----

def resident(path):
    """Part of a file that lies in the page cache, 0 to 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    size = os.path.getsize(path)
    if not size:
        return 0.0
    fd = os.open(path, os.O_RDONLY)
    try:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        pages = -(-size // PAGE)
        seen = (ctypes.c_ubyte * pages)()
        failed = libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), seen)
        libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(b & 1 for b in bytes(seen)) / pages
    finally:
        os.close(fd)


def drop(paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    for path in paths:
        left = resident(path)
        if left > 0.01:
            sys.exit(f"{path}: {left:.0%} stays in the page cache; another process may have it open")


def read_all(paths):
    buffer = bytearray(CHUNK)
    for path in paths:
        with open(path, "rb", buffering=0) as f:
            while f.readinto(buffer):
                pass


# ---- peers in Python: each in a process of its own ----

def touch(tensor):
    """Look at one byte of every page of a torch tensor."""
    import torch
    return int(tensor.reshape(-1).view(torch.uint8)[::PAGE].sum())


def peer_plain(paths, directory):
    read_all(paths)


def peer_safetensors_touched(paths, directory):
    from safetensors.torch import load_file
    start = time.perf_counter()
    for path in paths:
        for tensor in load_file(path).values():
            touch(tensor)
    return time.perf_counter() - start


def peer_safetensors_copied(paths, directory):
    from safetensors import safe_open
    import torch  # noqa: F401 (imports are not timed)
    start = time.perf_counter()
    held = []
    for path in paths:
        with safe_open(path, framework="pt") as f:
            held += [f.get_tensor(name).clone() for name in f.keys()]
    return time.perf_counter() - start


def transformers_token(directory, dtype):
    import torch
    from transformers import AutoModelForCausalLM
    start = time.perf_counter()
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype)
    loaded = time.perf_counter() - start
    with torch.no_grad():
        model(torch.tensor([[int(i) for i in IDS.split()]]))
    return time.perf_counter() - start, loaded


def peer_transformers_bf16(paths, directory):
    return transformers_token(directory, "bfloat16")


def peer_transformers_f32(paths, directory):
    return transformers_token(directory, "float32")


PEERS = {name[5:]: value for name, value in list(globals().items()) if name.startswith("peer_")}


def run_peer(name, directory):
    """In the child: one peer, its seconds as JSON on stdout."""
    paths = shards(directory) if directory.is_dir() else [directory]
    start = time.perf_counter()
    out = PEERS[name](paths, directory)
    seconds = time.perf_counter() - start if out is None else out
    if not isinstance(seconds, tuple):
        seconds = (seconds, None)
    json.dump({"seconds": seconds[0], "load": seconds[1]}, sys.stdout)


# ---- running and measuring ----

def shards(directory):
    return sorted(directory.glob("*.safetensors"))


def anon_kib(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def measure(argv):
    """One process: wall seconds, peak anonymous KiB, stdout."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        peak = 0
        while child.poll() is None:
            peak = max(peak, anon_kib(child.pid))
            time.sleep(0.002)
        wall = time.perf_counter() - start
        if child.returncode:
            err.seek(0)
            sys.exit(f"{' '.join(map(str, argv))}: exit {child.returncode}\n"
                     + err.read().decode(errors="replace")[-2000:])
        out.seek(0)
        return wall, peak, out.read()


def davit_figures(text):
    doc = json.loads(text)
    return doc["timings"]["start_s"], doc["load"]["bound_by"]


def commands(args):
    """name -> (argv, files it reads, kind)"""
    me = [sys.executable, os.path.abspath(__file__)]
    found = {}

    def peer(label, name, target, files):
        found[label] = (me + ["--peer", name, "--dir", str(target)], files, "peer")

    def davit(label, target, files, *flags):
        found[label] = ([args.davit, "run", str(target), "--ids", IDS, "-n", "1", "--json", "-q", *flags], files, "davit")

    if args.dir:
        files = shards(args.dir)
        peer("dir: plain read", "plain", args.dir, files)
        davit("dir: davit, borrow, one token", args.dir, files)
        davit("dir: davit, stream, one token", args.dir, files, "--access", "stream")
        davit("dir: davit, f32, one token", args.dir, files, "--dtype", "f32")
        if importlib.util.find_spec("safetensors") and importlib.util.find_spec("torch"):
            peer("dir: safetensors, touched", "safetensors_touched", args.dir, files)
            peer("dir: safetensors, copied", "safetensors_copied", args.dir, files)
        else:
            print("skipped: safetensors with torch cannot be imported")
        if importlib.util.find_spec("transformers"):
            peer("dir: transformers bf16, one token", "transformers_bf16", args.dir, files)
            peer("dir: transformers f32, one token", "transformers_f32", args.dir, files)
        else:
            print("skipped: transformers cannot be imported")
    if args.gguf:
        files = [args.gguf]
        peer("gguf: plain read", "plain", args.gguf, files)
        davit("gguf: davit, one token", args.gguf, files)
        davit("gguf: davit, stream, one token", args.gguf, files, "--access", "stream")
        if args.llama_simple:
            found["gguf: llama.cpp mmap, one token"] = ([args.llama_simple, "-m", str(args.gguf), "-n", "1", "a"], files, "wall")
        if args.llama_completion:
            for mode in ("none", "dio"):
                found[f"gguf: llama.cpp {mode}, one token"] = (
                    [args.llama_completion, "-m", str(args.gguf), "-n", "1", "-p", "a", "-no-cnv", "--no-warmup",
                     "--load-mode", mode], files, "wall")
    return {k: v for k, v in found.items() if not args.only or any(o in k for o in args.only) or "plain" in k}


def one(argv, files, kind, state):
    if state == "cold":
        drop(files)
    else:
        read_all(files)
    wall, peak, out = measure(argv)
    row = {"seconds": wall, "anon_mib": peak / 1024}
    if kind == "peer":
        row.update(json.loads(out))
    elif kind == "davit":
        row["load"], row["bound_by"] = davit_figures(out)
    return row


def report(state, rows):
    print(f"\n{state}: medians of {len(next(iter(rows.values())))}, least and most seconds\n")
    print(f"| {'what':<36} | seconds | least..most | R | load | anon MiB |")
    print("|---|---|---|---|---|---|")
    plain = {}
    for name, runs in rows.items():
        if "plain" in name:
            plain[name.split(":")[0]] = statistics.median(r["seconds"] for r in runs)
    for name, runs in rows.items():
        seconds = [r["seconds"] for r in runs]
        middle = statistics.median(seconds)
        loads = [r["load"] for r in runs if r.get("load") is not None]
        load = f"{statistics.median(loads):.3f}" if loads else "-"
        ratio = middle / plain[name.split(":")[0]]
        print(f"| {name:<36} | {middle:.3f} | {min(seconds):.3f}..{max(seconds):.3f} | {ratio:.2f} | {load} | "
              f"{statistics.median(r['anon_mib'] for r in runs):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--davit")
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--llama-simple")
    parser.add_argument("--llama-completion")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--state", action="append", choices=("cold", "warm"))
    parser.add_argument("--only", action="append", help="commands whose name holds this text, and the plain reads")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", choices=sorted(PEERS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        run_peer(args.peer, args.dir)
        return
    if not args.davit or not (args.dir or args.gguf):
        parser.error("--davit and one of --dir and --gguf are needed")
    if os.getloadavg()[0] > 0.5:
        print(f"warning: load average {os.getloadavg()[0]:.1f}: other work disturbs these figures")
    every, rng = {}, random.Random(1)
    for state in args.state or ("cold", "warm"):
        todo = commands(args)
        rows = {name: [] for name in todo}
        for i in range(args.rounds):
            order = list(todo)
            rng.shuffle(order)
            for name in order:
                print(f"\r{state} {i + 1}/{args.rounds} {name:<40}", end="", file=sys.stderr, flush=True)
                rows[name].append(one(*todo[name], state))
        print(f"\r{'':<60}\r", end="", file=sys.stderr)
        every[state] = rows
        report(state, rows)
    if args.json:
        args.json.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
