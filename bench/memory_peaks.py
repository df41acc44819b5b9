#!/usr/bin/env python3
"""Peak memory of real runs beside what --dry-run computes from the plan, as the page docs/results/memory_peaks.md.

  bench/memory_peaks.py --program build/cpu/transformer3d --work DIR [--only NUMBERS] [--measured FILE]

Models of 3 M to 350 M parameters on 1, 2, 4 and 8 ranks of this machine, two steps and a checkpoint each; half an hour.

- Of the largest rank: the kernel's highest resident set of the process (ru_maxrss of wait4, which is VmHWM).
- Of all ranks with their writers: a control group of memory made for the run, version 2 or 1, read every 10 ms: anonymous memory,
  shared memory and what the kernel keeps for them, without the pages of files (program, libraries, checkpoint), which the kernel
  counts for who reads them first and gives back when memory is short. Beside it the group's own highest mark (memory.peak), in
  which they are. Where no group can be made: the sum of the processes' proportional set sizes without files (Pss_Anon and
  Pss_Shmem), which counts a page that n processes share as 1/n in each.
The launcher (mpirun) is not in the group: under srun there is none.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

from plan_runs import QUIET, Program, launcher

MIB = 1 << 20
INPUT = """version = 1
[run]
steps = 2
[model]
{model}
[batch]
sequences = 8
[hetero]
speeds = "equal"
""" + QUIET
GPT = "layers = {}\nhidden = {}\nheads = {}\nvocab = {}\ncontext = {}"
LLAMA = GPT + '\nkv_heads = {}\nffn = {}\nnorm = "rmsnorm"\nactivation = "swiglu"\nposition = "rope"\nbias = false\ntied_embeddings = false'
MODELS = {
    "gpt 3M": GPT.format(4, 192, 6, 4096, 128),
    "llama 10M": LLAMA.format(6, 256, 8, 8192, 128, 4, 704),
    "qwen 30M": LLAMA.format(8, 384, 6, 16384, 128, 2, 1024) + "\nhead_size = 48\nqk_norm = true\nattention_bias = \"qkv\"",
    "gpt 30M": 'preset = "gpt-30m"\ncontext = 256',
    "gpt2 124M": 'preset = "gpt2-124m"\ncontext = 64',
    "llama 160M": 'preset = "llama-160m"\ncontext = 64',
    "gpt2 350M": 'preset = "gpt2-350m"\ncontext = 32',
}
ADASUM = 'aggregate.method="adasum"'
RUNS = [  # model, ranks, cuboid, further options
    ("gpt 3M", 1, "1 1 1", ""),
    ("gpt 3M", 2, "2 1 1", ""),
    ("gpt 3M", 4, "2 2 1", ""),
    ("gpt 3M", 8, "2 2 2", ""),
    ("gpt 3M", 8, "1 1 1", "mesh.replicas=8"),
    ("gpt 3M", 4, "1 1 2", f"mesh.replicas=2 {ADASUM}"),
    ("gpt 3M", 1, "1 1 1", 'precision.compute="fp64"'),
    ("llama 10M", 1, "1 1 1", ""),
    ("llama 10M", 2, "1 2 1", ""),
    ("llama 10M", 2, "1 1 1", "mesh.replicas=2"),
    ("llama 10M", 4, "1 2 2", 'precision.compute="bf16"'),
    ("llama 10M", 8, "2 2 1", f"mesh.replicas=2 {ADASUM}"),
    ("llama 10M", 8, "8 1 1", 'batch.recompute="block"'),
    ("llama 10M", 4, "2 1 2", 'optimizer.kind="muon"'),
    ("llama 10M", 1, "1 1 1", 'batch.micro=2 optimizer.kind="lamb"'),
    ("llama 10M", 1, "1 1 1", 'batch.recompute="block" precision.compute="bf16"'),
    ("llama 10M", 1, "1 1 1", 'optimizer.kind="sgd" model.freeze=["wte.*","blocks.0.*"]'),
    ("llama 10M", 2, "2 1 1", "mesh.tokens=[3,1] batch.micro=4"),
    ("llama 10M", 2, "1 1 2", 'mesh.keep="none"'),
    ("llama 10M", 2, "1 2 1", 'lora.rank=8 lora.targets=["q","o","up"]'),
    ("llama 10M", 4, "4 1 1", "batch.micro=4"),
    ("llama 10M", 4, "1 2 1", "mesh.replicas=2"),
    ("gpt 3M", 2, "1 2 1", 'optimizer.kind="muon"'),
    ("gpt 3M", 4, "1 4 1", 'precision.compute="bf16"'),
    ("gpt 3M", 4, "2 2 1", "mesh.tokens=[2,1] mesh.outputs=[3,1]"),
    ("gpt 3M", 8, "2 1 2", f"mesh.replicas=2 {ADASUM} aggregate.leaves=2 batch.micro=1"),
    ("qwen 30M", 1, "1 1 1", "batch.micro=2"),
    ("qwen 30M", 1, "1 1 1", 'lora.rank=8 lora.targets=["q","v"]'),
    ("qwen 30M", 2, "1 1 2", ""),
    ("qwen 30M", 2, "2 1 1", 'mesh.keep="none" mesh.tokens=[3,1]'),
    ("qwen 30M", 4, "2 1 2", "batch.micro=4"),
    ("qwen 30M", 4, "1 2 1", f"mesh.replicas=2 {ADASUM} aggregate.wire=\"bf16\""),
    ("qwen 30M", 8, "2 2 2", 'precision.compute="bf16"'),
    ("gpt 30M", 1, "1 1 1", "batch.micro=4"),
    ("gpt 30M", 1, "1 1 1", 'batch.micro=4 batch.recompute="block"'),
    ("gpt 30M", 1, "1 1 1", 'batch.micro=4 precision.compute="bf16"'),
    ("gpt 30M", 2, "2 1 1", "batch.micro=4"),
    ("gpt 30M", 2, "1 2 1", "batch.micro=4"),
    ("gpt 30M", 2, "1 1 2", "batch.micro=4"),
    ("gpt 30M", 4, "2 2 1", "batch.micro=4"),
    ("gpt 30M", 4, "4 1 1", 'batch.micro=4 mesh.keep="none"'),
    ("gpt 30M", 4, "1 1 2", f"batch.micro=4 mesh.replicas=2 {ADASUM}"),
    ("gpt 30M", 4, "2 1 2", 'batch.micro=4 optimizer.kind="muon"'),
    ("gpt 30M", 4, "2 2 1", "batch.micro=4 mesh.tokens=[3,1] mesh.outputs=[2,1]"),
    ("gpt 30M", 2, "1 1 2", 'batch.micro=4 checkpoint.asynchronous="off"'),
    ("gpt 30M", 8, "2 2 2", "batch.micro=4"),
    ("gpt2 124M", 1, "1 1 1", "batch.sequences=4"),
    ("gpt2 124M", 2, "1 2 1", "batch.sequences=4"),
    ("gpt2 124M", 4, "1 2 2", "batch.sequences=4"),
    ("gpt2 124M", 8, "2 2 2", "batch.sequences=4"),
    ("gpt2 124M", 2, "1 1 1", "batch.sequences=4 mesh.replicas=2"),
    ("gpt2 124M", 2, "1 1 2", 'batch.sequences=4 precision.compute="bf16"'),
    ("llama 160M", 1, "1 1 1", "batch.sequences=4"),
    ("llama 160M", 2, "2 1 1", 'batch.sequences=4 optimizer.kind="muon"'),
    ("llama 160M", 4, "1 4 1", "batch.sequences=4"),
    ("llama 160M", 8, "1 2 4", "batch.sequences=4"),
    ("gpt2 350M", 2, "1 2 1", "batch.sequences=2"),
    ("gpt2 350M", 4, "1 2 2", 'batch.sequences=2 precision.compute="bf16"'),
    ("gpt 3M", 1, "1 1 1", 'precision.compute="bf16" batch.micro=2'),
    ("gpt 3M", 1, "1 1 1", 'optimizer.kind="muon"'),
    ("gpt 3M", 1, "1 1 1", "model.dropout=0.1 model.context=256"),
    ("gpt 3M", 2, "1 1 1", f"mesh.replicas=2 {ADASUM} aggregate.leaves=2"),
    ("gpt 3M", 2, "1 1 2", 'precision.compute="bf16"'),
    ("gpt 3M", 2, "2 1 1", 'lora.rank=4 lora.targets=["q","v"] batch.micro=2'),
    ("gpt 3M", 2, "1 2 1", 'batch.recompute="block" mesh.keep="none"'),
    ("gpt 3M", 4, "1 1 1", 'mesh.replicas=4 aggregate.method="sum"'),
    ("gpt 3M", 2, "1 2 1", 'checkpoint.asynchronous="off"'),
]


class Groups:
    """A control group of memory, of version 2 or 1. `path` is None where none can be made."""

    def __init__(self):
        self.path, self.version = None, 0
        for version, top in ((2, self.own("")), (1, self.own("memory"))):
            if top is not None and self.make(top, version):
                return

    @staticmethod
    def own(controller):
        for line in open("/proc/self/cgroup"):
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller not in controllers.split(","):
                continue
            top = pathlib.Path("/sys/fs/cgroup", controller)
            inner = top / path.lstrip("/")
            return inner if inner.is_dir() else top  # a container sees its own group at the mount
        return None

    def make(self, top, version):
        path = top / f"t3d-memory-{os.getpid()}"
        mark = path / ("memory.peak" if version == 2 else "memory.max_usage_in_bytes")
        try:
            path.mkdir()
        except OSError:
            return False
        if not mark.exists():
            path.rmdir()
            return False
        self.path, self.version, self.mark = path, version, mark
        return True

    def renew(self):
        if self.path is not None:
            self.remove()
            self.path.mkdir()

    def remove(self):
        for _ in range(100):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.05)

    def used(self):
        """Bytes in use without files, all and by part."""
        stat = dict(line.split() for line in open(self.path / "memory.stat"))
        if self.version == 2:
            usage, prefix, anonymous = "memory.current", "", "anon"
            cached = int(stat["file"]) - int(stat["shmem"])
        else:
            usage, prefix, anonymous = "memory.usage_in_bytes", "total_", "total_rss"
            cached = int(stat["total_cache"]) - int(stat["total_shmem"])
        own, shared = int(stat[anonymous]), int(stat[prefix + "shmem"])
        everything = int((self.path / usage).read_text())
        kernel = max(0, everything - own - shared - cached)
        return own + shared + kernel, {"own": own, "shared": shared, "kernel": kernel}

    def peak(self):
        return int(self.mark.read_text())


def sum_of_pss(root):
    """Of `root`'s descendants, without the launcher itself."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
            except OSError:
                pass
    total, left = 0, list(children.get(root, []))
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(1024 * int(size) for size in re.findall(r"^Pss_(?:Anon|Shmem): *(\d+)", text, re.M))
        except OSError:
            pass
    return total, {}


class Watch(threading.Thread):
    """The highest of what `read` says."""

    def __init__(self, read):
        super().__init__(daemon=True)
        self.read, self.most, self.parts, self.over = read, 0, {}, threading.Event()

    def run(self):
        while not self.over.wait(0.01):
            now, parts = self.read()
            if now > self.most:
                self.most, self.parts = now, parts

    def end(self):
        self.over.set()
        self.join()


def be_rank(folder, group, command):
    """Runs the program in the group as a child, so that the kernel says what its process had at most."""
    child = os.fork()
    if child == 0:
        if group != "none":
            pathlib.Path(group, "cgroup.procs").write_text(str(os.getpid()))
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
    pathlib.Path(folder, f"peak.{rank}").write_text(str(1024 * usage.ru_maxrss))
    sys.exit(os.waitstatus_to_exitcode(status))


def bytes_of(text, pattern):
    found = re.search(pattern, text, re.M)
    if not found:
        raise SystemExit(f"no '{pattern}' in\n{text}")
    return float(found[1]) * {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}[found[2]]


SIZE = r"([0-9.]+) ([KMG]?i?B)"


def settings(cuboid, options):
    words = [f"mesh.cuboid=[{','.join(cuboid.split())}]", *options.split()]
    return [part for word in words for part in ("--set", word)]


def compute(program, model, ranks, cuboid, options):
    """Bytes that --dry-run says."""
    (program.work / "input.toml").write_text(INPUT.format(model=MODELS[model]))
    dry = program("input.toml", "--dry-run", ranks, *settings(cuboid, options))
    return {
        "tensors": bytes_of(dry, f"^memory per rank: {SIZE} at most"),
        "rank computed": bytes_of(dry, f"^resident per rank: {SIZE} at most"),
        "job computed": bytes_of(dry, f"^resident of all ranks: {SIZE}"),
    }


def measure(program, groups, model, ranks, cuboid, options):
    work = program.work
    subprocess.run(["rm", "-rf", work / "run", *work.glob("peak.*")], check=True)
    (work / "input.toml").write_text(INPUT.format(model=MODELS[model]))
    groups.renew()
    command = launcher(ranks) + [sys.executable, __file__, "--as-rank", str(work), str(groups.path or "none"), str(program.path),
                        "input.toml", "-d", "run", "-q", *settings(cuboid, options)]
    with open(work / "run.log", "w") as log:
        job = subprocess.Popen(command, cwd=work, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        watch = Watch(groups.used if groups.path else lambda: sum_of_pss(job.pid))
        watch.start()
        status = job.wait()
        watch.end()
    if status != 0:
        raise SystemExit(f"{model} {ranks} {cuboid} {options}: {(work / 'run.log').read_text()[-2000:]}")
    return {
        "rank": max(int(file.read_text()) for file in work.glob("peak.*")),
        "job": watch.most,
        "mark": groups.peak() if groups.path else 0,
        "parts": watch.parts,
    }


def mib(size):
    return f"{size / MIB:,.0f}"


def off(row, what):
    return 100 * (row[f"{what} computed"] / row[what] - 1)


def spread(values):
    values = sorted(map(abs, values))
    at = lambda part: values[min(len(values) - 1, int(part * len(values)))]
    inside = sum(value <= 5 for value in values)
    return f"middle {statistics.median(values):.1f} %, 90th percentile {at(0.9):.1f} %, largest {values[-1]:.1f} %; within 5 %: {inside} of {len(values)}"


def main():
    if sys.argv[1:2] == ["--as-rank"]:
        be_rank(sys.argv[2], sys.argv[3], sys.argv[4:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--only", help="numbers of runs, as 1,5,7")
    parser.add_argument("--measured", type=pathlib.Path, help="keeps what was measured in this file, and measures the rest only")
    parser.add_argument("--parts", action="store_true", help="what the group's memory was, part by part")
    args = parser.parse_args()
    program, groups = Program(args.program, args.work), Groups()
    chosen = [int(n) for n in args.only.split(",")] if args.only else range(1, len(RUNS) + 1)
    print("| # | model | ranks | cuboid | options | tensors | largest rank | computed | off | all ranks | computed | off | with cached files |")
    print("|---:|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    measured = json.loads(args.measured.read_text()) if args.measured and args.measured.exists() else {}
    rows = []
    try:
        for number in chosen:
            model, ranks, cuboid, options = RUNS[number - 1]
            name = f"{model}, {ranks}, {cuboid}, {options}"
            if name not in measured:
                measured[name] = measure(program, groups, *RUNS[number - 1])
            row = measured[name] | compute(program, *RUNS[number - 1])
            rows.append(row)
            if args.measured:
                args.measured.write_text(json.dumps(measured, indent=1) + "\n")
            print(f"| {number} | {model} | {ranks} | {cuboid} | {options.replace('|', '')} | {mib(row['tensors'])} | {mib(row['rank'])} "
                  f"| {mib(row['rank computed'])} | {off(row, 'rank'):+.1f} % | {mib(row['job'])} | {mib(row['job computed'])} "
                  f"| {off(row, 'job'):+.1f} % | {mib(row['mark']) if row['mark'] else '-'} |", flush=True)
            if args.parts:
                print("    " + ", ".join(f"{name} {mib(size)}" for name, size in row["parts"].items()), flush=True)
    finally:
        if groups.path is not None:
            groups.remove()
    print(f"\nLargest rank: {spread([off(row, 'rank') for row in rows])}.")
    print(f"All ranks: {spread([off(row, 'job') for row in rows])}.")


if __name__ == "__main__":
    main()
