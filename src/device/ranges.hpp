// Ranges: what the host is doing, by name, on the timeline of a profiler (NVTX, for Nsight
// Systems). A device has none where no profiler looks at this process; then a NamedRange costs a
// branch.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace t3d {

/// Of one thread; they nest.
class Ranges {
 public:
  virtual ~Ranges() = default;
  virtual void begin(const std::string& name) = 0;
  virtual void end() = 0;
};

class NamedRange {
 public:
  /// "what which"; no `ranges`: nothing.
  template <class Which>
  NamedRange(Ranges* ranges, std::string_view what, const Which& which) : ranges_(ranges) {
    if (ranges_ != nullptr) ranges_->begin(fmt::format("{} {}", what, which));
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
  ~NamedRange() {
    if (ranges_ != nullptr) ranges_->end();
  }

 private:
  Ranges* ranges_;
};

}  // namespace t3d
