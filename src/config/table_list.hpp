// Lists of tables in the input: [[nodes]], [[data.source]], [[data.validation]]. What reads,
// checks, shows and explains them is the same for all; each has its keys and where its elements
// lie.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_schema.hpp"

namespace t3d {

struct TableList {
  std::string name;       // "nodes"
  std::string help;       // for users
  std::string each;       // "for each kind of node": why there may be several
  std::vector<Key> keys;  // of one element, in their order; their slots lie in the last element
  std::function<std::size_t(const Config&)> size;
  std::function<void(Config&)> append;  // an element with all defaults
  /// A Config that has only this element of the list.
  std::function<Config(const Config&, std::size_t)> only;
  /// What is wrong with the last element, when there is nothing to say of each key alone. `key`:
  /// which one to point at, or empty for the element.
  std::function<std::optional<Problem>(const Config&, std::string& key)> check;
};

/// All lists, in the order in which they are shown.
[[nodiscard]] const std::vector<TableList>& table_lists();
[[nodiscard]] const TableList* find_list(std::string_view name);

/// Puts the entries of one table into where the slots of `keys` point, and what is wrong with them
/// into `faults`. `list` and `help` are for hints.
void set_keys(const std::string& list, const std::vector<Key>& keys,
              const std::vector<InputEntry>& entries, const std::string& help, Config& config,
              std::vector<Fault>& faults);
/// Adds one element to `config`, and what is wrong with it to `faults`.
void add_element(const TableList& list, const InputElement& element, Config& config,
                 std::vector<Fault>& faults);
/// "key = value" for every key of an element that somebody wrote.
[[nodiscard]] std::vector<std::string> element_lines(const TableList& list, const Config& config,
                                                     std::size_t at);
/// The elements as TOML; empty where there are none.
[[nodiscard]] std::string list_text(const TableList& list, const Config& config);
/// "[[nodes]] 2: name = "old-*", speed = 0.5 -> none", one for each place of the list that differs.
[[nodiscard]] std::vector<std::string> list_differences(const TableList& list, const Config& from,
                                                        const Config& to);

}  // namespace t3d
