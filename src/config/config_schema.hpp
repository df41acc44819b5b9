// The table of all input keys. Parsing, checks, --defaults, --explain, docs/02-input.md and
// resolved.toml are derived from it: a new key is one line in config_schema.cpp.
#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/toml_input.hpp"

namespace t3d {

/// A choice (core/words.hpp) as its word.
struct WordSlot {
  std::function<void(std::string_view)> set;  // only words of the list
  std::function<std::string_view()> get;
};

/// "auto" or an integer.
struct CountSlot {
  index_t* count;
  bool* automatic;
};

/// Rows of numbers: [[1, 2.5], [2, 3]].
using NumberRows = std::vector<std::vector<double>>;

/// Where a key's value lies in a Config; the alternative is the key's type. MeshConfig stands for
/// the cuboid: "auto" or [p, q, r].
using Slot = std::variant<bool*, index_t*, int*, double*, std::string*, std::vector<std::string>*,
                          std::vector<int>*, std::vector<double>*, NumberRows*, MeshConfig*,
                          CountSlot, WordSlot>;

/// Bounds of a number, or of each number of a list.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;
  [[nodiscard]] bool holds(double x) const;
  [[nodiscard]] std::string text() const;  // "0 <= x < 1", "" when unbounded
};

struct Key {
  std::string table, name, help;
  std::function<Slot(Config&)> slot;
  Range range;
  std::vector<std::string> words;  // the allowed ones, when not empty
  std::string unit;
  std::string fallback;   // in words, when the default is computed from other keys
  bool required = false;  // by the file or the preset
  std::string old_name;   // "table.key" of earlier versions, still read
  std::vector<std::pair<std::string, std::string>> old_words;  // {as it was, as it is read now}

  [[nodiscard]] std::string full_name() const { return table + "." + name; }
  [[nodiscard]] std::string type_text() const;     // "integer"
  [[nodiscard]] std::string allowed_text() const;  // range or words; may be empty
  [[nodiscard]] std::string default_text() const;  // as TOML, or the fallback in words
};

struct TableHelp {
  std::string name, help;
};

[[nodiscard]] const std::vector<TableHelp>& config_tables();
[[nodiscard]] const std::vector<Key>& config_keys();
/// By its name or its old one.
[[nodiscard]] const Key* find_key(const std::string& full_name);
/// Of a key of earlier versions that is no longer read: why, or what holds in its place. Else
/// empty.
[[nodiscard]] std::string_view why_removed(const std::string& full_name);
[[nodiscard]] std::vector<const Key*> keys_of(const std::string& table);

/// What is wrong with a value, or nothing and the Config holds it.
struct Problem {
  std::string what, hint;
};
[[nodiscard]] std::optional<Problem> set_value(const Key& key, const InputEntry& entry,
                                               Config& config);

/// The value as TOML text.
[[nodiscard]] std::string value_text(const Key& key, const Config& config);

/// "optimizer.lr: 0.0003 -> 0.001", one for each key that differs, and for each [[nodes]].
[[nodiscard]] std::vector<std::string> config_differences(const Config& from, const Config& to);

}  // namespace t3d
