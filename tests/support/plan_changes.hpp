// Trainings that take other plans in the middle, ranks as threads: the losses, whether all state is
// the same to the bit before and after each change, and where counted and predicted bytes differ.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>

#include "support/plan_rig.hpp"

namespace t3d::test {

/// Global tensors of weights and optimizer state by name, as the bits of the checkpoint's parts;
/// and from which replicas they came, as they must not differ.
class GlobalState {
 public:
  void add(const std::vector<TensorPart>& parts, Remarks& remarks) {
    const std::lock_guard lock(mutex_);
    for (const TensorPart& part : parts) {
      auto& elements = tensors_[part.name];
      elements.resize(static_cast<std::size_t>(part.rows * part.cols), kMissing);
      const auto size = static_cast<std::size_t>(size_of(part.dtype));
      for (const auto& [box, offset] : part.boxes)
        for (index_t row = 0; row < box.rows; ++row)
          for (index_t col = 0; col < box.cols; ++col) {
            std::uint64_t bits = 0;
            const auto at = static_cast<std::size_t>(offset + row * box.cols + col);
            std::memcpy(&bits, static_cast<const char*>(part.data) + at * size, size);
            auto& element =
                elements[static_cast<std::size_t>((box.row0 + row) * part.cols + box.col0 + col)];
            if (element != kMissing && element != bits)
              remarks.add(part.name + " differs between replicas");
            element = bits;
          }
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& at(const std::string& name) const {
    return tensors_.at(name);
  }
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  [[nodiscard]] std::size_t size() const { return tensors_.size(); }
  [[nodiscard]] bool complete() const {
    return std::all_of(tensors_.begin(), tensors_.end(), [](const auto& tensor) {
      return std::count(tensor.second.begin(), tensor.second.end(), kMissing) == 0;
    });
  }
  /// The names of tensors that differ, or that one of the two lacks.
  [[nodiscard]] std::string difference(const GlobalState& other) const {
    std::string names;
    for (const auto& [name, elements] : tensors_)
      if (!other.has(name) || other.at(name) != elements) names += name + " ";
    for (const auto& [name, elements] : other.tensors_)
      if (!has(name)) names += name + " ";
    return names;
  }

 private:
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};  // no number of ours has these bits
  std::mutex mutex_;
  std::map<std::string, std::vector<std::uint64_t>> tensors_;
};

/// A run of `steps`, and the plans that it takes after some of them.
struct Changes {
  Config config;
  Plan start;
  std::map<index_t, Plan> after;
  index_t steps = 8;
};

struct RunOutcome {
  std::vector<double> losses;
  std::string state;  // what differs between before and after a change
  std::string bytes;  // where counted and predicted bytes differ
  std::vector<std::string> reset;
  GlobalState last;
};

inline void run(const Changes& changes, RunOutcome& outcome) {
  Remarks state, bytes;
  std::map<index_t, GlobalState> before, after;
  for (const auto& [step, plan] : changes.after) {
    before[step];
    after[step];
  }
  with_trainer(changes.start, changes.config, [&](Communicator& world, Machine&, Trainer& trainer) {
    const auto compare = [&](const char* what, const Ledger& predicted) {
      const std::string text = difference(world.ledger(), predicted);
      if (!text.empty()) bytes.add(fmt::format("rank {} {}: {}", world.rank(), what, text));
    };
    while (trainer.progress().steps < changes.steps) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      compare("step", trainer.predicted_step());
      if (world.rank() == 0) outcome.losses.push_back(report.loss);
      const auto change = changes.after.find(trainer.progress().steps);
      if (change == changes.after.end()) continue;
      before.at(change->first).add(trainer.parts(), state);
      world.ledger().clear();
      const ReshapeReport done = trainer.reshape(change->second);
      compare("change", done.predicted);
      if (world.rank() == 0) outcome.reset = done.reset;
      after.at(change->first).add(trainer.parts(), state);
    }
    outcome.last.add(trainer.parts(), state);
  });
  outcome.state = state.all();
  outcome.bytes = bytes.all();
  for (const auto& [step, state_before] : before) {
    if (!state_before.complete() || !after.at(step).complete())
      outcome.state += fmt::format("not everything is held at step {}\n", step);
    outcome.state += state_before.difference(after.at(step));
  }
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at)
    most = std::max(most, std::abs(a[at] - b[at]) / std::abs(b[at]));
  return most;
}

}  // namespace t3d::test
