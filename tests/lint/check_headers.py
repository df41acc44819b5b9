#!/usr/bin/env python3
"""Every header of src compiles alone: it includes what it uses.

    check_headers.py [SOURCE_FOLDER]

Asks the compiler of a build folder (T3D_BUILD, else build/cpu of the tree) with the include folders and
definitions of the sources beside the header. Headers of GPU folders are left out: nvcc reads them.
With T3D_LINT_SAMPLE=N it takes every N-th of them, others at each commit
(tests/support/lint_turn.py). Ends with 77 (left out) where there is no build folder.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lint_turn import with_turn  # noqa: E402

GPU_FOLDERS = ("src/device/cuda/", "src/ops/cuda/", "src/comm/nccl/")
# Kernels are compiled once per instruction set, by files that define its name.
DEFINITIONS = {"src/ops/cpu/isa/": ["-DT3D_ISA=alone"]}


def commands_of(build):
    """For every folder of src (its first name) a compiler with its flags, without files."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        parts = pathlib.PurePath(entry["file"]).parts
        if "src" not in parts or "tests" in parts or not entry["file"].endswith(".cpp"):
            continue
        words = shlex.split(entry["command"])
        compiler = next(word for word in words if "++" in pathlib.PurePath(word).name)
        flags = [compiler]
        for at, word in enumerate(words):
            if word.startswith(("-I", "-D", "-std=", "-fopenmp", "-march")):
                flags.append(word)
            elif word == "-isystem":
                flags += [word, words[at + 1]]
        commands.setdefault(parts[parts.index("src") + 1], (flags, entry["directory"]))
    return commands


def fault(root, commands, name):
    """What the compiler says of one header; empty if it compiles."""
    flags, directory = commands[name.split("/")[1]]
    own = [flag for folder, flags_ in DEFINITIONS.items() if name.startswith(folder) for flag in flags_]
    command = flags + own + ["-fsyntax-only", "-w", "-include", str(root / name), "-x", "c++", "/dev/null"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if result.returncode == 0:
        return ""
    lines = [line for line in result.stderr.splitlines() if "error:" in line] or [result.stderr]
    return f"{name} does not compile alone: {lines[0]}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    build = pathlib.Path(os.environ.get("T3D_BUILD", root / "build" / "cpu"))
    if not (build / "compile_commands.json").exists():
        print(f"no {build}/compile_commands.json: nothing was checked")
        sys.exit(77)
    commands = commands_of(build)
    names = [path.relative_to(root).as_posix() for path in sorted((root / "src").rglob("*.hpp"))]
    names = [name for name in names if not name.startswith(GPU_FOLDERS)]
    names = with_turn(names)
    if not names:
        sys.exit("check_headers: no headers in src; wrong folder?")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [text for text in pool.map(lambda name: fault(root, commands, name), names) if text]
    print("\n".join(found) if found else f"{len(names)} headers compile alone")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
