#include "app/manual/input_words.hpp"

#include "config/config_schema.hpp"
#include "config/table_list.hpp"

namespace t3d {

std::vector<KeyWords> settable_keys() {
  std::vector<KeyWords> out;
  for (const Key& key : config_keys()) {
    Config config;
    KeyWords one{key.full_name(), key.words};
    if (std::holds_alternative<bool*>(key.slot(config))) one.words = {"true", "false"};
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> explained_names() {
  std::vector<std::string> out;
  for (const TableHelp& table : config_tables()) out.push_back(table.name);
  for (const TableList& list : table_lists()) out.push_back(list.name);
  for (const Key& key : config_keys()) out.push_back(key.full_name());
  for (const TableList& list : table_lists())
    for (const Key& key : list.keys) out.push_back(key.full_name());
  return out;
}

}  // namespace t3d
