#!/usr/bin/env python3
"""Compare davit with llama.cpp on GGUF files: speed, start and memory, in one run.

    python3 compare_llama.py --davit build/release/bin/davit \\
        --llama-bench LLAMA/bin/llama-bench --llama-first LLAMA/bin/llama-simple \\
        [--json out.json] MODEL.gguf...

The two programs take turns, so that a machine whose speed drifts is unfair to none. Both get
the same number of threads and files in the page cache. Per model:

  prefill   512 prompt tokens, tokens/s. davit: the second of two requests in one process;
            llama.cpp: `llama-bench -p 512 -n 0`, which warms up likewise
  decode    64 tokens after a prompt of one, tokens/s. davit: greedy, text included;
            `llama-bench -p 0 -n 64`: no sampling, no text
  first     wall time from starting the process to the first byte of generated text on its
            stdout (a pipe), prompt of 6 tokens. davit: `run --stream --json`, whose first line
            is written when the first text is; llama.cpp: `llama-simple` (flushes its first
            bytes after the first token) or `llama-completion` (run without showing the
            prompt and without its warm-up); several may be given
  load      that wall time less the prompt's own, which both programs report: everything
            from exec to the first forward
  memory    peak RssAnon of a process that computes 512 + 64 tokens, polled every 2 ms in
            runs of their own. `beyond` is davit's peak less packed weights, keys and values
            and one window

Standard library only. Run it on a quiet machine: it warns when the load average says otherwise.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPTS = ("The capital of France is", "The capital city of France is", "the cat sat on me",
           "Once upon a time there was", "Once upon a time, there")
FIRST_TOKENS, PREFILL, DECODE = 6, 512, 64
MIB = 1 << 20


# ---- a GGUF's metadata, as far as the size of keys and values needs it ----

def read_metadata(path):
    """All scalar keys of a GGUF file (arrays as their length)."""
    sizes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
             12: "d"}
    with open(path, "rb") as f:
        def take(code):
            return struct.unpack("<" + code, f.read(struct.calcsize("<" + code)))[0]

        def text():
            return f.read(take("Q")).decode("utf-8", "replace")

        def value(kind):
            if kind == 8:
                return text()
            if kind != 9:
                return take(sizes[kind])
            item, n = take("I"), take("Q")
            if item in sizes:
                f.seek(n * struct.calcsize("<" + sizes[item]), 1)
            else:
                for _ in range(n):
                    value(item)
            return n

        if f.read(4) != b"GGUF":
            raise SystemExit(f"{path}: not a GGUF file")
        take("I")
        take("Q")
        out = {}
        for _ in range(take("Q")):
            key = text()
            out[key] = value(take("I"))
        return out


def kv_bytes(path, tokens, element):
    meta = read_metadata(path)
    arch = meta["general.architecture"]
    heads = meta[f"{arch}.attention.head_count"]
    kv_heads = meta.get(f"{arch}.attention.head_count_kv", heads)
    width = meta.get(f"{arch}.attention.key_length", meta[f"{arch}.embedding_length"] // heads)
    return 2 * meta[f"{arch}.block_count"] * kv_heads * width * tokens * element


# ---- running ----

def environment(threads):
    # llama-simple has no flag for threads and would take four.
    return dict(os.environ, OMP_THREAD_LIMIT=str(threads), LC_ALL="C")


class Run:
    """One process: seconds to its first byte of stdout, its outputs, peak RssAnon if asked."""

    def __init__(self, command, threads, watch_memory=False):
        with tempfile.TemporaryFile() as err:
            start = time.perf_counter()
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=err, env=environment(threads), close_fds=False)
            if watch_memory:
                self.peak = self._watch(child)
                self.first, out = None, child.stdout.read()
            else:
                out = os.read(child.stdout.fileno(), 1)
                self.first = time.perf_counter() - start
                out += child.stdout.read()
            child.stdout.close()
            code = child.wait()
            err.seek(0)
            self.err = err.read().decode("utf-8", "replace")
            self.out = out.decode("utf-8", "replace")
        if code:
            raise SystemExit(f"{' '.join(command)}\nexit {code}\n{self.err[-2000:]}")

    @staticmethod
    def _watch(child):
        peak = 0
        status = f"/proc/{child.pid}/status"
        while child.poll() is None:
            try:
                found = re.search(r"RssAnon:\s+(\d+)", Path(status).read_text())
            except OSError:
                break
            if found:
                peak = max(peak, int(found.group(1)) * 1024)
            time.sleep(0.002)
        return peak


class Davit:
    name = "davit"

    def __init__(self, program, model, threads, more):
        self.program, self.model, self.threads, self.more = program, model, threads, more

    def run(self, *flags, **how):
        return Run([self.program, "run", self.model, "--threads", str(self.threads), "--json",
                    *self.more, *flags], self.threads, **how)

    @staticmethod
    def ids(n):
        return " ".join(str(300 + 7 * i % 1000) for i in range(n))

    @staticmethod
    def document(run):
        """The last JSON document of stdout (lines of --stream come before it)."""
        for start in [m.start() for m in re.finditer(r"^\{", run.out, re.M)]:
            try:
                doc = json.loads(run.out[start:])
            except ValueError:
                continue
            if "timings" in doc:
                return doc
        raise SystemExit(f"no timings in davit's answer: {run.out[:500]}")

    def prompt(self):
        """A text of six tokens in this model's vocabulary, and its ids."""
        for text in PROMPTS:
            out = subprocess.run([self.program, "tokenize", self.model, text, "--json"],
                                 capture_output=True, text=True, check=True).stdout
            ids = json.loads(out)["inputs"][0]["ids"]
            if len(ids) == FIRST_TOKENS:
                return text
        raise SystemExit(f"{self.model}: no known prompt has {FIRST_TOKENS} tokens")

    def prefill(self):
        t = self.document(self.run("--ids", self.ids(PREFILL), "--max-tokens", "1", "--repeat",
                                   "2", "--ignore-eos"))["timings"]
        return t["prompt_tokens"] / t["prompt_s"]

    def decode(self):
        t = self.document(self.run("--ids", self.ids(1), "--max-tokens", str(DECODE + 1),
                                   "--ignore-eos"))["timings"]
        return t["decode_tokens"] / t["decode_s"]

    def first(self, text):
        run = self.run("--prompt", text, "--max-tokens", "1", "--stream", "--ignore-eos")
        t = self.document(run)["timings"]
        assert t["prompt_tokens"] == FIRST_TOKENS, t
        return run.first, run.first - t["prompt_s"]

    def memory(self):
        run = self.run("--ids", self.ids(PREFILL), "--max-tokens", str(DECODE + 1),
                       "--ignore-eos", watch_memory=True)
        load = self.document(run)["load"]
        return run.peak, load


class Llama:
    name = "llama.cpp"

    def __init__(self, bench, firsts, model, threads):
        self.bench_program, self.firsts = bench, firsts
        self.model, self.threads = model, threads

    def bench(self, prompt, decode, *flags, **how):
        return Run([self.bench_program, "-m", self.model, "-t", str(self.threads), "-p",
                    str(prompt), "-n", str(decode), "-r", "1", "-o", "json", *flags],
                   self.threads, **how)

    def prefill(self):
        return json.loads(self.bench(PREFILL, 0).out)[0]["avg_ts"]

    def decode(self):
        return json.loads(self.bench(0, DECODE).out)[0]["avg_ts"]

    def first_command(self, program, text):
        base = [program, "-m", self.model, "-n", "1"]
        if "simple" in Path(program).name:
            return base + [text]
        return base + ["-t", str(self.threads), "--temp", "0", "-no-cnv", "--no-warmup",
                       "--no-display-prompt", "--simple-io", "-p", text]

    def first(self, program, text):
        run = Run(self.first_command(program, text), self.threads)
        found = re.search(r"prompt eval time =\s*([\d.]+) ms /\s*(\d+) tokens", run.err)
        if not found or int(found.group(2)) != FIRST_TOKENS:
            raise SystemExit(f"{program}: expected a prompt of {FIRST_TOKENS} tokens\n"
                             f"{run.err[-1500:]}")
        return run.first, run.first - float(found.group(1)) / 1e3

    def memory(self):
        return self.bench(PREFILL, DECODE, "--no-warmup", watch_memory=True).peak


# ---- a model ----

def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "all": values}


def measure(davit, llama, what, rounds, first_rounds, tell):
    text = davit.prompt()
    names = [Path(p).name for p in llama.firsts]
    data, load = {}, None

    def note(figure, who, value):
        data.setdefault(figure, {}).setdefault(who, []).append(value)

    with open(davit.model, "rb") as f:  # into the page cache
        while f.read(1 << 24):
            pass
    for i in range(first_rounds if "first" in what else 0):
        tell(f"first {i + 1}/{first_rounds}")
        turns = [("davit", lambda: davit.first(text))]
        turns += [(n, lambda p=p: llama.first(p, text)) for n, p in zip(names, llama.firsts)]
        for who, call in (turns if i % 2 == 0 else turns[::-1]):
            wall, before = call()
            note("first", who, wall)
            note("load", who, before)
    for i in range(rounds if "speed" in what else 0):
        tell(f"prefill and decode {i + 1}/{rounds}")
        for tool in ((davit, llama) if i % 2 == 0 else (llama, davit)):
            note("prefill", tool.name, tool.prefill())
            note("decode", tool.name, tool.decode())
    for i in range(2 if "memory" in what else 0):
        tell(f"memory {i + 1}/2")
        peak, load = davit.memory()
        note("memory", davit.name, peak)
        note("memory", llama.name, llama.memory())
    return text, {w: {k: summary(v) for k, v in d.items()} for w, d in data.items()}, load


def beyond(model, peak, load, kv_element):
    kv = kv_bytes(model, PREFILL + DECODE + 1, kv_element)
    return {"peak": peak, "packed_weights": load["private_bytes"], "kv": kv,
            "window": load["window_bytes"],
            "beyond": peak - load["private_bytes"] - kv - load["window_bytes"]}


UNITS = {"first": ("ms", 1e3), "load": ("ms", 1e3), "prefill": ("tokens/s", 1),
         "decode": ("tokens/s", 1), "memory": ("MiB", 1 / MIB)}


def print_model(name, figures):
    print(f"\n### {name}\n")
    print("| what | davit: median (min to max) | llama.cpp: median (min to max) | davit / llama.cpp |")
    print("|---|---|---|---|")
    for what in ("prefill", "decode", "first", "load", "memory"):
        unit, scale = UNITS[what]

        if what not in figures:
            continue

        def cell(s):
            digits = 1 if s["median"] * scale < 1000 else 0
            return (f"{s['median'] * scale:.{digits}f} ({s['min'] * scale:.{digits}f} to "
                    f"{s['max'] * scale:.{digits}f})")
        ours = figures[what]["davit"]
        for who, theirs in figures[what].items():
            if who != "davit":
                label = f"{what}, {unit}" + ("" if who == "llama.cpp" else f", {who}")
                print(f"| {label} | {cell(ours)} | {cell(theirs)} | "
                      f"{ours['median'] / theirs['median']:.2f} |")
    sys.stdout.flush()


def print_own(own, load):
    mib = {k: f"{v / MIB:.1f}" for k, v in own.items()}
    print(f"\ndavit's private memory: peak {mib['peak']} MiB = packed weights "
          f"{mib['packed_weights']} + keys and values {mib['kv']} + window {mib['window']} + "
          f"{mib['beyond']} beyond; borrowed in place {load['borrowed_bytes'] / MIB:.1f} MiB",
          flush=True)


def machine():
    info = subprocess.run(["lscpu"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, LC_ALL="C")).stdout
    fields = dict(re.findall(r"^(Model name|CPU\(s\)|CPU family|Model|L1d cache|L2 cache|"
                             r"L3 cache|Hypervisor vendor):\s*(.*)$", info, re.M))
    flags = re.findall(r"\b(avx2|fma|f16c|avx_vnni|avx512f|avx512_vnni|avx512_bf16)\b", info)
    return dict(fields, features=" ".join(dict.fromkeys(flags)), kernel=os.uname().release)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--davit", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--llama-first", required=True, action="append",
                        help="llama-simple or llama-completion; may be repeated")
    parser.add_argument("--llama-version", default="", help="a note for the record")
    parser.add_argument("--what", action="append", choices=("first", "speed", "memory"),
                        help="only this; may be repeated. first: first byte and load; "
                             "speed: prefill and decode")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-rounds", type=int, default=9)
    parser.add_argument("--kv-bytes", type=int, default=2, help="bytes of a stored key element")
    parser.add_argument("--davit-flag", action="append", default=[],
                        help="passed to davit run, as in --davit-flag=--layout=stored")
    parser.add_argument("--json", help="all figures, to this file")
    args = parser.parse_args()

    result = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "machine": machine(), "threads": args.threads, "llama_version": args.llama_version,
              "davit_version": subprocess.run([args.davit, "version"], capture_output=True,
                                              text=True, check=True).stdout,
              "load_average_before": os.getloadavg(), "models": {}}
    if os.getloadavg()[0] > 0.75 * (os.cpu_count() or 1):
        print(f"warning: load average {os.getloadavg()[0]:.1f}: figures will be too low",
              file=sys.stderr)
    for model in args.models:
        name = Path(model).name
        davit = Davit(args.davit, model, args.threads, args.davit_flag)
        llama = Llama(args.llama_bench, args.llama_first, model, args.threads)
        text, figures, load = measure(
            davit, llama, args.what or ("first", "speed", "memory"), args.rounds, args.first_rounds,
            lambda step, name=name: print(f"\r\033[K{name}: {step}", end="", file=sys.stderr))
        print("\r\033[K", end="", file=sys.stderr)
        result["models"][name] = {"prompt": text, "figures": figures, "load": load,
                                  "load_average_after": os.getloadavg()}
        print_model(name, figures)
        if load:
            own = beyond(model, figures["memory"]["davit"]["max"], load, args.kv_bytes)
            result["models"][name]["own"] = own
            print_own(own, load)
        if args.json:
            Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
