// The manual page and the completions: what they make of the names of values and of letters that
// mean something to roff and to the shells. tests/system/installed.sh shows them at work.
#include "app/manual/completion.hpp"
#include "app/manual/man_page.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

using TextList = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// One command with one option, whose help is `help`.
CommandFacts program_with(const std::string& value_name, const std::string& help) {
  OptionFacts option;
  option.names = {"-o", "--output"};
  option.value_name = value_name;
  option.value = value_kind(value_name);
  option.help = help;
  CommandFacts command;
  command.name = "make";
  command.help = "makes";
  command.options = {option};
  CommandFacts program;
  program.name = "transformer3d";
  program.commands = {command};
  return program;
}

}  // namespace

TEST_CASE("the name of a value says what may stand there") {
  CHECK(value_kind("FILE").file);
  CHECK(value_kind("INPUT...").file);
  CHECK(value_kind("DIR...").folder);
  CHECK(value_kind("KEY").key);
  CHECK(value_kind("table.key=value").assignment);
  CHECK((value_kind("PLAN.json").endings == TextList{"json"}));
  const ValueKind mixed = value_kind("auto|never|DIR");
  CHECK((mixed.words == TextList{"auto", "never"}));
  CHECK(mixed.folder);
  for (const char* text : {"", "INT", "FLOAT", "[RANKS]", "NAME,..."}) {
    const ValueKind kind = value_kind(text);
    CHECK(kind.words.empty());
    CHECK(kind.endings.empty());
    CHECK_FALSE((kind.file || kind.folder || kind.key || kind.assignment));
  }
}

TEST_CASE("text stays text in the manual") {
  const std::string page =
      man_page(program_with("FILE", ".TH of a file's a\\b, --so ~ ^ `c`"), "1.2");
  CHECK(contains(page, "\n\\&.TH of a file\\(aqs a\\eb, \\-\\-so \\(ti \\(ha \\(gac\\(ga\n"));
  CHECK(contains(page, ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\n"));
  CHECK(contains(page, "\"transformer3d 1.2\""));
}

TEST_CASE("text stays text in zsh's completion") {
  const std::string script = zsh_completion(program_with("TIME:DAY", "it's [here]: now"));
  CHECK(contains(script, "'*--output=[it'\\''s \\[here\\]: now]:TIME\\:DAY: '\n"));
  CHECK(contains(zsh_completion(program_with("auto|DIR", "")),
                 ":auto|DIR:_alternative \"value:value:(auto)\" \"value:value:_files -/\"'\n"));
}

TEST_CASE("an option whose word may be left out takes none for bash") {
  CHECK(contains(bash_completion(program_with("RANKS", "")), " make:-o make:--output "));
  CHECK_FALSE(contains(bash_completion(program_with("[RANKS]", "")), "make:--output"));
}

}  // namespace t3d
