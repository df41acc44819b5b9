// What the parser would take for something else: of a list with an empty part only the others, or
// the next word instead, and an empty name for none.
#include <fmt/format.h>

#include "app/cli/command_options.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

bool has_empty_part(const std::string& value, char delimiter) {
  const std::string twice(2, delimiter);
  return value.front() == delimiter || value.back() == delimiter ||
         value.find(twice) != std::string::npos;
}

void check_value(const std::string& name, const CLI::Option& option, const std::string& value) {
  const std::string type = option.get_type_name();
  if (value.empty() && type != "TEXT")
    throw_error(ExitCode::usage, "{} needs {}, and what stands behind it is empty", name,
                type.substr(0, type.find(':')));
  if (!value.empty() && option.get_delimiter() != '\0' &&
      has_empty_part(value, option.get_delimiter()))
    throw_error(ExitCode::usage, "{}: a part of the list '{}' is empty", name,
                printable(value, 40));
}

}  // namespace

void check_values(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* own = &app;
  for (std::size_t at = 0; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    const auto named = [&](const CLI::App* sub) { return sub->get_name() == word; };
    if (own == &app && !app.get_subcommands(named).empty()) {
      own = app.get_subcommands(named).front();
      continue;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = name.starts_with("-") ? own->get_option_no_throw(name) : nullptr;
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    if (equals != std::string::npos)
      check_value(name, *option, word.substr(equals + 1));
    else if (++at < words.size())
      check_value(name, *option, words[at]);
  }
}

}  // namespace t3d
