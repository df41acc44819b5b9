// The update rules on whole tensors, in fp64 and as plainly as the papers say them: what sharded
// optimizers must equal.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/options.hpp"

namespace t3d::test {

// A rectangular matrix of doubles, and no more than the test needs of it.
struct Dense {
  index_t rows = 0, cols = 0;
  std::vector<double> values;
  double& at(index_t r, index_t c) { return values[static_cast<std::size_t>(r * cols + c)]; }
  [[nodiscard]] double at(index_t r, index_t c) const {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  static Dense zeros(index_t rows, index_t cols) {
    return {rows, cols, std::vector<double>(static_cast<std::size_t>(rows * cols), 0)};
  }
};

inline Dense product(const Dense& a, const Dense& b) {
  Dense c = Dense::zeros(a.rows, b.cols);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t k = 0; k < a.cols; ++k)
      for (index_t j = 0; j < b.cols; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

inline Dense transposed(const Dense& a) {
  Dense t = Dense::zeros(a.cols, a.rows);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) t.at(j, i) = a.at(i, j);
  return t;
}

inline double norm_of(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// As in the paper: X = X / |X|, tall ones transposed, X = a X + (b A + c A A) X.
inline Dense orthogonalised(Dense x, index_t steps) {
  if (x.rows > x.cols) return transposed(orthogonalised(transposed(x), steps));
  const double norm = norm_of(x.values);
  for (double& value : x.values) value /= norm > 0 ? norm : 1;
  for (index_t step = 0; step < steps; ++step) {
    const Dense a = product(x, transposed(x));
    Dense polynomial = product(a, a);
    for (std::size_t at = 0; at < a.values.size(); ++at)
      polynomial.values[at] = -4.7750 * a.values[at] + 2.0315 * polynomial.values[at];
    Dense next = product(polynomial, x);
    for (std::size_t at = 0; at < x.values.size(); ++at) next.values[at] += 3.4445 * x.values[at];
    x = std::move(next);
  }
  return x;
}

// One tensor and its state, whole.
struct Parameter {
  std::string name;
  index_t rows = 0, cols = 0;
  bool decays = false;
  Dense w, m, v;
};

// What one step does to a parameter; g is scaled already and lr has its gain.
using DenseRule = std::function<void(const OptimizerConfig&, index_t step, double lr,
                                     const std::vector<double>& g, Parameter&)>;

inline std::vector<double> dense_adam_direction(const OptimizerConfig& o, index_t step,
                                                const std::vector<double>& g, Parameter& p) {
  std::vector<double> direction;
  const auto t = static_cast<double>(step);
  for (std::size_t at = 0; at < g.size(); ++at) {
    double &m = p.m.values[at], &v = p.v.values[at];
    m = o.beta1 * m + (1 - o.beta1) * g[at];
    v = o.beta2 * v + (1 - o.beta2) * g[at] * g[at];
    direction.push_back(m / (1 - std::pow(o.beta1, t)) /
                            (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.eps) +
                        (p.decays ? o.weight_decay * p.w.values[at] : 0));
  }
  return direction;
}

inline void subtract(Parameter& p, double factor, const std::vector<double>& direction) {
  for (std::size_t at = 0; at < direction.size(); ++at) p.w.values[at] -= factor * direction[at];
}

inline void dense_adamw(const OptimizerConfig& o, index_t step, double lr,
                        const std::vector<double>& g, Parameter& p) {
  subtract(p, lr, dense_adam_direction(o, step, g, p));
}

inline void dense_lamb(const OptimizerConfig& o, index_t step, double lr,
                       const std::vector<double>& g, Parameter& p) {
  const double before = norm_of(p.w.values);
  const std::vector<double> r = dense_adam_direction(o, step, g, p);
  const bool trusted = p.decays && before > 0 && norm_of(r) > 0;
  subtract(p, lr * (trusted ? before / norm_of(r) : 1), r);
}

inline void dense_sgd(const OptimizerConfig& o, index_t, double lr, const std::vector<double>& g,
                      Parameter& p) {
  const double mu = o.momentum < 0 ? 0.9 : o.momentum;
  for (std::size_t at = 0; at < g.size(); ++at) {
    const double full = g[at] + (p.decays ? o.weight_decay * p.w.values[at] : 0);
    double& v = p.v.values[at];
    v = mu * v + full;
    p.w.values[at] -= lr * (o.nesterov ? full + mu * v : v);
  }
}

inline void dense_muon(const OptimizerConfig& o, index_t step, double lr,
                       const std::vector<double>& g, Parameter& p) {
  if (!p.decays || p.name == "wte.weight" || p.name == "wpe.weight" || p.name == "head.weight") {
    dense_adamw(o, step, lr * o.adamw_lr / o.lr, g, p);
    return;
  }
  const double mu = o.momentum < 0 ? 0.95 : o.momentum;
  Dense x = p.m;
  for (std::size_t at = 0; at < g.size(); ++at) {
    double& m = p.m.values[at];
    m = mu * m + (1 - mu) * g[at];
    x.values[at] = o.nesterov ? mu * m + (1 - mu) * g[at] : m;
  }
  const auto rows = static_cast<double>(p.rows), cols = static_cast<double>(p.cols);
  const double scale = o.muon_scale == MuonScale::rms ? 0.2 * std::sqrt(std::max(rows, cols))
                                                      : std::sqrt(std::max(1.0, rows / cols));
  Dense u = orthogonalised(std::move(x), o.newton_schulz_steps);
  for (std::size_t at = 0; at < g.size(); ++at)
    p.w.values[at] = p.w.values[at] * (1 - lr * o.weight_decay) - lr * scale * u.values[at];
}

}  // namespace t3d::test
