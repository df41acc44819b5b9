#include "train/step/interruption.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "core/phase_clock.hpp"

namespace t3d {
namespace {

constexpr int kIntervalBits = kRunFlags;  // behind the flags: the next interval, a power of two
constexpr index_t kMostPasses = index_t{1} << 20;

}  // namespace

Interruption::Interruption(Communicator& world, std::function<unsigned()> wishes, double seconds)
    : world_(world), wishes_(std::move(wishes)), seconds_(seconds), last_(PhaseClock::now()) {}

double Interruption::longest_seconds() const {
  return std::max(longest_, PhaseClock::now() - last_);
}

void Interruption::agree() {
  auto word = static_cast<std::int32_t>(wishes_() & kStopFlags);
  const double taken = PhaseClock::now() - last_;
  if (world_.rank() == 0) {
    // Not more than twice as many: the first pass may not be like the others.
    index_t next = std::min(2 * interval_, kMostPasses);
    while (next > 1 && taken * static_cast<double>(next) > seconds_ * static_cast<double>(passes_))
      next /= 2;
    const auto bits =
        static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(next) - 1));
    word |= bits << kIntervalBits;
  }
  world_.all_reduce({&word, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
  interval_ = index_t{1} << (word >> kIntervalBits);
  stop_ |= static_cast<unsigned>(word) & kStopFlags;
  longest_ = longest_seconds();
  last_ = PhaseClock::now();
  passes_ = 0;
  ++agreements_;
}

}  // namespace t3d
