// The keys of the input as words for the completions of shells.
#pragma once
#include <string>
#include <vector>

namespace t3d {

struct KeyWords {
  std::string name;                // "run.steps"
  std::vector<std::string> words;  // the allowed ones; none: a number, a text, a list
};

/// What --set takes.
[[nodiscard]] std::vector<KeyWords> settable_keys();
/// What --explain takes: tables and their keys.
[[nodiscard]] std::vector<std::string> explained_names();

}  // namespace t3d
