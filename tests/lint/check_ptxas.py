#!/usr/bin/env python3
"""Registers, spills and local memory of every CUDA kernel, from ptxas; fails on any spill or stack.

    python3 tests/lint/check_ptxas.py SOURCE [--arch sm_90a] [--jobs 2] [--table FILE]

Local memory in a kernel means that an array did not fit into registers or was indexed by a number
that the compiler does not know: it turns register speed into memory speed without a word. Where
there is no CUDA compiler the check says so and passes. Results are kept by content in
build/ptxas-cache, so that only what changed is compiled. With T3D_LINT_SAMPLE=N it takes every N-th
file, others at each commit (tests/support/lint_turn.py).
"""
import argparse
import concurrent.futures
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lint_turn import with_turn  # noqa: E402

FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-DFMT_USE_CONSTEXPR=1", "-Xptxas", "-v"]
# Kernels that may use local memory, with the reason.
ALLOWED = {}


def compiler():
    found = shutil.which("nvcc")
    return found or next(iter(glob.glob("/usr/local/cuda/bin/nvcc")), None)


def fingerprint(source, arch, nvcc):
    """Everything that can change the result: the kernel files, all their headers, the flags."""
    digest = hashlib.sha256(" ".join([nvcc, arch, *FLAGS]).encode())
    folder = os.path.join(ROOT, "src")
    headers = sorted(glob.glob(folder + "/**/*.cuh", recursive=True)
                     + glob.glob(folder + "/**/*.hpp", recursive=True))
    for path in [source, *headers]:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:24]


def ptxas_log(source, arch, nvcc, cache):
    kept = os.path.join(cache, fingerprint(source, arch, nvcc))
    if os.path.exists(kept):
        with open(kept) as file:
            return file.read()
    run = subprocess.run([nvcc, *FLAGS, "-arch=" + arch, "-I", os.path.join(ROOT, "src"), "-c",
                          source, "-o", os.devnull], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{source} does not compile:\n{run.stderr[-3000:]}")
    with open(kept + ".new", "w") as file:
        file.write(run.stderr)
    os.replace(kept + ".new", kept)
    return run.stderr


def kernels_of(log):
    """(mangled name, registers, stack bytes, spill bytes, shared bytes) of each kernel."""
    rows, name, stack, spill = [], None, 0, 0
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            name, stack, spill = match.group(1), 0, 0
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", line):
            stack, spill = int(match.group(1)), int(match.group(2)) + int(match.group(3))
        elif (match := re.search(r"Used (\d+) registers", line)) and name:
            shared = re.search(r"(\d+) bytes smem", line)
            rows.append((name, int(match.group(1)), stack, spill,
                         int(shared.group(1)) if shared else 0))
            name = None
    return rows


def readable(names):
    if not shutil.which("c++filt"):
        return dict(zip(names, names))
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    short = [re.sub(r"\(.*", "", re.sub(r"t3d::cuda::|t3d::|\(anonymous namespace\)::|void ", "", t))
             for t in text]
    return dict(zip(names, short))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", nargs="?", default=".")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--table", help="write the table to this file")
    options = parser.parse_args()
    global ROOT
    ROOT = os.path.abspath(options.source)
    nvcc = compiler()
    if nvcc is None:
        print("no CUDA compiler here: registers and spills were not checked")
        return 0
    cache = os.path.join(ROOT, "build", "ptxas-cache")
    os.makedirs(cache, exist_ok=True)
    sources = sorted(glob.glob(os.path.join(ROOT, "src", "**", "*.cu"), recursive=True))
    sources = with_turn(sources)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        logs = list(pool.map(lambda s: ptxas_log(s, options.arch, nvcc, cache), sources))
    rows = [(os.path.basename(source), *row) for source, log in zip(sources, logs)
            for row in kernels_of(log)]
    if not rows:
        print("no kernels found: ptxas said nothing that this script understands")
        return 1
    names = readable([row[1] for row in rows])
    lines = [f"{'file':<28} {'registers':>9} {'stack':>6} {'spills':>6} {'shared':>7}  kernel"]
    faults = 0
    for file, name, registers, stack, spill, shared in sorted(rows, key=lambda r: (r[0], -r[2])):
        bad = (stack or spill) and names[name] not in ALLOWED
        faults += bool(bad)
        lines.append(f"{file:<28} {registers:>9} {stack:>6} {spill:>6} {shared:>7}  {names[name][:110]}"
                     + ("   <-- LOCAL MEMORY" if bad else ""))
    text = "\n".join(lines)
    if options.table:
        with open(options.table, "w") as file:
            file.write(text + "\n")
    by_file = {}
    for file, _, registers, *_ in rows:
        most = by_file.setdefault(file, [0, 0])
        most[0] += 1
        most[1] = max(most[1], registers)
    for file, (count, registers) in sorted(by_file.items()):
        print(f"{file:<28} {count:>4} kernels, at most {registers} registers")
    if faults:
        print("\n".join(line for line in lines if "LOCAL MEMORY" in line))
    print(f"{len(rows)} kernels for {options.arch}: {faults} with spills or local memory")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
