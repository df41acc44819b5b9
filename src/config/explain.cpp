#include "config/explain.hpp"

#include <vector>

#include "config/config_schema.hpp"
#include "config/table_list.hpp"
#include "core/error.hpp"
#include "core/folded.hpp"
#include "core/levenshtein.hpp"

namespace t3d {
namespace {

std::string help_of(const Key& key) {
  constexpr std::size_t kIndent = 11;  // of the values
  std::string out = fmt::format("{}\n{}\n  type     {}", key.full_name(),
                                folded("  " + key.help, 2), key.type_text());
  if (!key.unit.empty()) out += fmt::format(" ({})", key.unit);
  if (const std::string allowed = key.allowed_text(); !allowed.empty())
    out += "\n" + folded("  allowed  " + allowed, kIndent);
  return out + "\n" + folded("  default  " + key.default_text(), kIndent) + "\n";
}

}  // namespace

std::string explain(const std::string& name) {
  std::string out;
  for (const TableHelp& table : config_tables()) {
    if (table.name == name) out = folded(fmt::format("[{}]  {}", table.name, table.help), 2) + "\n";
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
    if (name == list.name) out = folded(fmt::format("[[{}]]  {}", list.name, list.help), 2) + "\n";
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
