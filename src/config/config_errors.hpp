// Faults of the input: collected, put in the order of the file, thrown together once.
#pragma once
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

/// A place in the input file, or (line 0) a source without lines such as "--set model.heads".
struct Where {
  std::string source;
  index_t line = 0, column = 0;
  [[nodiscard]] std::string text() const;
};

struct Fault {
  Where where;
  std::string what, hint;                  // hint may be empty
  [[nodiscard]] std::string text() const;  // "file:line:col: what; hint"
};

/// All faults of an input, one per line of what() for the first of them; the exit code is
/// ExitCode::config.
class ConfigErrors : public Error {
 public:
  static constexpr std::size_t kShown = 50;  // lines of what(); then how many more there are

  explicit ConfigErrors(std::vector<Fault> faults);
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

}  // namespace t3d
