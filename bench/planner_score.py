#!/usr/bin/env python3
"""A closed-form step time beside published measurements (docs/results/planner-published.md). Needs numpy.

    bench/planner_score.py FILE.csv                     scores FILE with the coefficients in planner_score.json
    bench/planner_score.py FILE.csv --given GIVEN.csv   fits on GIVEN alone, scores FILE, and leaves parts of GIVEN out
    bench/planner_score.py FILE.csv --data DIR          the same, GIVEN = DIR/NAME.csv, by the kind of FILE
    bench/planner_score.py --fit GIVEN.csv...           fits on every GIVEN and writes planner_score.json

    --rows           also every row with its prediction
    --set NAME=X     another spread, power or threshold of the fit (planner_tables.py), with --given or --data
    --without COST   a formula without one of its costs, to see what it is worth, with --given or --data

FILE may hold rows that were fitted on and further ones (told apart by their cells), in any order of columns, with
cells missing that the formula does not need; rows without step_s are predicted only. Broken rows are answered with
FILE:LINE and left out; the exit status is then 65.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import sys
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402

import planner_fit
import planner_tables as tables
from planner_formula import Formula

STORE = pathlib.Path(__file__).with_suffix(".json")
NAMES = {"vtrain_multi_node": "vtrain_multi_node.csv", "vtrain_single_node": "vtrain_single_node.csv",
         "selene": "calculon_selene.csv", "sailor": "sailor_gh200.csv", "sailor_mixed": "sailor_heterogeneous.csv"}
MANY = 200  # rows; above, rows are left out in 20 random parts (seed 13), and no marks are stored
HEAD = f"{'':34}{'rows':>5} {'MAPE':>7} {'median':>7} {'p90':>7} {'max':>7}"


def seconds_of(rows):
    return np.array([row.step for row in rows])


def mark(row):
    return f"{zlib.crc32(row.mark.encode()):08x}"


def fold_keys(rows):
    """Name of the fold -> the key of every row."""
    order = list(range(len(rows)))
    if len(rows) > MANY:
        random.Random(13).shuffle(order)
        order = [i % 20 for i in order]
    return {"row": order, "(tp, dp, pp)": [row.shape for row in rows], "model": [row.model for row in rows],
            "number of GPUs": [row.gpus for row in rows], "tp": [row.tp for row in rows]}


def fit_kind(kind, rows):
    """What is stored of one kind: coefficients, standard errors, what was expected, marks of the rows."""
    formula, design, seconds = Formula(kind), tables.design(rows), seconds_of(rows)
    value = formula.fit(design, seconds)
    error = formula.standard_errors(design, seconds, [(row.model, row.shape) for row in rows])
    coefficients = {
        name: {"value": float(f"{v:.6g}"), "standard_error": float(f"{e:.3g}"), "expected": float(f"{p:.4g}")}
        for name, v, e, p in zip(tables.COSTS, value, error, formula.expected)}
    return {"rows": len(rows), "seconds_per": coefficients,
            "marks": [mark(row) for row in rows] if len(rows) <= MANY else None}


def read(path):
    """A table; says what is wrong with it on stderr."""
    try:
        kind, rows, faults, notes = tables.read_table(path)
    except OSError as fault:
        sys.exit(f"planner_score: {fault}")
    except (UnicodeDecodeError, csv.Error) as fault:
        sys.exit(f"planner_score: {path}: no text: {fault}")
    except ValueError as fault:
        sys.exit(f"planner_score: {fault}")
    for text in notes + faults:
        print(text, file=sys.stderr)
    return kind, rows, faults


def read_given(path, kind=None):
    found, rows, faults = read(path)
    rows = [row for row in rows if row.step is not None]
    if faults:
        sys.exit(f"planner_score: will not fit on {path}: it has broken rows")
    if kind not in (None, found):
        sys.exit(f"planner_score: {path} is a table of kind {found}, not {kind}")
    if len(rows) < 2:
        sys.exit(f"planner_score: {path} has {len(rows)} rows with a time; a fit needs 2")
    return found, rows


def print_line(name, predicted, seconds):
    if len(seconds):
        figures = " ".join(f"{v:6.2f}%" for v in planner_fit.summary(predicted, seconds))
        print(f"{name:34}{len(seconds):5} {figures}")


def print_left_out(kind, rows):
    """Leave-one-out of the given rows; returns the predictions with the row's (tp, dp, pp) left out."""
    formula, design, seconds = Formula(kind), tables.design(rows), seconds_of(rows)
    print_line("given, expected, nothing fitted", formula.predict(design, formula.expected), seconds)
    print_line("given, fitted on", formula.predict(design, formula.fit(design, seconds)), seconds)
    by_shape = None
    for name, keys in fold_keys(rows).items():
        predicted = formula.left_out(design, seconds, keys)
        if np.isnan(predicted).any():
            continue
        print_line(f"given, {name} left out", predicted, seconds)
        if name == "(tp, dp, pp)":
            by_shape = predicted
            known = np.array([any(o.tp == row.tp and o.shape != row.shape for o in rows) for row in rows])
            if not known.all():
                print_line("   of these, tp is in other rows", predicted[known], seconds[known])
    return by_shape


def print_regret(title, rows, predicted):
    """What choosing by prediction costs, among the measured plans of one model, number of GPUs and batch."""
    groups, lines, regrets = {}, [], []
    for row, value in zip(rows, predicted):
        groups.setdefault((row.model, row.gpus, row.global_batch), []).append((value, row))
    for (model, gpus, batch), plans in sorted(groups.items()):
        if len(plans) < 2:
            continue
        chosen, best = min(plans, key=lambda p: p[0])[1], min(plans, key=lambda p: p[1].step)[1]
        regrets.append(100 * (chosen.step / best.step - 1))
        lines.append(f"  {model:26} {gpus:5} GPUs, batch {batch:5}: {len(plans):3} plans, chosen {describe(chosen):18} "
                     f"{chosen.step:9.4f} s, best {best.step:9.4f} s, regret {regrets[-1]:5.2f}%")
    if regrets:
        print(f"regret, {title}: {len(regrets)} groups, mean {np.mean(regrets):.2f}%, "
              f"median {np.median(regrets):.2f}%, max {max(regrets):.2f}%")
        print("\n".join(lines) if len(lines) <= 20 else "  (more than 20 groups: not shown one by one)")


def describe(row):
    return f"{row.tp} x {row.dp} x {row.pp}, b {row.micro_batch}"


def print_rows(rows, predicted):
    print(f"{'line':>6}  {'model':26} {'tp x dp x pp, micro-batch':26} {'predicted s':>11} {'measured s':>11} error")
    for row, value in zip(rows, predicted):
        measured = f"{row.step:11.4f} {100 * (value / row.step - 1):+6.1f}%" if row.step else ""
        print(f"{row.line:6}  {row.model:26} {describe(row):26} {value:11.4f} {measured}")


def print_memory(rows):
    """Megatron's closed forms beside the memory columns, where a table has them."""
    worst = {}
    for row in rows:
        for name, want in tables.memory_of(row).items():
            have = row.memory[name]
            if have is not None:
                worst.setdefault(name, []).append(abs(have - want))
    for name, gaps in worst.items():
        print(f"memory, {name}: {len(gaps)} cells, largest difference from the closed form {max(gaps):.3g}")


def score(path, kind, rows, stored, given):
    coefficients = np.array([stored["seconds_per"][name]["value"] for name in tables.COSTS])
    marks = stored["marks"]
    timed = [row for row in rows if row.step is not None]
    new = [row for row in timed if marks is not None and mark(row) not in marks]
    old = [row for row in timed if marks is None or mark(row) in marks]
    print(f"{path}: kind {kind} ({tables.MACHINES[kind].name}), {len(timed)} rows with a time; coefficients of "
          f"{stored['rows']} given rows, {len(old) if marks is not None else 'unknown how many'} of them in this file")
    print(HEAD)
    predict = lambda some: Formula(kind).predict(tables.design(some), coefficients)  # noqa: E731
    print_line("NEW ROWS, never fitted on", predict(new), seconds_of(new))
    if marks is None:
        print_line("rows of this file", predict(old), seconds_of(old))
    held = given or (old if len(old) == stored["rows"] else None)
    by_shape = print_left_out(kind, held) if held else None
    print_regret("new rows", new, predict(new))
    if by_shape is not None:
        print_regret("given, (tp, dp, pp) left out", held, by_shape)
        if new:
            print_regret("new and given together", new + held, np.concatenate([predict(new), by_shape]))
    return coefficients


def change_machines(parser, options):
    if (options.set or options.without) and not (options.given or options.data):
        parser.error("--set and --without need --given or --data: what is stored was fitted without them")
    for machine in tables.MACHINES.values():
        machine.without = tuple(options.without)
        for text in options.set:
            name, _, value = text.partition("=")
            try:
                if name not in ("spread", "power", "threshold") or not float(value) > 0:
                    parser.error(f"--set {text}: one of spread, power, threshold = a positive number")
                setattr(machine, name, float(value))
            except ValueError:
                parser.error(f"--set {text}: {value!r} is not a number")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument("--given", metavar="GIVEN.csv")
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--store", type=pathlib.Path, default=STORE, help="instead of bench/planner_score.json")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=X")
    parser.add_argument("--without", action="append", default=[], choices=tables.COSTS, metavar="COST")
    options = parser.parse_args()
    change_machines(parser, options)
    store = json.loads(options.store.read_text()) if options.store.exists() else {}
    if options.fit:
        for path in options.files:
            kind, rows = read_given(path)
            store[kind] = fit_kind(kind, rows)
            print(f"{path}: {kind}, {len(rows)} rows")
        options.store.write_text(json.dumps(store, indent=1, sort_keys=True) + "\n")
        return 0
    broken = False
    for path in options.files:
        kind, rows, faults = read(path)
        broken |= bool(faults)
        given_path = options.given or (options.data and os.path.join(options.data, NAMES[kind]))
        given = read_given(given_path, kind)[1] if given_path else None
        stored = fit_kind(kind, given) if given else store.get(kind)
        if stored is None:
            sys.exit(f"planner_score: no coefficients for tables of kind {kind}: name rows to fit on with --given")
        coefficients = score(path, kind, rows, stored, given)
        print_memory(rows)
        if options.rows:
            print_rows(rows, Formula(kind).predict(tables.design(rows), coefficients))
        print()
    return 65 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
