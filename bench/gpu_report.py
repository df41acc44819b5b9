#!/usr/bin/env python3
"""Results of jobs/gpu_check.sh: writes the small files it keeps per step and makes the tables of them.

    gpu_report.py facts --json FILE                    the GPU, the driver, the versions
    gpu_report.py training LOG.jsonl --model NAME --json FILE [--first 11] [--last 30]
    gpu_report.py part FILE --step NAME --kind KIND --status STATUS [--result FILE] [--log FILE] ...
    gpu_report.py merge PARTS OUT                      OUT/results.json and OUT/results.md

Python's own library only. A part says what a step gave: passed, failed, or not run and why.
"""
import argparse
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys

PEAK = 989e12  # dense bf16 flop/s of an H100 and an H200 (SXM), by the data sheet
MODELS = {  # layers, hidden, feed-forward, vocabulary, context, Llama; as src/config/presets.cpp
    "gpt2-124m": (12, 768, 3072, 50257, 1024, False),
    "gpt2-350m": (24, 1024, 4096, 50257, 1024, False),
    "gpt2-774m": (36, 1280, 5120, 50257, 1024, False),
    "gpt2-1558m": (48, 1600, 6400, 50257, 1024, False),
    "llama2-7b": (32, 4096, 11008, 32000, 2048, True),
}
VARIANTS = ("eager", "compile", "compile-cudnn")


def said(*command):
    """What a command prints, or nothing where it is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def write_json(path, value):
    path = pathlib.Path(path)
    new = path.with_suffix(".new")  # whoever is killed here leaves no half file
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.replace(path)


def facts(args):
    query = "name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit,temperature.gpu"
    values = said("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader").splitlines()
    found = dict(zip(query.split(","), [v.strip() for v in values[0].split(",")])) if values else {}
    found["gpus"] = len(values)
    found["cuda"] = (re.findall(r"CUDA Version: *([\d.]+)", said("nvidia-smi")) or [""])[0]
    here = pathlib.Path(__file__).resolve().parents[1]
    found["commit"] = said("git", "-C", str(here), "rev-parse", "--short", "HEAD")
    found["torch"] = said("python3", "-c", "import torch; print(torch.__version__)")
    cpu = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    found["cpu"] = f"{len(cpu)} x {cpu[0]}" if cpu else ""
    found["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    write_json(args.json, found)
    print(json.dumps(found))


def training(args):
    """The median over the counted steps of a run's log."""
    records = {}
    for line in pathlib.Path(args.log).read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            break  # the run is killed when it has done enough
        records[record["step"]] = record
    counted = [r for step, r in records.items() if args.first <= step <= args.last]
    if len(counted) <= args.last - args.first:
        sys.exit(f"gpu_report: {args.log}: {len(counted)} of steps {args.first} to {args.last}")
    rates = sorted(r["tokens_per_second"] for r in counted)
    result = {"model": args.model, "tokens_per_step": counted[0]["tokens"],
              "seconds": statistics.median(r["seconds"] for r in counted),
              "tokens_per_second": statistics.median(rates), "p10": rates[len(rates) // 10],
              "p90": rates[len(rates) * 9 // 10], "steps": len(counted),
              "peak_bytes": max(r["memory_bytes"] for r in records.values()),
              "first_loss": records[min(records)]["loss"], "last_loss": records[max(records)]["loss"]}
    write_json(args.json, result)
    print(json.dumps(result))


def test_counts(log):
    """The last line of a Catch2 run, and of a sanitizer's."""
    counts = re.findall(r"^(All tests passed.*|test cases:.*|=+ ERROR SUMMARY:.*|No tests ran.*)$", log, re.M)
    return {"summary": "; ".join(re.sub(r"^=+ ", "", c).strip() for c in counts[-2:])} if counts else {}


def part(args):
    value = {"step": args.step, "kind": args.kind, "status": args.status, "seconds": args.seconds,
             "note": args.note, "result": {}}
    log = pathlib.Path(args.log).read_text(errors="replace") if args.log else ""
    if args.result and pathlib.Path(args.result).is_file():
        try:
            value["result"] = json.loads(pathlib.Path(args.result).read_text())
        except json.JSONDecodeError:
            value["note"] = (value["note"] + " its result is half a file").strip()
    elif args.kind == "test":
        value["result"] = test_counts(log)
    if args.status == "failed":
        value["log_tail"] = log.splitlines()[-25:]
    write_json(args.file, value)


def flops_per_token(model, full_square):
    """6 N + 6 L C T (12 with the full square); N without an input table that is only looked up."""
    layers, hidden, ffn, vocab, context, llama = MODELS[model]
    if llama:
        weights = layers * (4 * hidden * hidden + 3 * hidden * ffn + 2 * hidden) + hidden + vocab * hidden
    else:
        weights = layers * (4 * hidden * hidden + 2 * hidden * ffn + 9 * hidden + ffn) + 2 * hidden
        weights += (vocab + context) * hidden
    return 6 * weights + (12 if full_square else 6) * layers * hidden * context


def number(value, digits=0):
    return f"{value:,.{digits}f}" if value else "-"


def gib(value):
    return f"{value / 2**30:.1f}" if value else "-"


def median_of(parts):
    return statistics.median(p["result"]["tokens_per_second"] for p in parts)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows] + [""]


def training_rows(parts, ceiling):
    """One row per model; a side that ran several times (turns A B A) gives its median and its turns."""
    with_rate = [p for p in parts if p["result"].get("tokens_per_second")]
    for model in MODELS:
        ours = [p for p in with_rate if p["kind"] == "training" and p["result"]["model"] == model]
        theirs = {v: [p for p in with_rate if p["kind"] == "pytorch" and p["result"]["model"] == model
                      and p["result"]["variant"] == v] for v in VARIANTS}
        rates = {v: median_of(found) for v, found in theirs.items() if found}
        if not ours and not rates:
            continue
        row = {"model": model, "pytorch": rates, "ours": median_of(ours) if ours else None,
               "tokens_per_step": (ours or [p for v in rates for p in theirs[v]])[0]["result"]["tokens_per_step"],
               "turns": [p["result"]["tokens_per_second"] for p in ours],
               "peak_bytes": max((p["result"]["peak_bytes"] for p in ours), default=0)}
        if rates:
            best = max(rates, key=rates.get)
            row.update(best=best, best_peak_bytes=max(p["result"]["peak_bytes"] for p in theirs[best]))
        if ours and rates:
            row["ratio"] = row["ours"] / rates[row["best"]]
        if ours:
            for name, full in (("6LCT", False), ("12LCT", True)):
                rate = row["ours"] * flops_per_token(model, full)
                row["mfu_" + name] = rate / PEAK
                row["mfu_measured_" + name] = rate / ceiling if ceiling else None
        yield row


def training_table(rows):
    def both(row, key):
        values = [row.get(key + name) for name in ("6LCT", "12LCT")]
        return " / ".join(f"{100 * v:.1f} %" for v in values) if all(values) else "-"

    def turns(row):
        return f" ({', '.join(number(t) for t in row['turns'])})" if len(row["turns"]) > 1 else ""

    return table(
        ["model", "tokens per step", "transformer3d (turns)", *(f"PyTorch {v}" for v in VARIANTS),
         "ratio to the best", "MFU of 989 TFLOP/s, 6N+6LCT / 6N+12LCT", "of the measured ceiling",
         "peak GiB", "PyTorch's"],
        [[r["model"], number(r["tokens_per_step"]), number(r["ours"]) + turns(r),
          *(number(r["pytorch"].get(v)) for v in VARIANTS),
          f"**{r['ratio']:.2f}** ({r['best']})" if r.get("ratio") else "-",
          both(r, "mfu_"), both(r, "mfu_measured_"), gib(r["peak_bytes"]), gib(r.get("best_peak_bytes"))]
         for r in rows])


def kernel_table(rows):
    return table(["part", "what", "engine", "microseconds", "rate", "of the ceiling"],
                 [[r["part"], r["name"], r["engine"], number(r["microseconds"], 1),
                   f"{r['rate']:.2f} {r['unit']}", f"{r['percent']:.1f} %"] for r in rows])


def detail(p):
    r = p["result"]
    if p["status"] == "passed" and "worst" in r:
        norm = "not finite" if r["worst_norm"] is None else f"{r['worst_norm']:.2g}"
        return f"worst {r['worst']:.2g} {r['measure']} (allowed {r['bound']:g}), gradient norms {norm}"
    return r.get("reason") or "; ".join(text for text in (p["note"], r.get("summary", "")) if text)


def ceilings(rows):
    product = [r["rate"] for r in rows if r["part"] == "ceiling" and r["unit"] == "TFLOP/s"]
    copy = [r["rate"] for r in rows if r["part"] == "ceiling" and r["unit"] == "TB/s"]
    return max(product, default=0) * 1e12, max(copy, default=0)


def page(parts, rows, ops):
    """results.md"""
    device = next((p["result"] for p in parts if p["kind"] == "facts"), {})
    product, copy = ceilings(ops)
    lines = [f"# GPU check: {device.get('name', 'no GPU')}, {device.get('date', '')[:10]}", "",
             "Made by `jobs/gpu_check.sh`; what did not run says so.", ""]
    lines += table(["", ""], [[key, value] for key, value in device.items() if value != ""])
    if product:
        lines += [f"Ceilings measured in this run: bf16 product {product / 1e12:.0f} TFLOP/s, copy of "
                  f"device memory {copy:.2f} TB/s (read + write).", ""]
    for title, kinds in (("Tests", ("test",)), ("Losses of whole trainings", ("losses", "trial"))):
        found = [p for p in parts if p["kind"] in kinds]
        if found:
            lines += [f"## {title}", ""]
            lines += table(["step", "result", "seconds", "detail"],
                           [[p["step"], p["status"] + (" (a trial: does not count)" if p["kind"] == "trial"
                             and p["status"] == "failed" else ""), p["seconds"], detail(p)] for p in found])
    if rows:
        lines += ["## Training, bf16, tokens/s", "", "Median of steps 11 to 30.", ""] + training_table(rows)
    if ops:
        lines += ["## Kernels", ""] + kernel_table(ops)
    others = [p for p in parts if p["kind"] not in ("test", "losses", "trial") and p["status"] != "passed"]
    if others:
        lines += ["## Not there", ""] + table(["step", "result", "detail"],
                                             [[p["step"], p["status"], detail(p)] for p in others])
    return "\n".join(lines)


def merge(args):
    parts = []
    for path in sorted(pathlib.Path(args.parts).glob("*.json"), key=lambda p: (p.stat().st_mtime_ns, p.name)):
        try:
            parts.append(json.loads(path.read_text()))
        except json.JSONDecodeError:
            print(f"gpu_report: {path} is half a file and left out", file=sys.stderr)
    ops = next((p["result"]["rows"] for p in parts if p["kind"] == "ops" and "rows" in p["result"]), [])
    rows = list(training_rows(parts, ceilings(ops)[0]))
    out = pathlib.Path(args.out)
    write_json(out / "results.json", {"training": rows, "parts": parts})
    (out / "results.md").write_text(page(parts, rows, ops))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("facts")
    command.add_argument("--json", required=True)
    command.set_defaults(run=facts)
    command = commands.add_parser("training")
    command.add_argument("log")
    command.add_argument("--model", required=True)
    command.add_argument("--json", required=True)
    command.add_argument("--first", type=int, default=11)
    command.add_argument("--last", type=int, default=30)
    command.set_defaults(run=training)
    command = commands.add_parser("part")
    command.add_argument("file")
    for name in ("step", "kind", "status"):
        command.add_argument("--" + name, required=True)
    command.add_argument("--seconds", type=int, default=0)
    for name in ("note", "result", "log"):
        command.add_argument("--" + name, default="")
    command.set_defaults(run=part)
    command = commands.add_parser("merge")
    command.add_argument("parts")
    command.add_argument("out")
    command.set_defaults(run=merge)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
