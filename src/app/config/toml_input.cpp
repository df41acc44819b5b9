#include "app/config/toml_input.hpp"

// Some malformed keys meet an assertion of the library before its error message: as in NDEBUG.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/utf8.hpp"

namespace t3d {
namespace {

InputValue plain(const toml::node& node) {
  InputValue value;
  if (const auto* boolean = node.as_boolean()) {
    value.kind = InputValue::Kind::boolean;
    value.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = InputValue::Kind::integer;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = InputValue::Kind::real;
    value.real = real->get();
  } else if (const auto* text = node.as_string()) {
    value.kind = InputValue::Kind::text;
    value.text = text->get();
  } else if (const auto* list = node.as_array()) {
    value.kind = InputValue::Kind::list;
    for (const toml::node& item : *list) value.items.push_back(plain(item));
  } else {
    value.kind = node.is_table() ? InputValue::Kind::table : InputValue::Kind::date;
  }
  return value;
}

Where place(const std::string& file_name, const toml::source_region& region) {
  return {file_name, static_cast<index_t>(region.begin.line),
          static_cast<index_t>(region.begin.column)};
}

std::string trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

[[noreturn]] void bad_override(const Where& where, std::string what) {
  throw ConfigErrors({{where, std::move(what), "write --set table.key=value"}});
}

}  // namespace

std::string InputValue::describe() const {
  switch (kind) {
    case Kind::boolean: return boolean ? "the boolean true" : "the boolean false";
    case Kind::integer: return fmt::format("the integer {}", integer);
    case Kind::real: return fmt::format("the number {}", real);
    case Kind::text: return fmt::format("the string \"{}\"", printable(text, 200));
    case Kind::list: return fmt::format("a list of {}", items.size());
    case Kind::table: return "a table";
    case Kind::date: return "a date or time";
  }
  return "an unknown thing";
}

namespace {

bool in_file_order(const InputEntry& a, const InputEntry& b) {
  return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
}

/// `lists_apart`: without lists of tables.
std::vector<InputEntry> entries_of(const toml::table& table, const std::string& name,
                                   const std::string& file_name, bool lists_apart = false) {
  std::vector<InputEntry> entries;
  for (auto&& [key, value] : table) {
    if (lists_apart && value.is_array_of_tables()) continue;
    entries.push_back(
        {name, std::string(key.str()), plain(value), place(file_name, key.source()), ""});
  }
  std::sort(entries.begin(), entries.end(), in_file_order);
  return entries;
}

void add_elements(const std::string& name, const toml::array& list, const std::string& file_name,
                  InputDocument& document) {
  for (const toml::node& element : list)
    document.elements.push_back({name, place(file_name, element.source()),
                                 entries_of(*element.as_table(), name, file_name)});
}

}  // namespace

InputDocument parse_toml(const std::string& text, const std::string& file_name) {
  InputDocument document;
  try {
    const toml::table root = toml::parse(text, file_name);
    for (auto&& [key, node] : root) {
      const std::string name(key.str());
      if (node.is_array_of_tables()) {
        add_elements(name, *node.as_array(), file_name, document);
        continue;
      }
      const toml::table* table = node.as_table();
      if (!table) {
        document.entries.push_back({"", name, plain(node), place(file_name, key.source()), ""});
        continue;
      }
      for (auto&& [inner, list] : *table)  // [[table.list]]
        if (list.is_array_of_tables())
          add_elements(name + "." + std::string(inner.str()), *list.as_array(), file_name,
                       document);
      document.tables[name] = place(file_name, table->source());
      std::vector<InputEntry> entries = entries_of(*table, name, file_name, true);
      std::move(entries.begin(), entries.end(), std::back_inserter(document.entries));
    }
  } catch (const toml::parse_error& error) {
    throw ConfigErrors({{place(file_name, error.source()),
                         fmt::format("this is not TOML: {}", error.description()), ""}});
  }
  std::sort(document.entries.begin(), document.entries.end(), in_file_order);
  return document;
}

InputEntry parse_override(const std::string& assignment) {
  const auto equals = assignment.find('=');
  const std::string name = trimmed(assignment.substr(0, equals));
  const Where where{"--set " + name, 0, 0};
  if (!is_utf8(assignment))
    throw ConfigErrors({{where, "this is not UTF-8", "rename it, or use a link with such a name"}});
  if (equals == std::string::npos) bad_override(where, "there is no '='");
  const std::string value = trimmed(assignment.substr(equals + 1));
  if (value.empty()) bad_override(where, "there is no value");
  const auto dot = name.find('.');
  if (dot == std::string::npos) bad_override(where, "the key has no table");

  InputEntry entry{name.substr(0, dot), name.substr(dot + 1), {}, where, value};
  const bool quoted = std::string_view("\"'[{").find(value.front()) != std::string_view::npos;
  if (!quoted && !is_ascii(value)) {  // no TOML value; also, toml++ 3.3 trips over such letters
    entry.value.text = value;
    return entry;
  }
  try {
    const toml::table root = toml::parse("value = " + value);
    if (root.size() == 1) {
      entry.value = plain(*root.get("value"));
      if (quoted) entry.bare.clear();
      return entry;
    }
  } catch (const toml::parse_error& error) {
    if (quoted) bad_override(where, fmt::format("this is not TOML: {}", error.description()));
  }
  entry.value.text = value;  // a bare word
  return entry;
}

}  // namespace t3d
