#!/usr/bin/env python3
"""Steps to a fixed validation loss of a byte transformer (10.7 M parameters) on the quickstart's corpus,
with the replicas' gradients aggregated by mean, Adasum after each replica's optimizer (post), and Adasum's
gain on one shared optimizer. The learning rate is the same for all; replicas are leaves of one rank
(aggregate.leaves), which is the same arithmetic as that many ranks.

    bench/adasum_language.py TRANSFORMER3D TRAIN.txt VALID.txt OUT [--replicas 8 32] [--seeds 1 2 3]
                             [--lr 2.5e-4] [--modes mean post gain] [--target 2.1] [--threads 1]

OUT gets one log per run; a second call only runs what is missing. The table goes to the screen.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import time

LENGTH = 64
STEPS = {1: 2000, 8: 800, 32: 500}
MODES = {
    "mean": {"aggregate.method": "mean"},
    "sum": {"aggregate.method": "sum", "aggregate.reference_batch": 1},
    "pre": {"aggregate.method": "adasum", "aggregate.placement": "pre"},
    "post": {"aggregate.method": "adasum", "aggregate.placement": "post"},
    "gain": {"aggregate.method": "adasum", "aggregate.placement": "gain"},
}


def run(args, mode, replicas, seed, lr):
    name = f"{mode}-{replicas}-{seed}-{lr:g}"
    folder = os.path.join(args.out, name)
    log = os.path.join(folder, "log.jsonl")
    if os.path.exists(os.path.join(folder, "done")):
        return read(log)
    settings = {
        "run.name": name, "run.dir": folder, "run.seed": seed, "run.steps": STEPS.get(replicas, 400),
        "model.layers": 6, "model.hidden": 384, "model.heads": 6, "model.position": "rope", "model.norm": "rmsnorm", "model.context": LENGTH, "model.vocab": 256,
        "data.train": args.train, "data.valid": args.valid, "data.format": "bytes",
        "batch.sequences": replicas, "optimizer.lr": lr, "schedule.kind": "constant",
        "schedule.warmup_steps": 20, "eval.every_steps": 5 if replicas > 1 else 50, "eval.batches": max(1, 128 // replicas),
        "checkpoint.every_minutes": 0, "debug.threads": args.threads, "aggregate.leaves": replicas,
        **MODES[mode],
    }
    if settings["aggregate.method"] != "adasum":
        del settings["aggregate.leaves"]
    os.makedirs(folder, exist_ok=True)
    tables = {}
    for key, value in settings.items():
        table, field = key.split(".")
        tables.setdefault(table, {})[field] = value
    path = os.path.join(folder, "input.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("version = 1\n")
        for table, fields in tables.items():
            file.write(f"[{table}]\n")
            file.writelines(f"{field} = {json.dumps(value)}\n" for field, value in fields.items())
    run_until(args, [args.program, "-q", "-r", "never", path], log)
    shutil.rmtree(os.path.join(folder, "ckpt"), ignore_errors=True)
    open(os.path.join(folder, "done"), "w", encoding="utf-8").close()
    return read(log)


def run_until(args, command, log):
    """Asks the run to stop once the target is reached."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(2)
            if os.path.exists(log) and steps_to(read(log), args.target) is not None:
                process.send_signal(signal.SIGTERM)
                process.wait()
        if process.returncode not in (0, 75):
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")


def read(log):
    with open(log, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def steps_to(records, target):
    """The first evaluation at or below the target; None if there is none."""
    for record in records:
        if record.get("valid_loss") is not None and record["valid_loss"] <= target:
            return record["step"]
    return None


def text(steps):
    reached = sorted(s if s is not None else 10**9 for s in steps)
    show = lambda s: "not reached" if s == 10**9 else str(s)
    return f"{show(statistics.median_low(reached))} ({show(reached[0])}..{show(reached[-1])})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("out")
    parser.add_argument("--replicas", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--lr", type=float, nargs="+", default=[2.5e-4])
    parser.add_argument("--modes", nargs="+", default=["mean", "post", "gain"])
    parser.add_argument("--target", type=float, default=2.1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    print(f"| replicas | lr | mode | steps to {args.target} | last loss | gain |\n|---:|---|---|---|---|---|")
    for replicas in args.replicas:
        for lr in args.lr:
            for mode in args.modes:
                runs = [run(args, mode, replicas, seed, lr) for seed in args.seeds]
                last = statistics.median(
                    [r[key] for r in records for key in ("valid_loss", "valid_loss_whole") if r.get(key) is not None][-1]
                    for records in runs)
                gains = [r["adasum_gain"] for records in runs for r in records if "adasum_gain" in r]
                gain = f"{statistics.median(gains):.2f}" if gains else "-"
                steps = text([steps_to(records, args.target) for records in runs])
                print(f"| {replicas} | {lr:g} | {mode} | {steps} | {last:.3f} | {gain} |", flush=True)


if __name__ == "__main__":
    main()
