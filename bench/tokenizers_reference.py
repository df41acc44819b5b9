#!/usr/bin/env python3
"""Our tokenizers beside those of Hugging Face: the same ids, the same text back, and how fast.

    bench/tokenizers_reference.py compare [--bytes 5000000] [--repeats 5] [--only NAME]
    bench/tokenizers_reference.py make      writes tests/reference/tokenizers

`compare` trains every tokenizer, encodes a text (bench/tokenizers_text.py) with both, and prints a table:
whether ids and decoded texts are equal, MB per second of processor time of both in turns. It ends with 1 when anything differs.
`make` writes small tokenizers, a text and what Hugging Face makes of it, for tests/unit/tokenizer/reference.cpp.
Needs tokenizers, sentencepiece, numpy, perl, and build/cpu/bench/t3d_bench_tokenizers (or $T3D_BENCH).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import numpy
import tokenizers_text
import tokenizers_trained
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = os.environ.get("T3D_BENCH", str(ROOT / "build/cpu/bench/t3d_bench_tokenizers"))
FOLDER = ROOT / "tests/reference/tokenizers"


class Ours:
    """What our program makes of a text."""

    def __init__(self, model, text, repeats=0):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("model", "text", "out")]
            pathlib.Path(paths[0]).write_bytes(model.encode())
            pathlib.Path(paths[1]).write_bytes(text.encode())
            run = subprocess.run([BENCH, *paths, str(repeats)], capture_output=True, text=True)
            if run.returncode != 0:
                raise SystemExit(f"t3d_bench_tokenizers: {run.stderr}")
            self.seconds = [float(word) for word in run.stdout.split()]
            self.ids = numpy.fromfile(paths[2] + ".ids", dtype=numpy.int32)
            self.document = numpy.fromfile(paths[2] + ".document", dtype=numpy.int32)
            self.text = pathlib.Path(paths[2] + ".text").read_bytes()
            self.shown = pathlib.Path(paths[2] + ".shown").read_bytes()


def first_difference(ours, theirs, tokenizer):
    count = min(len(ours), len(theirs))
    differ = numpy.nonzero(ours[:count] != theirs[:count])[0]
    at = int(differ[0]) if len(differ) else count
    show = lambda ids: [(int(i), tokenizer.id_to_token(int(i))) for i in ids[max(0, at - 3):at + 5]]
    return f"    first difference at {at} of {len(theirs)}:\n      ours   {show(ours)}\n      theirs {show(theirs)}"


def compare_one(name, model, text, repeats):
    """Prints a line of the table; whether all is equal."""
    tokenizer = Tokenizer.from_str(model)
    theirs = numpy.array(tokenizer.encode(text, add_special_tokens=False).ids, dtype=numpy.int32)
    document = tokenizer.encode(text).ids
    turns, times = [], []
    ours = Ours(model, text, 0)
    for _ in range(repeats):
        fresh = Tokenizer.from_str(model)
        begin = time.process_time()
        fresh.encode(text, add_special_tokens=False)
        times.append(time.process_time() - begin)
        turns += Ours(model, text, 1).seconds
    faults = []
    if not numpy.array_equal(ours.ids, theirs):
        faults.append("ids\n" + first_difference(ours.ids, theirs, tokenizer))
    if not numpy.array_equal(ours.document, numpy.array(document, dtype=numpy.int32)):
        faults.append("ids of a document")
    if ours.text != tokenizer.decode(document).encode():
        faults.append("text")
    if ours.shown != tokenizer.decode(document, skip_special_tokens=False).encode():
        faults.append("text with special tokens")
    size = len(text.encode()) / 1e6
    back = "yes" if ours.text == text.encode() else "as theirs"
    speed = "| - | - |"
    if repeats:
        speed = f"| {size / statistics.median(turns):.1f} | {size / statistics.median(times):.1f} |"
    print(f"| {name} | {len(theirs)} | {'equal' if not faults else 'DIFFER'} | {back} {speed}", flush=True)
    for fault in faults:
        print("   ", fault, flush=True)
    return not faults


def compare(arguments):
    letters = tokenizers_text.characters()
    source = tokenizers_text.Text(1, letters)
    training = source.make(2_000_000)
    text = source.make(arguments.bytes)
    every = source.every()
    print(f"{len(text.encode())} bytes of text; every one of {len(letters)} characters in {len(every.encode())} bytes\n")
    print("| tokenizer | ids | ids and texts | text comes back | ours MB/s | theirs MB/s |\n|---|---|---|---|---|---|")
    good, kept = True, {}
    for name, make in tokenizers_trained.ALL.items():
        if arguments.only and arguments.only not in name:
            continue
        kept[name] = make(training, 8000)
        good &= compare_one(name, kept[name], text, arguments.repeats)
    for name, model in kept.items():
        good &= compare_one(name + ", every character", model, every, 0)
    for name, model in tokenizers_trained.parts():
        if not arguments.only or arguments.only in name:
            good &= compare_one(name, model, every, 0)
            good &= compare_one(name + ", text", model, text[:1000000], 0)
    sys.exit(0 if good else 1)


def make(_):
    source = tokenizers_text.Text(2, tokenizers_text.characters())
    training = source.make(300_000)
    text = source.make(8_000)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "text.txt").write_bytes(text.encode())
    expected = {}
    for name, train in tokenizers_trained.ALL.items():
        if name in tokenizers_trained.NOT_KEPT:
            continue
        model = train(training, 700)
        (FOLDER / f"{name}.json").write_bytes(model.encode())
        tokenizer = Tokenizer.from_str(model)
        document = tokenizer.encode(text).ids
        expected[name] = {"ids": document, "count": len(tokenizer.encode(text, add_special_tokens=False).ids),
                          "text": tokenizer.decode(document),
                          "shown": tokenizer.decode(document, skip_special_tokens=False)}
        for key in ("text", "shown"):
            if expected[name][key] == text:
                expected[name][key] = None  # the text itself
    (FOLDER / "expected.json").write_text(json.dumps(expected, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("compare")
    one.add_argument("--bytes", type=int, default=5_000_000)
    one.add_argument("--repeats", type=int, default=5)
    one.add_argument("--only", default="")
    one.set_defaults(run=compare)
    commands.add_parser("make").set_defaults(run=make)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
