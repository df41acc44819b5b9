// One table of exit codes: the help and docs/03-running.md say what it says, and what libraries
// throw ends with a code of it.
#include <filesystem>
#include <fstream>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli.hpp"
#include "core/error.hpp"
#include "core/folded.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

std::string line_of(const ExitMeaning& meaning, const char* before, const char* between,
                    const char* after) {
  return fmt::format("{}{}{}{}{}", before, static_cast<int>(meaning.code), between, meaning.text,
                     after);
}

/// The rows of the document's table.
std::vector<std::string> documented() {
  std::ifstream file(std::string(T3D_TEST_SOURCE) + "/../docs/03-running.md");
  std::vector<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (inside && !line.starts_with("|")) break;
    if (inside && !line.starts_with("|---")) rows.push_back(line);
    inside = inside || line == "| exit code | meaning |";
  }
  return rows;
}

}  // namespace

TEST_CASE("every exit code has one meaning") {
  std::set<ExitCode> codes;
  for (const ExitMeaning& meaning : exit_meanings()) CHECK(codes.insert(meaning.code).second);
  CHECK(codes == std::set<ExitCode>{ExitCode::done, ExitCode::usage, ExitCode::diverged,
                                    ExitCode::no_input, ExitCode::unavailable, ExitCode::internal,
                                    ExitCode::io, ExitCode::retry, ExitCode::peer_lost,
                                    ExitCode::config});
}

TEST_CASE("docs/03-running.md has the table of exit codes") {
  std::vector<std::string> rows;
  for (const ExitMeaning& meaning : exit_meanings())
    rows.push_back(line_of(meaning, "| ", " | ", " |"));
  CHECK(documented() == rows);
}

TEST_CASE("docs/exit-codes.md has a section for every exit code, and for no other") {
  std::ifstream file(std::string(T3D_TEST_SOURCE) + "/../docs/exit-codes.md");
  std::vector<int> sections;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("## ") && line.find(": ") != std::string::npos)
      sections.push_back(std::stoi(line.substr(3)));
  std::vector<int> codes;
  for (const ExitMeaning& meaning : exit_meanings())
    codes.push_back(static_cast<int>(meaning.code));
  CHECK(sections == codes);
}

TEST_CASE("--help has the table of exit codes") {
  const std::vector<const char*> words{"transformer3d", "--help"};
  const std::string help = parse_command_line(2, words.data()).text;
  for (const ExitMeaning& meaning : exit_meanings())
    CHECK(help.find(folded(line_of(meaning, "  ", "  ", ""), 6) + "\n") != std::string::npos);
}

TEST_CASE("exceptions of libraries have an exit code") {
  namespace fs = std::filesystem;
  const auto code_of_file = [](std::errc reason) {
    const Error error =
        as_error(fs::filesystem_error("status", "some/path", std::make_error_code(reason)));
    CHECK(std::string(error.what()).find("some/path: ") != std::string::npos);
    return error.code();
  };
  CHECK(code_of_file(std::errc::no_such_file_or_directory) == ExitCode::no_input);
  CHECK(code_of_file(std::errc::too_many_symbolic_link_levels) == ExitCode::io);
  CHECK(code_of_file(std::errc::filename_too_long) == ExitCode::io);
  CHECK(code_of_file(std::errc::permission_denied) == ExitCode::io);
  CHECK(as_error(std::bad_alloc()).code() == ExitCode::unavailable);
  const auto system = [](std::errc reason) {
    return as_error(std::system_error(std::make_error_code(reason), "why")).code();
  };
  CHECK(system(std::errc::no_space_on_device) == ExitCode::io);
  CHECK(system(std::errc::resource_unavailable_try_again) == ExitCode::unavailable);
  CHECK(as_error(std::logic_error("x")).code() == ExitCode::internal);
  CHECK(as_error(Error(ExitCode::diverged, "y")).code() == ExitCode::diverged);
  CHECK(std::string(as_error(AgreedError(ExitCode::config, "z")).what()) == "z");
}

}  // namespace t3d
