// A trial of engines: all of them do the same call; those whose result differs from the judge's are
// out, the fastest of the others wins. The call's own output is not harmed where it is also input
// (accumulation): then the trial works on copies.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "ops/cuda/engine_choice.hpp"

namespace t3d::cuda {

struct Contender {
  std::string_view name;
  bool eligible = true;  // may be chosen; the judge need not be
  std::function<void(const std::vector<TensorView>& outputs)> run;
};

struct EngineTrial {
  std::string key;
  std::vector<TensorView> outputs;  // what the call writes
  bool reads_output = false;
  double tolerance = 0;  // relative error in the Frobenius norm
  std::vector<Contender> contenders;
  std::size_t judge = 0;
};

struct Verdict {
  std::size_t winner = 0;
  std::vector<EngineTiming> timings;
  std::vector<std::string> notes;  // who was dropped, and why
};

/// True while the queue's work is recorded as a graph instead of done: nothing can be timed then.
[[nodiscard]] bool is_recording(Queue& queue);
/// Microseconds that `work` takes on the queue: the shortest of three runs.
[[nodiscard]] double microseconds_of(Queue& queue, const std::function<void()>& work);

/// Runs the trial; not in a recording. Waits for the queue.
[[nodiscard]] Verdict hold_trial(Device& device, Queue& queue, const EngineTrial& trial);

/// engine_compare.cu: |x - y| / |y| over all elements (Frobenius norm); infinite where one has a
/// finite number and the other has not. Waits for the queue.
[[nodiscard]] double relative_error(Device& device, Queue& queue, ConstTensorView x,
                                    ConstTensorView y);

}  // namespace t3d::cuda
