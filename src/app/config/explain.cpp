#include "app/config/explain.hpp"

#include <vector>

#include "app/config/config_schema.hpp"
#include "app/config/table_list.hpp"
#include "core/error.hpp"
#include "core/levenshtein.hpp"

namespace t3d {
namespace {

std::string help_of(const Key& key) {
  std::string out =
      fmt::format("{}\n  {}\n  type     {}", key.full_name(), key.help, key.type_text());
  if (!key.unit.empty()) out += fmt::format(" ({})", key.unit);
  if (const std::string allowed = key.allowed_text(); !allowed.empty()) {
    out += fmt::format("\n  allowed  {}", allowed);
  }
  return out + fmt::format("\n  default  {}\n", key.default_text());
}

}  // namespace

std::string explain(const std::string& name) {
  std::string out;
  for (const TableHelp& table : config_tables()) {
    if (table.name == name) out = fmt::format("[{}]  {}\n", table.name, table.help);
  }
  std::vector<std::string> names;
  for (const Key& key : config_keys()) {
    if (key.full_name() == name || key.name == name || key.table == name) {
      out += (out.empty() ? "" : "\n") + help_of(key);
    }
    names.push_back(key.full_name());
    names.push_back(key.name);
  }
  for (const TableList& list : table_lists()) {
    if (name == list.name) out = fmt::format("[[{}]]  {}\n", list.name, list.help);
    for (const Key& key : list.keys)
      if (key.full_name() == name || key.table == name)
        out += (out.empty() ? "" : "\n") + help_of(key);
  }
  if (out.empty()) {
    for (const TableHelp& table : config_tables()) names.push_back(table.name);
    const auto near = nearest_word(name, names);
    throw_error(ExitCode::usage, "--explain: there is no key or table {}; {}", name,
                near ? fmt::format("did you mean {}?", *near)
                     : std::string("transformer3d --defaults lists all keys"));
  }
  return out;
}

}  // namespace t3d
