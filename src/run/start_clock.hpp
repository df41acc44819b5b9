// How long a start takes, part by part, from the start of the process to the end of the first step.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "device/process_status.hpp"

namespace t3d {

class StartClock {
 public:
  /// All so far is the first part: the program is loaded, and its ranks have met.
  StartClock() { mark("MPI"); }
  /// The part that began at the mark before ends here. A name that comes again adds up.
  void mark(const char* part);
  /// One line: the sum, and all parts in their order.
  [[nodiscard]] std::string text() const;

 private:
  double last_ = 0;  // age of the process, in seconds
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace t3d
