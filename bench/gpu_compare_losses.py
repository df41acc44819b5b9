#!/usr/bin/env python3
"""Two trainings had the same losses: compares the log.jsonl of two run folders step by step.

    gpu_compare_losses.py RUN RUN (--relative BOUND | --absolute BOUND) [--norm BOUND] [--json FILE]

Prints the worst step and ends with 1 if it is beyond the bound, if a loss is missing or not finite, or
if the steps differ. --norm also bounds the relative difference of the gradients' norms.
"""
import argparse
import json
import math
import pathlib
import sys


def read_log(place):
    """step -> record; of a step that was done twice (after a restart) the later one."""
    path = pathlib.Path(place)
    path = path / "log.jsonl" if path.is_dir() else path
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        sys.exit(f"gpu_compare_losses: {error}")
    records = {}
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            break  # the run was killed while it wrote this line
        records[record["step"]] = record
    return records


def finite(value):
    return isinstance(value, (int, float)) and math.isfinite(value)


def worst(first, second, key, relative):
    """The largest difference of a key and its step; infinite where a number is missing."""
    found = (-1.0, 0)
    for step in sorted(first):
        a, b = first[step].get(key), second[step].get(key)
        if not (finite(a) and finite(b)):
            return math.inf, step
        difference = abs(a - b)
        if relative and difference:
            difference /= max(abs(a), 1e-30)
        found = max(found, (difference, step), key=lambda pair: pair[0])
    return found


def compare(args):
    first, second = read_log(args.first), read_log(args.second)
    if not first or sorted(first) != sorted(second):
        return {"same": False, "reason": f"{len(first)} steps and {len(second)} steps, not the same ones"}
    relative = args.relative is not None
    bound = args.relative if relative else args.absolute
    loss, step = worst(first, second, "loss", relative)
    norm, norm_step = worst(first, second, "grad_norm", True)
    result = {"same": loss <= bound, "steps": len(first), "measure": "relative" if relative else "absolute",
              "bound": bound, "worst": loss, "worst_step": step, "losses": [first[step].get("loss"),
              second[step].get("loss")], "worst_norm": norm, "worst_norm_step": norm_step}
    if not result["same"]:
        result["reason"] = f"losses differ by {loss:.3g} at step {step}, allowed {bound:g}"
    elif args.norm is not None and not norm <= args.norm:
        result["same"] = False
        result["reason"] = f"gradient norms differ by {norm:.3g} at step {norm_step}, allowed {args.norm:g}"
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in result.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first")
    parser.add_argument("second")
    bound = parser.add_mutually_exclusive_group(required=True)
    bound.add_argument("--relative", type=float)
    bound.add_argument("--absolute", type=float)
    parser.add_argument("--norm", type=float)
    parser.add_argument("--json")
    args = parser.parse_args()
    result = compare(args)
    print(json.dumps(result))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result))
    if not result["same"]:
        sys.exit(f"{args.first} and {args.second}: {result['reason']}")


if __name__ == "__main__":
    main()
