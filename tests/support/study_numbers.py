#!/usr/bin/env python3
"""Recomputes the numbers of a scaling study from the logs of its runs, by itself, and compares.

    study_numbers.py DIR        DIR/scaling.csv, .json, .svg and .tex are of DIR/POINT/repeat-N/, and the rooflines in
                                scaling.json and DIR/roofline-POINT.svg of DIR/POINT/operators.json

Prints what differs and ends with 1.
"""
import csv
import json
import math
import pathlib
import statistics
import sys
import xml.etree.ElementTree


def known(values):
    return [v for v in values if v is not None and math.isfinite(v)]


def median(values):
    values = known(values)
    return statistics.median(values) if values else None


def figures_of(folder):
    """Of one run: medians over its steps behind the first fifth (at least two), and run.json's sums."""
    steps = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    warm_up = max(2, len(steps) // 5)
    timed = steps[warm_up:]
    record = json.loads((folder / "run.json").read_text())
    life = record["lives"][-1]
    end = life["end"]
    bytes_of = lambda by_axis: sum(b for axis, b in by_axis.items() if axis != "checkpoint") / end["steps"]
    figures = {key: median([step.get(key) for step in timed]) for key in ("comm_fraction", "imbalance")}
    figures |= {
        "seconds": median([step["seconds"] for step in timed]),
        "tokens": timed[-1]["tokens"],
        "mfu_of_measured_rate": median([step.get("mfu") for step in timed]),
        "mfu_of_vendor_peak": median([step.get("mfu_of_peak") for step in timed]),
        "planned_step_seconds": median([step.get("predicted_seconds") for step in timed]),
        "counted_bytes": bytes_of(end["counted_bytes"]),
        "predicted_bytes": bytes_of(end["predicted_bytes"]),
        "tensor_bytes": end["tensor_bytes"],
        "resident_bytes": end["resident_bytes"],
        "joules_per_step": None if end["cpu_joules"] is None else
        (end["cpu_joules"] + (end["gpu_joules"] or 0)) / end["energy_steps"],
        "ranks": record["ranks"][life["ranks"]]["count"],
        "marks": [name for name, is_so in (("shared cores", life["shared_cores"]), ("emulated", life["emulated"])) if is_so],
    }
    # Of rank 0: what log.jsonl counts is never more than what all ranks sent.
    own = median([sum(b for axis, b in step["bytes_by_axis"].items() if axis != "checkpoint") for step in timed])
    assert own <= figures["counted_bytes"], (folder, own)
    return figures


def points_of(study):
    points = {}
    for run in sorted(study.glob("*/repeat-*/exit.json")):
        if run.parent.name.count(".") == 0 and json.loads(run.read_text())["code"] == 0:
            points.setdefault(run.parent.parent.name, []).append(figures_of(run.parent))
    return points


def expected(runs, base):
    seconds = [run["seconds"] for run in runs]
    rates = [run["tokens"] / run["seconds"] for run in runs]
    ranks = runs[0]["ranks"]
    row = {"ranks": ranks, "repeats": len(runs), "step_seconds": median(seconds), "step_seconds_least": min(seconds),
           "step_seconds_most": max(seconds), "tokens_per_second": median(rates)}
    base_ranks, base_rate = base
    row |= {"speed_up": base_ranks * median(rates) / base_rate, "speed_up_least": base_ranks * min(rates) / base_rate,
            "speed_up_most": base_ranks * max(rates) / base_rate,
            "efficiency": base_ranks * median(rates) / base_rate / ranks}
    for key in ("comm_fraction", "imbalance", "counted_bytes", "predicted_bytes", "mfu_of_measured_rate",
                "mfu_of_vendor_peak", "tensor_bytes", "resident_bytes", "joules_per_step", "planned_step_seconds"):
        row[key] = median([run[key] for run in runs])
    row["marks"] = ", ".join(runs[0]["marks"])
    return row


def differs(found, wanted):
    if wanted is None:
        return found not in ("", None)
    if isinstance(wanted, str):
        return found != wanted
    return found in ("", None) or abs(float(found) - wanted) > 1e-8 * max(1e-12, abs(wanted))


def product_counts(shape, number_format):
    """Flops of C[m, n] = A[m, k] B[k, n], and bytes of its operands; with A transposed C is added to, in fp32."""
    m, n, k, adds, _ = shape
    size = 2 if number_format in ("bf16", "fp16") else 4
    return 2 * m * n * k, size * (m * k + k * n) + (8 * m * n if adds else size * m * n)


def roofline_faults(study, points, rooflines, missing):
    faults = []
    for picture in study.glob("*.svg"):
        xml.etree.ElementTree.parse(picture)  # browsers are lenient, others are not
    by_name = {roofline["name"]: roofline for roofline in rooflines}
    for name in points:
        measured = study / name / "operators.json"
        if not measured.exists():
            if name in by_name or not any(f"of {name}:" in reason for reason in missing):
                faults.append(f"{name} has no operators.json, and that is not said")
            continue
        of_file, roofline = json.loads(measured.read_text()), by_name[name]
        picture = (study / f"roofline-{name}.svg").read_text()
        if of_file["operators"] != roofline["operators"]:
            faults.append(f"{name}: operators in scaling.json are not those of operators.json")
        best = 0
        for one in of_file["operators"]:
            if one["kind"] != "matmul":
                continue
            flops, size = product_counts(one["shape"], of_file["number_format"])
            if differs(one["flops"], flops) or differs(one["bytes"], size):
                faults.append(f"{name}: flops or bytes of {one}")
            best = max(best, flops / one["seconds"])
            if f"{flops / one['seconds'] / 1e9:.3g}</text>" not in picture:
                faults.append(f"{name}: the rate of {one} is not in the picture")
        if best == 0 or roofline["matmul_flops_per_second"] < best * (1 - 1e-9):
            faults.append(f"{name}: a product is faster than the roof")
        plans = [json.loads(run.read_text())["lives"][-1]["plan"] for run in (study / name).glob("repeat-*/run.json")]
        if of_file["plan"] not in plans:
            faults.append(f"{name}: its operators are of plan {of_file['plan']}, its runs of {plans}")
    return faults


def main():
    study = pathlib.Path(sys.argv[1])
    points = points_of(study)
    plan = json.loads((study / "study.json").read_text())["points"]
    with_runs = [(point["ranks"], median([run["tokens"] / run["seconds"] for run in points[point["name"]]]))
                 for point in plan if point["name"] in points]
    base = min(with_runs, key=lambda point: (point[0], -point[1]))
    rows = list(csv.DictReader((study / "scaling.csv").open(newline="")))
    whole = json.loads((study / "scaling.json").read_text())
    of_json = whole["points"]
    picture, latex = (study / "scaling.svg").read_text(), (study / "scaling.tex").read_text()
    faults = []
    if [int(row["ranks"]) for row in rows] != [point["ranks"] for point in plan] or len(of_json) != len(plan):
        faults.append(f"points: {rows}")
    for row, point, planned in zip(rows, of_json, plan):
        if planned["name"] not in points:
            if row["marks"] != "missing" or row["step_seconds"] or not point["missing"] or "missing" not in picture:
                faults.append(f"{planned['name']} is not said to be missing: {row}")
            continue
        wanted = expected(points[planned["name"]], base)
        for key, value in wanted.items():
            for source in (row, point):
                if key == "marks" and source is point:
                    continue
                if differs(source[key], value):
                    faults.append(f"{planned['name']} {key}: {source[key]} instead of {value}")
        if wanted["counted_bytes"] != wanted["predicted_bytes"]:
            faults.append(f"{planned['name']}: bytes counted and predicted differ")
        for text in (picture, latex):
            if f"{1e3 * wanted['step_seconds']:.4g}" not in text or f"{wanted['speed_up']:.2f}" not in text:
                faults.append(f"{planned['name']} is not as in the table in the picture or in LaTeX")
    faults += roofline_faults(study, points, whole["rooflines"], whole["no_rooflines"])
    print("\n".join(faults) if faults else f"{len(points)} of {len(plan)} points recomputed")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
