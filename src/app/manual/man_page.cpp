#include "app/manual/man_page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "config/config_schema.hpp"
#include "config/table_list.hpp"
#include "core/error.hpp"

namespace t3d {
namespace {

/// Text that means nothing to roff: a period or quote at the beginning of a line would be a macro,
/// and plain ASCII must come out as it was.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string item(const std::string& head, const std::string& text) {
  return ".TP\n" + head + "\n" + (text.empty() ? "\\&" : text) + "\n";
}

std::string option_item(const OptionFacts& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (!option.value_name.empty()) head += (head.empty() ? "" : " ") + italic(option.value_name);
  std::string text = plain(option.help);
  if (!option.bounds.empty()) text += " " + plain(option.bounds);
  return item(head, text);
}

std::string usage_line(const std::string& program, const CommandFacts& command) {
  std::string line = bold(program + " " + command.name);
  for (const OptionFacts& place : command.places)
    line += " " + italic(place.value_name + (place.repeats ? "..." : ""));
  for (const OptionFacts& option : command.options)
    if (option.required) line += " " + bold(option.names.front()) + " " + italic(option.value_name);
  return line + " [" + italic("OPTIONS") + "]\n";
}

std::string commands_section(const CommandFacts& program) {
  std::string out = ".SH COMMANDS\n";
  for (const CommandFacts& command : program.commands) {
    out += fmt::format(".SS {}\n{}.PP\n{}\n", plain(command.name),
                       usage_line(program.name, command), plain(command.help));
    for (const OptionFacts& place : command.places) out += option_item(place);
    for (const OptionFacts& option : command.options) out += option_item(option);
  }
  return out;
}

std::string key_item(const Key& key) {
  std::string facts = key.type_text();
  if (!key.unit.empty()) facts += ", " + key.unit;
  if (const std::string allowed = key.allowed_text(); !allowed.empty()) facts += ": " + allowed;
  if (const std::string value = key.default_text(); !value.empty()) facts += "; default " + value;
  return item(bold(key.name), plain(key.help) + "\n.br\n" + plain("(" + facts + ")"));
}

std::string input_section() {
  std::string out =
      ".SH INPUT\n"
      "A TOML file; the tables run, model, data and batch are needed. Paths are relative to the "
      "folder in "
      "which the program is started.\n";
  for (const TableHelp& table : config_tables()) {
    out += fmt::format(".SS {}\n{}\n", plain("[" + table.name + "]"), plain(table.help));
    for (const Key* key : keys_of(table.name)) out += key_item(*key);
  }
  for (const TableList& list : table_lists()) {
    out += fmt::format(".SS {}\n{}\n", plain("[[" + list.name + "]]"), plain(list.help));
    for (const Key& key : list.keys) out += key_item(key);
  }
  return out;
}

std::string exit_section() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitMeaning& meaning : exit_meanings())
    out += item(bold(std::to_string(static_cast<int>(meaning.code))), plain(meaning.text));
  return out;
}

constexpr const char* kExamples = R"(.SH EXAMPLES
.EX
transformer3d \-\-defaults > input.toml
transformer3d input.toml \-\-dry\-run 64
mpirun \-n 8 transformer3d input.toml \-\-set run.steps=100
srun \-n 64 transformer3d input.toml
transformer3d generate runs/input \-\-prompt "In the beginning"
.EE
.SH SEE ALSO
.BR mpirun (1),
.BR srun (1);
the documents, example inputs and job scripts that were installed with the program.
)";

}  // namespace

std::string man_page(const CommandFacts& program, const std::string& version) {
  const std::string name = bold(program.name);
  std::string out = fmt::format(
      ".\\\" Printed by {0} --man-page.\n"
      ".TH TRANSFORMER3D 1 \"\" \"{0} {1}\" \"User Commands\"\n.nh\n.ad l\n"
      ".SH NAME\n{0} \\- trains transformer language models over MPI\n"
      ".SH SYNOPSIS\n{2} {3} [{4}]\n.br\n{2} {5} [{4}]\n"
      ".SH DESCRIPTION\n{6}\n.PP\n"
      "Started by mpirun or srun, all ranks train together; alone, it is one rank.\n"
      ".SH OPTIONS\n",
      program.name, version, name, italic("input.toml"), italic("OPTIONS"), italic("COMMAND"),
      plain(program.help));
  for (const OptionFacts& option : program.options) out += option_item(option);
  return out + commands_section(program) + input_section() + exit_section() + kExamples;
}

}  // namespace t3d
