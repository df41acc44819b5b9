"""Fits of non-negative costs to times, and how they are judged. Needs numpy only.

A design has one row per measurement and one column per cost (bytes, flops, launches); a coefficient is the
seconds that one unit takes. All fits minimise the RELATIVE error.
"""
import numpy as np


def nnls(design, target):
    """argmin |design x - target| over x >= 0 (Lawson and Hanson's active sets)."""
    count = design.shape[1]
    x, free = np.zeros(count), np.zeros(count, bool)
    slope = design.T @ target
    tolerance = 1e-10 * max(np.abs(slope).max(), 1e-300)
    for _ in range(10 * count + 10):
        if free.all() or slope[~free].max() <= tolerance:
            break
        free[np.argmax(np.where(free, -np.inf, slope))] = True
        while free.any():
            trial = np.zeros(count)
            trial[free] = np.linalg.lstsq(design[:, free], target, rcond=None)[0]
            bad = free & (trial <= 0)
            if not bad.any():
                x = trial
                break
            step = (x[bad] / (x[bad] - trial[bad])).min()
            x = x + step * (trial - x)
            free &= x > 1e-14 * np.abs(x).max()
            x[~free] = 0
        slope = design.T @ (target - design @ x)
    return x


def fit(design, seconds, prior=None, spread=0.35, noise=0.07, threshold=0.05, least=None):
    """Coefficients >= 0 by iterated weights: squares below `threshold` of relative error, absolute values above.

    prior: expected coefficients, each with relative standard deviation `spread` where one row has `noise`;
    None: no expectation, and plain magnitudes as scale. least: lower bounds in place of 0, only with a prior.
    """
    relative = design / seconds[:, None]
    if prior is None:
        size = np.sqrt((relative**2).sum(0))
        scale, pull = np.where(size > 0, 1 / np.where(size > 0, size, 1), 0), np.zeros((0, design.shape[1]))
    else:
        scale, pull = np.asarray(prior, float), np.eye(design.shape[1]) * (noise / spread)
    relative = relative * scale
    low = np.zeros(design.shape[1]) if least is None else np.asarray(least) / scale
    above, pulled = 1 - relative @ low, pull.sum(1) - pull @ low
    weights, last = np.ones(len(seconds)), None
    for _ in range(50):
        root = np.sqrt(weights)
        x = low + nnls(np.vstack([relative * root[:, None], pull]), np.concatenate([root * above, pulled]))
        if last is not None and np.abs(x - last).max() <= 1e-7 * max(x.max(), 1e-300):
            break
        last = x
        weights = np.minimum(1, threshold / np.maximum(np.abs(relative @ x - 1), 1e-12))
    return x * scale


def posterior(design, seconds, prior, spread=0.35, noise=0.07):
    """Standard errors of the coefficients for independent rows; where no row says anything, `spread` of the prior."""
    relative = design / seconds[:, None] * prior
    return prior * np.sqrt(np.diag(np.linalg.inv(relative.T @ relative / noise**2 + np.eye(len(prior)) / spread**2)))


def left_out(design, seconds, keys, fitter, predict=np.matmul):
    """Predictions of every row by fits that have not seen the rows of the same key."""
    predicted = np.zeros(len(seconds))
    for key in dict.fromkeys(keys):
        out = np.array([k == key for k in keys])
        if out.all():
            return np.full(len(seconds), np.nan)
        predicted[out] = predict(design[out], fitter(design[~out], seconds[~out]))
    return predicted


def jackknife(design, seconds, keys, fitter):
    """Standard errors of the coefficients: the spread of fits that leave out one group of rows each."""
    found = []
    for key in dict.fromkeys(keys):
        out = np.array([k == key for k in keys])
        if not out.all():
            found.append(fitter(design[~out], seconds[~out]))
    if len(found) < 2:
        return np.full(design.shape[1], np.nan)
    found = np.array(found)
    return np.sqrt((len(found) - 1) / len(found) * ((found - found.mean(0))**2).sum(0))


def errors(predicted, seconds):
    """Relative errors in per cent, absolute."""
    return 100 * np.abs(predicted / seconds - 1)


def summary(predicted, seconds):
    """MAPE, median, p90, max in per cent."""
    e = errors(predicted, seconds)
    return e.mean(), np.median(e), np.percentile(e, 90), e.max()
