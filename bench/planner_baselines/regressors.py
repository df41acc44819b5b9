"""Regressors that CM-DARE (Li, Walls, Guo, ICDCS 2020) uses, written anew. Needs numpy only.

Each fitter(x [rows, features], y [rows]) gives a function of x.
"""
import numpy as np


def linear(x, y):
    """Least squares with a constant."""
    solved = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
    return lambda at: np.column_stack([np.ones(len(at)), at]) @ solved


def polynomial_kernel(a, b):
    return (a @ b.T + 1)**2


def rbf_kernel(width):
    def kernel(a, b):
        return np.exp(-width * ((a[:, None, :] - b[None, :, :])**2).sum(2))
    return kernel


class Svr:
    """Support vector regression, epsilon-insensitive.

    max over -C <= beta <= C, sum beta = 0 of y beta - epsilon |beta| - beta K beta / 2, by sequential minimal
    optimization: the coefficient that breaks the conditions of the optimum most, and the one with which it gains most.
    """

    def __init__(self, kernel, c=100.0, epsilon=0.01, tolerance=1e-3, most=200_000):
        self.kernel, self.c, self.epsilon, self.tolerance, self.most = kernel, c, epsilon, tolerance, most

    def __call__(self, x, y):
        low, width = x.min(0), np.maximum(x.max(0) - x.min(0), 1e-300)  # features to 0..1, as the authors do
        points = (x - low) / width
        beta, bias = self.solve(self.kernel(points, points), y)
        return lambda at: self.kernel((at - low) / width, points) @ beta + bias

    def slopes(self, beta, gap):
        """What the objective gains per unit by which each beta grows, and by which it shrinks; gap = y - K beta."""
        up = np.where(beta < self.c, gap - np.where(beta < 0, -self.epsilon, self.epsilon), -np.inf)
        down = np.where(beta > -self.c, -gap + np.where(beta > 0, self.epsilon, -self.epsilon), -np.inf)
        return up, down

    def solve(self, kernel, y):
        beta, gap, own = np.zeros(len(y)), y.astype(float).copy(), np.diag(kernel)
        for _ in range(self.most):
            up, down = self.slopes(beta, gap)
            i = int(np.argmax(up))
            gain = up[i] + down
            if gain.max() < self.tolerance:
                break
            curves = np.maximum(own[i] + own - 2 * kernel[i], 1e-12)
            j = int(np.argmax(np.where(gain > 0, gain, 0)**2 / curves))
            # Along beta_i + t, beta_j - t the objective is quadratic up to the next bound or sign change.
            ends = [self.c - beta[i], beta[j] + self.c, gain[j] / curves[j]]
            ends += [-beta[i]] if beta[i] < 0 else []
            ends += [beta[j]] if beta[j] > 0 else []
            t = min(ends)
            beta[i] += t
            beta[j] -= t
            gap -= t * (kernel[:, i] - kernel[:, j])
        up, down = self.slopes(beta, gap)
        return beta, (up.max() - down.max()) / 2


def boosted(x, y, rounds=150, depth=2, rate=0.1, least=3):
    """Gradient-boosted regression trees for squared error."""
    base, trees, rest = y.mean(), [], y - y.mean()
    for _ in range(rounds):
        trees.append(tree(x, rest, depth, least))
        rest = rest - rate * trees[-1](x)
    return lambda at: base + rate * sum(t(at) for t in trees)


def tree(x, y, depth, least):
    """One regression tree: the split of one feature that leaves the smallest squares, depth times."""
    best = None
    if depth > 0 and len(y) >= 2 * least:
        for feature in range(x.shape[1]):
            order = np.argsort(x[:, feature], kind="stable")
            values, sums = x[order, feature], np.cumsum(y[order])
            count = np.arange(1, len(y))
            gain = sums[:-1]**2 / count + (sums[-1] - sums[:-1])**2 / (len(y) - count)
            usable = (values[1:] > values[:-1]) & (count >= least) & (len(y) - count >= least)
            if usable.any():
                at = int(np.argmax(np.where(usable, gain, -np.inf)))
                if best is None or gain[at] > best[0] + 1e-12:
                    best = gain[at], feature, (values[at] + values[at + 1]) / 2
    if best is None:
        mean = y.mean()
        return lambda at: np.full(len(at), mean)
    _, feature, border = best
    left = x[:, feature] < border
    low, high = (tree(x[side], y[side], depth - 1, least) for side in (left, ~left))
    return lambda at: np.where(at[:, feature] < border, low(at), high(at))
