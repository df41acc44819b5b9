"""CM-DARE's data and models of it: worker speed, checkpoint time, cluster speed. Needs numpy only.

CM-DARE: Li, Walls, Guo, ICDCS 2020. Its tables are not part of this repository (docs/results/planner-published.md).
"""
import csv
import pathlib
import random
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import planner_fit  # noqa: E402
from regressors import Svr, linear, polynomial_kernel, rbf_kernel  # noqa: E402

SEED = 13


def read(path, numbers):
    """Rows of a table; the columns `numbers` as floats. A broken row ends the program with FILE:LINE."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader, rows = csv.DictReader(file), []
        for cells in reader:
            try:
                rows.append({**cells, **{name: float(cells[name]) for name in numbers}})
            except (KeyError, TypeError, ValueError) as fault:
                sys.exit(f"{path}:{reader.line_num}: {fault}")
    return rows


def column(rows, name):
    return np.array([row[name] for row in rows])


def physical(*costs):
    """Non-negative coefficients of the costs (functions of a row), least squares of the relative error."""
    def fitter(rows, seconds):
        design = np.array([[cost(row) for cost in costs] for row in rows], float)
        found = planner_fit.fit(design, seconds, threshold=np.inf)
        return lambda some: np.array([[cost(row) for cost in costs] for row in some], float) @ found
    return fitter


def learned(fitter, *features):
    """A regressor of absolute error on columns of the table or functions of a row."""
    def values(rows):
        return np.array([[f(row) if callable(f) else row[f] for f in features] for row in rows], float)

    def on_rows(rows, seconds):
        model = fitter(values(rows), seconds)
        return lambda some: model(values(some))
    return on_rows


def speed_models():
    one, gflop = (lambda r: 1.0), (lambda r: r["model_flops"] / 1e9)
    tensors, peak = (lambda r: r["tensors"]), (lambda r: r["gpu_tflops"])
    root = (lambda r: gflop(r)**0.5)
    alone = {
        "theirs: linear in FLOPs": learned(linear, "model_flops"),
        "theirs: SVR, polynomial of degree 2": learned(Svr(polynomial_kernel), "model_flops"),
        "theirs: SVR, RBF, width 1": learned(Svr(rbf_kernel(1.0)), "model_flops"),
        "theirs: SVR, RBF, width 12": learned(Svr(rbf_kernel(12.0)), "model_flops"),
        "ours: 1, FLOPs": physical(one, gflop),
        "ours: 1, FLOPs, tensors": physical(one, gflop, tensors),
        "ours: FLOPs, tensors, root of FLOPs": physical(gflop, tensors, root),
    }
    both = {
        "theirs: linear in FLOPs / GPU FLOPS": learned(linear, lambda r: gflop(r) / peak(r)),
        "theirs: linear in FLOPs, GPU FLOPS": learned(linear, "model_flops", "gpu_tflops"),
        "ours: 1, FLOPs, root, tensors, by GPU": physical(
            one, lambda r: gflop(r) / peak(r), lambda r: root(r) / peak(r), lambda r: tensors(r) / peak(r), tensors),
    }
    return alone, both


def checkpoint_models():
    one = (lambda r: 1.0)
    return {
        "theirs: linear in size": learned(linear, "size_mb"),
        "theirs: linear in weights, meta": learned(linear, "weights_mb", "meta_mb"),
        "theirs: SVR, RBF, width 1, in size": learned(Svr(rbf_kernel(1.0)), "size_mb"),
        "ours: 1, weights": physical(one, lambda r: r["weights_mb"]),
        "ours: 1, weights, meta": physical(one, lambda r: r["weights_mb"], lambda r: r["meta_mb"]),
    }


def left_out(fitter, rows, seconds, keys):
    predicted = np.zeros(len(rows))
    for key in dict.fromkeys(keys):
        rest = [i for i, k in enumerate(keys) if k != key]
        out = [i for i, k in enumerate(keys) if k == key]
        model = fitter([rows[i] for i in rest], seconds[rest])
        predicted[out] = model([rows[i] for i in out])
    return predicted


def random_folds(count, folds=10):
    order = list(range(count))
    random.Random(SEED).shuffle(order)
    fold = [0] * count
    for place, row in enumerate(order):
        fold[row] = place % folds
    return fold


def judge(fitter, rows, seconds, further=None):
    """MAPE in %: random folds of rows; leave-one-model-out; its worst model; rows of `further`, if there are any."""
    models = [row["model"] for row in rows]
    by_row = planner_fit.errors(left_out(fitter, rows, seconds, random_folds(len(rows))), seconds)
    by_model = planner_fit.errors(left_out(fitter, rows, seconds, models), seconds)
    worst = max(by_model[[m == model for m in models]].mean() for model in models)
    figures = [by_row.mean(), by_model.mean(), worst]
    if further:
        figures.append(planner_fit.errors(fitter(rows, seconds)(further[0]), further[1]).mean())
    return figures


def speed_of_cluster(workers, own, service):
    """Steps per second of workers that compute `own` seconds, then queue for `service` seconds (mean values)."""
    waiting = 0.0
    for count in range(1, workers + 1):
        response = service * (1 + waiting)
        speed = count / (own + response)
        waiting = speed * response
    return speed


def service_of(row, per_tensor, per_million):
    """Seconds that one step keeps the parameter servers busy: tensors are shared out among them, bytes gain nothing."""
    return per_tensor * row["tensors"] / row["parameter_servers"] + per_million * row["parameters"] / 1e6


def cluster_predictions(rows, given, solo):
    """Our speeds of `rows`, and the two coefficients, fitted on `given`.

    solo: seconds per step of one worker alone, by (gpu, servers, model).
    """
    def predict(some, coefficients):
        out = []
        for row in some:
            service = service_of(row, *coefficients)
            alone = solo[row["gpu"], row["parameter_servers"], row["model"]]
            out.append(speed_of_cluster(int(row["workers"]), max(alone - service, 0.0), service))
        return np.array(out)

    measured = column(given, "log_median_steps_per_s")
    best, step = np.log([1e-4, 5e-3]), 1.0  # search along the axes, in logarithms
    error = planner_fit.errors(predict(given, np.exp(best)), measured).mean()
    while step > 0.005:
        moves = [best + step * np.array(move) for move in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))]
        errors = [planner_fit.errors(predict(given, np.exp(move)), measured).mean() for move in moves]
        if min(errors) < error:
            best, error = moves[int(np.argmin(errors))], min(errors)
        else:
            step /= 2
    return predict(rows, np.exp(best)), np.exp(best)
