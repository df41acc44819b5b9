// Times of what the members of a group do together: the median of this rank's samples, of the
// slowest member. All members get the same number, so that they take the same decisions.
#pragma once
#include "comm/communicator.hpp"
#include "hetero/speed/sampler.hpp"

namespace t3d {

struct ProbeMachine;

class GroupTimer {
 public:
  /// `number`: [1,1] fp64 on the group's device.
  GroupTimer(const ProbeMachine& machine, Communicator& group, TensorView number)
      : machine_(machine), group_(group), number_(number) {}

  /// Of one call of `body`, which all members call; `calls` of them in each of the samples.
  [[nodiscard]] Sampled seconds(const std::function<void()>& body, int samples, int calls = 1);
  [[nodiscard]] double largest(double own);

 private:
  const ProbeMachine& machine_;
  Communicator& group_;
  TensorView number_;
};

}  // namespace t3d
