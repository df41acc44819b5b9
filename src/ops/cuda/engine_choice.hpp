// Which engine does what, and the file in which that is kept between runs: a header line that names
// the device, the versions of driver and libraries and the options, then one line per choice. A
// file with another header is as good as none: its timings were made elsewhere.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace t3d::cuda {

struct EngineTiming {
  std::string engine;
  double microseconds = 0;
};

class EngineChoices {
 public:
  /// `header` is one line without tabs.
  explicit EngineChoices(std::string header) : header_(std::move(header)) {}

  /// The engine for `key`; nullptr where nobody has chosen.
  [[nodiscard]] const std::string* find(const std::string& key) const;
  /// Without timings (there was no choice) it is in the table, but not in the file.
  void put(const std::string& key, std::string engine, std::vector<EngineTiming> timings);

  /// Adds the file's choices. Missing file, other header: nothing. False where there is a file
  /// that cannot be read, or whose header is right and the rest is not.
  bool load(const std::string& path);
  /// Replaces the file at once (written beside it, then renamed). Throws Error(io).
  void save(const std::string& path) const;
  /// For people: one line per choice.
  [[nodiscard]] std::string table() const;

 private:
  struct Choice {
    std::string engine;
    std::vector<EngineTiming> timings;
  };
  std::string header_;
  std::map<std::string, Choice> choices_;
};

}  // namespace t3d::cuda
