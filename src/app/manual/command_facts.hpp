// The commands and options of the program as plain data, read from CLI11's: the manual page and the
// completions of shells are written from it. What may stand behind an option is taken from the
// value_name that --help shows: FILE, DIR, KEY, input.toml, auto|never|DIR.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace t3d {

struct ValueKind {
  std::vector<std::string> words;    // these, as they are
  std::vector<std::string> endings;  // files with these: "toml"
  bool file = false, folder = false;
  bool key = false, assignment = false;  // of the input: run.steps, run.steps=20
};

struct OptionFacts {
  std::vector<std::string> names;  // "-o", "--output"; none: a place on the command line
  std::string value_name;          // "" = a flag; of a place, its name
  std::string bounds;              // "[0 - 1]", "" = none
  std::string help;
  ValueKind value;
  bool required = false;
  bool repeats = false;  // a place that takes any number of words
  /// A word follows in any case. ("[RANKS]": perhaps.)
  [[nodiscard]] bool takes_word() const { return !value_name.empty() && value_name[0] != '['; }
};

struct CommandFacts {
  std::string name, help;
  std::vector<OptionFacts> options, places;
  std::vector<CommandFacts> commands;
};

/// Without hidden options.
[[nodiscard]] CommandFacts command_facts(const CLI::App& app);
[[nodiscard]] ValueKind value_kind(const std::string& value_name);

}  // namespace t3d
