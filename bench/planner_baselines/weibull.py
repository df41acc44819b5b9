"""Lifetimes of preemptible servers: Weibull fits of counts per hour, the survivors right-censored. Needs numpy only.

Share alive at age t hours: exp(-(t / scale)^shape). Shape 1 is the exponential law; below 1, the hazard falls with age.
"""
import numpy as np

SHAPES = 0.05, 20.0  # the range that is searched


def log_likelihood(shape, scale, revoked, servers):
    """revoked[k]: servers lost in hour k + 1 of their life; the others are alive after the last hour."""
    alive = np.exp(-(np.arange(len(revoked) + 1) / scale)**shape)
    lost = np.maximum(alive[:-1] - alive[1:], 1e-300)
    return revoked @ np.log(lost) + (servers - revoked.sum()) * np.log(max(alive[-1], 1e-300))


def climb(function, low, high):
    """The maximum of a function with one summit, by golden sections."""
    ratio = (np.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    while high - low > 1e-7:
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
    return (low + high) / 2


def best_scale(shape, revoked, servers):
    return np.exp(climb(lambda s: log_likelihood(shape, np.exp(s), revoked, servers), -5.0, 25.0))


def fit(revoked, servers):
    """(shape, scale in hours, log-likelihood gain over the exponential law)."""
    def profile(log_shape):
        shape = np.exp(log_shape)
        return log_likelihood(shape, best_scale(shape, revoked, servers), revoked, servers)

    shape = np.exp(climb(profile, *np.log(SHAPES)))
    scale = best_scale(shape, revoked, servers)
    alone = log_likelihood(1.0, best_scale(1.0, revoked, servers), revoked, servers)
    return shape, scale, log_likelihood(shape, scale, revoked, servers) - alone
