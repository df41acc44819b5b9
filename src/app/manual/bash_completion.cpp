#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/manual/completion.hpp"
#include "app/manual/input_words.hpp"

namespace t3d {
namespace {

constexpr const char* kMain = "main";  // in place of a command

/// What does not depend on the program. `typed` is the word so far, COMPREPLY what it may become.
constexpr const char* kHelpers = R"bash(
_transformer3d_offer() { # words
  local word
  for word; do
    if [[ $word == "$typed"* ]]; then COMPREPLY+=("$word"); fi
  done
}
_transformer3d_paths() { # options of compgen
  local path
  compopt -o filenames 2> /dev/null
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$@" -- "$typed")
}
_transformer3d_ending() { # toml: such files, and folders on the way to them
  _transformer3d_paths -f -X "!*.$1"
  _transformer3d_paths -d
}
_transformer3d_assignment() {
  if [[ $typed != *=* ]]; then
    compopt -o nospace 2> /dev/null
    _transformer3d_offer "${_transformer3d_keys[@]/%/=}"
    return
  fi
  local key=${typed%%=*} words
  read -ra words <<< "${_transformer3d_words[$key]-}"
  _transformer3d_offer "${words[@]/#/$key=}"
}
_transformer3d() {
  local line=${COMP_LINE:0:COMP_POINT} typed='' command=main option='' place=0 word prefix
  local -a words
  COMPREPLY=()
  read -ra words <<< "$line"
  if [[ $line != *[[:blank:]] ]]; then
    typed=${words[${#words[@]} - 1]}
    unset "words[${#words[@]} - 1]"
  fi
  for word in "${words[@]:1}"; do
    if [[ -n $option ]]; then
      option='' # this was its value
    elif [[ $_transformer3d_taking == *" $command:$word "* ]]; then
      option=$word
    elif [[ $word == -* ]]; then
      continue
    elif [[ $command == main && $place == 0 && $_transformer3d_commands == *" $word "* ]]; then
      command=$word
    else
      place=$((place + 1))
    fi
  done
  prefix=''
  if [[ -n $option ]]; then
    _transformer3d_value "$command $option"
  elif [[ $typed == --*=* ]]; then
    prefix=${typed%%=*}=
    typed=${typed#*=}
    _transformer3d_value "$command ${prefix%=}"
  elif [[ $typed == -* ]]; then
    _transformer3d_options "$command"
  else
    if [[ $command == main && $place == 0 ]]; then _transformer3d_offer $_transformer3d_commands; fi
    _transformer3d_place "$command" "$place"
  fi
  # bash parts words at '=' too, and replaces only what stands behind the last one.
  if [[ $COMP_WORDBREAKS == *=* ]]; then
    local behind=${typed##*=}
    if [[ $typed == *=* ]]; then COMPREPLY=("${COMPREPLY[@]#"${typed%"$behind"}"}"); fi
  else
    COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
  fi
}
complete -F _transformer3d transformer3d
)bash";

std::string actions(const ValueKind& kind) {
  std::string out;
  const auto add = [&](const std::string& action) { out += (out.empty() ? "" : "; ") + action; };
  if (!kind.words.empty()) add(fmt::format("_transformer3d_offer {}", fmt::join(kind.words, " ")));
  for (const std::string& ending : kind.endings) add("_transformer3d_ending " + ending);
  if (kind.file) add("_transformer3d_paths -f");
  if (kind.folder) add("_transformer3d_paths -d");
  if (kind.key)
    add("_transformer3d_offer \"${_transformer3d_tables[@]}\" \"${_transformer3d_keys[@]}\"");
  if (kind.assignment) add("_transformer3d_assignment");
  return out;
}

/// One line of a case: patterns, what to do.
std::string arm(const std::vector<std::string>& patterns, const std::string& action) {
  return fmt::format("    '{}') {} ;;\n", fmt::join(patterns, "' | '"), action);
}

/// The arms of one command in each of the three functions, and its options that take a word.
struct Arms {
  std::string values, options, places, taking;
};

void add_command(const CommandFacts& command, const std::string& name, Arms& arms) {
  std::vector<std::string> names;
  for (const OptionFacts& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (!option.takes_word()) continue;
    std::vector<std::string> patterns;
    for (const std::string& word : option.names) {
      patterns.push_back(name + " " + word);
      arms.taking += name + ":" + word + " ";
    }
    if (const std::string action = actions(option.value); !action.empty())
      arms.values += arm(patterns, action);
  }
  arms.options += arm({name}, fmt::format("_transformer3d_offer {}", fmt::join(names, " ")));
  for (std::size_t i = 0; i < command.places.size(); ++i) {
    const bool all = command.places[i].repeats || name == kMain;
    if (const std::string action = actions(command.places[i].value); !action.empty())
      arms.places += all ? fmt::format("    '{} '*) {} ;;\n", name, action)
                         : arm({fmt::format("{} {}", name, i)}, action);
  }
}

std::string function(const std::string& name, const std::string& subject, const std::string& arms) {
  return fmt::format("_transformer3d_{}() {{\n  case \"{}\" in\n{}  esac\n}}\n", name, subject,
                     arms);
}

}  // namespace

std::string bash_completion(const CommandFacts& program) {
  Arms arms;
  std::vector<std::string> commands, keys, tables;
  add_command(program, kMain, arms);
  for (const CommandFacts& command : program.commands) {
    add_command(command, command.name, arms);
    commands.push_back(command.name);
  }
  std::string words;
  for (const KeyWords& key : settable_keys()) {
    keys.push_back(key.name);
    if (!key.words.empty())
      words += fmt::format("  [{}]='{}'\n", key.name, fmt::join(key.words, " "));
  }
  for (const std::string& name : explained_names())
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) tables.push_back(name);
  return fmt::format(
             "# bash completion of transformer3d; printed by: transformer3d --completion bash\n"
             "_transformer3d_commands=' {} '\n_transformer3d_taking=' {}'\n"
             "_transformer3d_tables=({})\n_transformer3d_keys=({})\n"
             "declare -gA _transformer3d_words=(\n{})\n",
             fmt::join(commands, " "), arms.taking, fmt::join(tables, " "), fmt::join(keys, " "),
             words) +
         function("value", "$1", arms.values) + function("options", "$1", arms.options) +
         function("place", "$1 $2", arms.places) + kHelpers;
}

}  // namespace t3d
