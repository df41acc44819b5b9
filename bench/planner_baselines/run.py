#!/usr/bin/env python3
"""Published predictors beside ours, on their own data (docs/results/planner-published.md). Needs numpy.

    python3 bench/planner_baselines/run.py [--data DIR] [--further DIR]

DIR (default: ../shared/data beside the checkout) holds the tables; a table that is not there is left out, and said so.
--further: cmdare_speed.csv and cmdare_checkpoint.csv with rows never fitted on, in the same columns, scored too.
"""
import argparse
import os
import pathlib
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import numpy as np  # noqa: E402

import cmdare  # noqa: E402
import planner_fit  # noqa: E402
import planner_formula  # noqa: E402
import planner_score  # noqa: E402
import planner_tables  # noqa: E402
import srift  # noqa: E402
import weibull  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"


def percent(figures):
    return " ".join(f"{value:7.2f}%" for value in figures)


def heading(title, columns, width=40):
    print(f"\n{title}\n{'':{width}} " + " ".join(f"{name:>8}" for name in columns))


def speed(data, further):
    numbers = ("gpu_tflops", "model_flops", "parameters", "tensors", "steps_per_s")
    rows = cmdare.read(data / "cmdare_speed.csv", numbers)
    more = cmdare.read(further / "cmdare_speed.csv", numbers) if further else []
    columns = ["10-fold", "by model", "worst"] + (["further"] if more else [])
    alone, both = cmdare.speed_models()
    for gpu in dict.fromkeys(row["gpu"] for row in rows):
        own, new = ([row for row in some if row["gpu"] == gpu] for some in (rows, more))
        seconds = 1 / cmdare.column(own, "steps_per_s")
        models = len({row["model"] for row in own})
        heading(f"CM-DARE, step time of one {gpu} ({len(own)} rows, {models} models): MAPE", columns)
        for name, fitter in alone.items():
            extra = (new, 1 / cmdare.column(new, "steps_per_s")) if new else None
            print(f"{name:40} {percent(cmdare.judge(fitter, own, seconds, extra))}", flush=True)
    heading("CM-DARE, step time, both GPUs by one formula: MAPE", columns)
    seconds = 1 / cmdare.column(rows, "steps_per_s")
    for name, fitter in both.items():
        extra = (more, 1 / cmdare.column(more, "steps_per_s")) if more else None
        print(f"{name:40} {percent(cmdare.judge(fitter, rows, seconds, extra))}")


def checkpoints(data, further):
    numbers = ("total_s", "local_s", "size_mb", "weights_mb", "meta_mb", "index_kb", "graph_mb")
    rows = cmdare.read(data / "cmdare_checkpoint.csv", numbers)
    more = cmdare.read(further / "cmdare_checkpoint.csv", numbers) if further else []
    for part, title in (("total_s", "checkpoint time"), ("local_s", "local part of it")):
        heading(f"CM-DARE, {title} ({len(rows)} rows): MAPE",
                ["10-fold", "by model", "worst"] + (["further"] if more else []))
        for name, fitter in cmdare.checkpoint_models().items():
            extra = (more, cmdare.column(more, part)) if more else None
            print(f"{name:40} {percent(cmdare.judge(fitter, rows, cmdare.column(rows, part), extra))}")


def clusters(data):
    rows = cmdare.read(data / "cmdare_cluster_speed.csv",
                       ("parameter_servers", "workers", "log_median_steps_per_s"))
    models = {row["model"]: row for row in cmdare.read(data / "cmdare_speed.csv", ("parameters", "tensors"))}
    rows = [{**row, "tensors": models[row["model"]]["tensors"], "parameters": models[row["model"]]["parameters"]}
            for row in rows if row["model"] in models]
    cell = lambda row: (row["gpu"], row["parameter_servers"], row["model"])  # noqa: E731
    solo = {cell(row): 1 / row["log_median_steps_per_s"] for row in rows if row["workers"] == 1}
    rows = [row for row in rows if row["workers"] > 1]
    measured = cmdare.column(rows, "log_median_steps_per_s")
    summed = np.array([row["workers"] / solo[cell(row)] for row in rows])
    ours = np.zeros(len(rows))
    for model in dict.fromkeys(row["model"] for row in rows):
        out = np.array([row["model"] == model for row in rows])
        ours[out] = cmdare.cluster_predictions(
            [r for r, o in zip(rows, out) if o], [r for r, o in zip(rows, out) if not o], solo)[0]
    known, coefficients = cmdare.cluster_predictions(rows, rows, solo)
    heading(f"CM-DARE, speed of 2 to 8 workers ({len(rows)} cells, 4 models), from one worker's speed",
            ["MAPE", "median", "p90", "max"])
    flagged = measured < (1 - 0.067) * summed
    print(f"{'theirs: sum of workers':40} {percent(planner_fit.summary(summed, measured))}")
    print(f"{'   cells without a bottleneck':40} {percent(planner_fit.summary(summed[~flagged], measured[~flagged]))}")
    print(f"{'ours: queue at the servers, fitted on':40} {percent(planner_fit.summary(known, measured))}")
    print(f"{'ours: queue at the servers, by model':40} {percent(planner_fit.summary(ours, measured))}")
    print(f"their rule (6.7 % below the sum) flags {flagged.sum()} of {len(rows)} cells; ours: "
          f"{1e3 * coefficients[0]:.3f} ms per tensor and server, {1e3 * coefficients[1]:.2f} ms per 10^6 parameters")


def lifetimes(data):
    rows = cmdare.read(data / "cmdare_revocations.csv", ("servers", "hour", "revoked"))
    print("\nCM-DARE, lifetimes, right-censored at 24 h: Weibull; gain: log-likelihood over the exponential law")
    print(f"{'GPU':6} {'region':16} {'servers':>7} {'revoked':>7} {'shape':>7} {'scale h':>10} {'gain':>7}")
    for gpu in dict.fromkeys(row["gpu"] for row in rows):
        regions = dict.fromkeys(row["region"] for row in rows if row["gpu"] == gpu)
        for region in [None, *regions]:
            own = [row for row in rows if row["gpu"] == gpu and region in (None, row["region"])]
            lost = np.zeros(24)
            for row in own:
                lost[int(row["hour"]) - 1] += row["revoked"]
            servers = sum(row["servers"] for row in own if row["hour"] == 1)
            shape, scale, gain = weibull.fit(lost, servers)
            border = " (least shape tried)" if shape < 1.001 * weibull.SHAPES[0] else ""
            print(f"{gpu:6} {region or 'all':16} {servers:7.0f} {lost.sum():7.0f} "
                  f"{shape:7.3f} {scale:10.1f} {gain:+7.1f}{border}")


def startups(data):
    rows = cmdare.read(data / "cmdare_startup.csv", ("total_s",))
    print("\nCM-DARE, seconds until a server works: mean, standard deviation")
    kinds = dict.fromkeys((row["kind"], row["gpu"] or row["model"], row["market"]) for row in rows)
    for kind in kinds:
        own = cmdare.column([r for r in rows if (r["kind"], r["gpu"] or r["model"], r["market"]) == kind], "total_s")
        name = " ".join(part for part in kind if part)
        print(f"{name:40} {len(own):4} rows {own.mean():8.1f} {own.std(ddof=1):6.1f}")


def steps(data):
    kind, rows, _, _ = planner_tables.read_table(data / "vtrain_multi_node.csv")
    design, seconds = planner_tables.design(rows), planner_score.seconds_of(rows)
    heading(f"Srift's structure, our reconstruction, on vTrain's steps of many nodes ({len(rows)} rows)",
            ["MAPE", "median", "p90", "max"], 46)
    print(f"{'reconstruction: fitted on':46} {percent(planner_fit.summary(srift.Srift(rows).predict(rows), seconds))}")
    for name, keys in planner_score.fold_keys(rows).items():
        theirs = srift.left_out(rows, keys)
        ours = planner_formula.Formula(kind).left_out(design, seconds, keys)
        print(f"{'reconstruction: ' + name + ' left out':46} {percent(planner_fit.summary(theirs, seconds))}")
        print(f"{'ours:           ' + name + ' left out':46} {percent(planner_fit.summary(ours, seconds))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=DATA, metavar="DIR")
    parser.add_argument("--further", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    parts = {"cmdare_speed.csv": lambda: speed(options.data, options.further),
             "cmdare_checkpoint.csv": lambda: checkpoints(options.data, options.further),
             "cmdare_cluster_speed.csv": lambda: clusters(options.data),
             "cmdare_revocations.csv": lambda: lifetimes(options.data),
             "cmdare_startup.csv": lambda: startups(options.data),
             "vtrain_multi_node.csv": lambda: steps(options.data)}
    missing = [name for name in parts if not (options.data / name).exists()]
    for name, part in parts.items():
        if name not in missing:
            part()
    if missing:
        print(f"not in {options.data}: {', '.join(missing)}", file=sys.stderr)
    return 66 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
