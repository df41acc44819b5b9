// SampleLedger: which text every sample number means. Position n counts samples over the whole run;
// step t with B samples a step uses positions [t*B, (t+1)*B), dealt to replicas in any way. The
// sample behind a position is a pure function of (seed, n), so the order is the same for every
// mesh, every number of replicas and after every restart.
#pragma once
#include <cstdint>

#include "core/types.hpp"

namespace t3d {

class SampleLedger {
 public:
  /// Sample s is tokens [s*context, s*context + context] (one more than context: the last target).
  /// Error(config) when there is not a single one.
  SampleLedger(index_t tokens, index_t context, std::uint64_t seed, bool shuffle);

  [[nodiscard]] index_t samples() const { return samples_; }
  [[nodiscard]] index_t context() const { return context_; }
  [[nodiscard]] index_t epoch_of(index_t position) const { return position / samples_; }
  [[nodiscard]] index_t sample_at(index_t position) const;
  /// First token of the sample at `position`.
  [[nodiscard]] index_t first_token(index_t position) const {
    return sample_at(position) * context_;
  }

 private:
  index_t samples_ = 0, context_ = 0;
  std::uint64_t seed_ = 0;
  bool shuffle_ = true;
};

}  // namespace t3d
