#include "config/table_list.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "config/data_lists.hpp"
#include "config/nodes.hpp"
#include "core/levenshtein.hpp"
#include "core/utf8.hpp"

namespace t3d {

const std::vector<TableList>& table_lists() {
  static const std::vector<TableList> lists{data_source_list(), validation_list(), node_list()};
  return lists;
}

const TableList* find_list(std::string_view name) {
  const auto& lists = table_lists();
  const auto found = std::find_if(lists.begin(), lists.end(),
                                  [&](const TableList& list) { return list.name == name; });
  return found == lists.end() ? nullptr : &*found;
}

void set_keys(const std::string& list, const std::vector<Key>& keys,
              const std::vector<InputEntry>& entries, const std::string& help, Config& config,
              std::vector<Fault>& faults) {
  for (const InputEntry& entry : entries) {
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const Key& one) { return one.name == entry.key; });
    if (key == keys.end()) {
      std::vector<std::string> names;
      for (const Key& one : keys) names.push_back(one.name);
      const auto near = nearest_word(entry.key, names);
      faults.push_back({entry.where,
                        fmt::format("there is no key {}", printable(entry.name(), 100)),
                        near ? fmt::format("did you mean {}.{}?", list, *near) : help});
    } else if (const auto problem = set_value(*key, entry, config)) {
      faults.push_back({entry.where, problem->what, problem->hint});
    }
  }
}

void add_element(const TableList& list, const InputElement& element, Config& config,
                 std::vector<Fault>& faults) {
  list.append(config);
  const std::size_t before = faults.size();
  set_keys(list.name, list.keys, element.entries,
           fmt::format("transformer3d --explain {} lists all keys", list.name), config, faults);
  if (faults.size() > before) return;
  std::string key;
  const auto problem = list.check(config, key);
  if (!problem) return;
  const auto entry = std::find_if(element.entries.begin(), element.entries.end(),
                                  [&](const InputEntry& one) { return one.key == key; });
  faults.push_back({entry == element.entries.end() ? element.where : entry->where, problem->what,
                    problem->hint});
}

std::vector<std::string> element_lines(const TableList& list, const Config& config,
                                       std::size_t at) {
  const Config element = list.only(config, at);
  Config none;
  list.append(none);
  std::vector<std::string> lines;
  for (const Key& key : list.keys) {
    const std::string value = value_text(key, element);
    if (value != value_text(key, none)) lines.push_back(fmt::format("{} = {}", key.name, value));
  }
  return lines;
}

std::string list_text(const TableList& list, const Config& config) {
  std::string text;
  for (std::size_t at = 0; at < list.size(config); ++at)
    text +=
        fmt::format("\n[[{}]]\n{}\n", list.name, fmt::join(element_lines(list, config, at), "\n"));
  return text;
}

std::vector<std::string> list_differences(const TableList& list, const Config& from,
                                          const Config& to) {
  const auto text = [&](const Config& config, std::size_t at) -> std::string {
    if (at >= list.size(config)) return "none";
    return fmt::format("{}", fmt::join(element_lines(list, config, at), ", "));
  };
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < std::max(list.size(from), list.size(to)); ++at)
    if (const std::string before = text(from, at), after = text(to, at); before != after)
      lines.push_back(fmt::format("[[{}]] {}: {} -> {}", list.name, at + 1, before, after));
  return lines;
}

}  // namespace t3d
