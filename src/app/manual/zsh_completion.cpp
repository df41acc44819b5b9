#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/manual/completion.hpp"
#include "app/manual/input_words.hpp"

namespace t3d {
namespace {

/// Inside single quotes; brackets and colons end the parts of a specification of _arguments.
std::string quoted(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string action(const ValueKind& kind) {
  std::vector<std::string> choices;
  if (!kind.words.empty()) choices.push_back(fmt::format("({})", fmt::join(kind.words, " ")));
  for (const std::string& ending : kind.endings)
    choices.push_back(fmt::format("_files -g \"*.{}(-.)\"", ending));
  if (kind.file) choices.push_back("_files");
  if (kind.folder) choices.push_back("_files -/");
  if (kind.key) choices.push_back("_transformer3d_names");
  if (kind.assignment) choices.push_back("_transformer3d_assignment");
  if (choices.empty()) return " ";  // nothing is offered, but what is wanted is said
  if (choices.size() == 1) return choices.front();
  std::string out = "_alternative";
  for (const std::string& choice : choices) out += fmt::format(" \"value:value:{}\"", choice);
  return out;
}

/// '(-o --output)'{-o,--output}'[help]:FILE:_files', one for each name.
std::string option_specs(const OptionFacts& option) {
  std::string value;
  if (option.takes_word())
    value = fmt::format(":{}:{}", quoted(option.value_name, ":"), action(option.value));
  std::string out;
  for (const std::string& name : option.names) {
    // Long options take their word behind '=' too.
    const std::string behind = option.takes_word() && name.starts_with("--") ? "=" : "";
    out += fmt::format("    '*{}{}[{}]{}'\n", name, behind, quoted(option.help, "[]"), value);
  }
  return out;
}

std::string specs(const CommandFacts& command) {
  std::string out;
  for (const OptionFacts& option : command.options) out += option_specs(option);
  return out;
}

std::string place_specs(const CommandFacts& command) {
  std::string out;
  for (const OptionFacts& place : command.places)
    out += fmt::format("    '{}:{}:{}'\n", place.repeats ? "*" : "", quoted(place.value_name, ":"),
                       action(place.value));
  return out;
}

/// The array with the specifications of a command.
std::string array_of(const CommandFacts& command) {
  std::string name = "_transformer3d_" + command.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

constexpr const char* kInputFunctions = R"zsh(
_transformer3d_names() { compadd -- $_transformer3d_tables $_transformer3d_keys }
_transformer3d_assignment() {
  local key=${PREFIX%%=*}
  if [[ $PREFIX == *=* ]]; then
    compset -P '*='
    compadd -- ${=_transformer3d_words[$key]}
  else
    compadd -S '=' -- $_transformer3d_keys
  fi
}
)zsh";

constexpr const char* kMainFunction = R"zsh(
_transformer3d() {
  local context state state_descr line ret=1
  typeset -A opt_args
  _arguments -C : $_transformer3d_main '1: :->first' '*:: :->rest' && ret=0
  case $state in
    first)
      _describe -t commands command _transformer3d_commands && ret=0
      _files -g "*.toml(-.)" && ret=0
      ;;
    rest)
      case $words[1] in
)zsh";

}  // namespace

std::string zsh_completion(const CommandFacts& program) {
  std::string commands, cases, words;
  for (const CommandFacts& command : program.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, quoted(command.help, ":"));
    cases +=
        fmt::format("        {}) _arguments : ${} && ret=0 ;;\n", command.name, array_of(command));
  }
  std::vector<std::string> keys;
  for (const KeyWords& key : settable_keys()) {
    keys.push_back(key.name);
    if (!key.words.empty())
      words += fmt::format("    {} '{}'\n", key.name, fmt::join(key.words, " "));
  }
  std::vector<std::string> tables;
  for (const std::string& name : explained_names())
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) tables.push_back(name);
  std::string out = fmt::format(
      "#compdef transformer3d\n# Printed by: transformer3d --completion zsh\n"
      "typeset -ga _transformer3d_tables=({}) _transformer3d_keys=({})\n"
      "typeset -gA _transformer3d_words=(\n{})\ntypeset -ga _transformer3d_commands=(\n{})\n"
      "typeset -ga _transformer3d_main=(\n{})\n",
      fmt::join(tables, " "), fmt::join(keys, " "), words, commands, specs(program));
  for (const CommandFacts& command : program.commands)
    out += fmt::format("typeset -ga {}=(\n{}{})\n", array_of(command), specs(command),
                       place_specs(command));
  return out + kInputFunctions + kMainFunction + cases +
         "        *) _arguments : $_transformer3d_main && ret=0 ;;\n      esac\n      ;;\n  esac\n"
         "  return ret\n}\n_transformer3d \"$@\"\n";
}

}  // namespace t3d
