#include "app/cli/command_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace t3d {

void add_overrides(CLI::App& app, CommandLine& line) {
  app.add_option("--set", line.overrides,
                 "sets a key of the input; wins over the file; one key for each --set")
      ->allow_extra_args(false)
      ->option_text("table.key=value");
}

std::string integer_fault(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (reason == std::errc{} && end == word.data() + word.size()) return "";
  return fmt::format("{} is not an integer from -2^63 to 2^63 - 1", word);
}

}  // namespace t3d
