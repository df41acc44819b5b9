#include "app/manual/command_facts.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

namespace t3d {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// CLI11 writes "TYPE:{a,b}" where only some words are allowed and "TYPE:INT in [0 - 9]" where a
/// range is.
void take_type(const std::string& type, OptionFacts& facts) {
  const std::size_t colon = type.find(':');
  facts.value_name = type.substr(0, colon);
  if (colon == std::string::npos) return;
  const std::string rule = type.substr(colon + 1);
  const std::size_t bracket = rule.find('['), brace = rule.find('{');
  if (brace == 0) {
    const std::vector<std::string> words = split(rule.substr(1, rule.find('}') - 1), ',');
    facts.value_name.clear();
    for (const std::string& word : words)
      facts.value_name += (facts.value_name.empty() ? "" : "|") + word;
  } else if (bracket != std::string::npos) {
    facts.bounds = rule.substr(bracket);
  }
}

OptionFacts option_facts(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  facts.help = option.get_description();
  facts.required = option.get_required();
  const bool flag = option.get_items_expected_max() == 0;
  if (!option.get_option_text().empty())
    facts.value_name = option.get_option_text();
  else if (!flag)
    take_type(option.get_type_name(), facts);
  facts.value = value_kind(facts.value_name);
  if (facts.names.empty()) {
    facts.repeats = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
    facts.value_name = option.get_name(true);
  }
  return facts;
}

}  // namespace

ValueKind value_kind(const std::string& value_name) {
  ValueKind kind;
  for (std::string word : split(value_name, '|')) {
    if (const std::size_t dots = word.find("..."); dots != std::string::npos) word.resize(dots);
    if (word == "table.key=value") {
      kind.assignment = true;
    } else if (word == "KEY") {
      kind.key = true;
    } else if (word == "DIR" || word == "RUN") {  // run folders
      kind.folder = true;
    } else if (word == "FILE" || word == "INPUT" || word == "PATH" || word == "PREFIX") {
      kind.file = true;
    } else if (const std::size_t dot = word.rfind('.'); dot != std::string::npos) {
      kind.endings.push_back(lower(word.substr(dot + 1)));
    } else if (!word.empty() && word[0] != '[' && word == lower(word)) {
      kind.words.push_back(word);
    }
  }
  return kind;
}

CommandFacts command_facts(const CLI::App& app) {
  CommandFacts facts;
  facts.name = app.get_name();
  facts.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    OptionFacts one = option_facts(*option);
    (one.names.empty() ? facts.places : facts.options).push_back(std::move(one));
  }
  for (const CLI::App* command : app.get_subcommands({}))
    facts.commands.push_back(command_facts(*command));
  return facts;
}

}  // namespace t3d
