// The input as plain values with their places. The only file that knows the TOML library is
// toml_input.cpp (it compiles slowly); everything above reads these structs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "config/config_errors.hpp"

namespace t3d {

struct InputValue {
  enum class Kind { boolean, integer, real, text, list, table, date };
  Kind kind = Kind::text;
  bool boolean = false;
  index_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<InputValue> items;

  [[nodiscard]] std::string describe() const;  // `the string "512"`, for messages
};

/// One `key = value` of a table ("" = above all tables).
struct InputEntry {
  std::string table, key;
  InputValue value;
  Where where;
  std::string bare;  // the text of a --set value without quotes: what a string key takes
  [[nodiscard]] std::string name() const { return table.empty() ? key : table + "." + key; }
};

/// One [[array]] or [[table.array]]; its entries have its name as their table.
struct InputElement {
  std::string array;
  Where where;
  std::vector<InputEntry> entries;  // as in the file
};

struct InputDocument {
  std::vector<InputEntry> entries;  // as in the file
  std::vector<InputElement> elements;
  std::map<std::string, Where> tables;
};

/// Throws ConfigErrors with line and column if `text` is not TOML.
InputDocument parse_toml(const std::string& text, const std::string& file_name);

/// "table.key=value": the value is TOML, or a bare word taken as a string.
InputEntry parse_override(const std::string& assignment);
/// The override that gives `key` this very text, whatever it looks like.
[[nodiscard]] std::string text_override(const std::string& key, const std::string& text);

/// Quoted, as TOML writes it.
[[nodiscard]] std::string toml_string(std::string_view text);

}  // namespace t3d
