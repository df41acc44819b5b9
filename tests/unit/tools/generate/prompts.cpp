// Prompts from lines of text and from JSON lines, and what is said of wrong ones.
#include "tools/generate/prompts.hpp"

#include <sstream>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

std::vector<std::string> parse(const std::string& text) {
  std::istringstream lines(text);
  return parse_prompts(lines, "f");
}

std::string fault(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("prompts are lines, or JSON lines") {
  CHECK(parse("one\n\ntwo {\r\nthree") == std::vector<std::string>{"one", "two {", "three"});
  CHECK(parse("{\"prompt\": \"a\\nb\"}\n{\"id\": 3, \"prompt\": \"c\"}\n") ==
        std::vector<std::string>{"a\nb", "c"});
  CHECK(parse("\n\n").empty());
  CHECK(parse("\xEF\xBB\xBFone\ntwo") == std::vector<std::string>{"one", "two"});
  CHECK(parse("\xEF\xBB\xBF{\"prompt\": \"a\"}") == std::vector<std::string>{"a"});
}

TEST_CASE("a line that is no prompt is named") {
  CHECK(fault("{\"prompt\": \"a\"}\n\n{\"prompt\": \n") ==
        "f:3 is not a JSON object: {\"prompt\": ");
  CHECK(fault("{\"prompt\": \"a\"}\nb") == "f:2 is not a JSON object: b");
  CHECK(fault("{\"prompt\": 3}") == "f:1 has no text in a field \"prompt\": {\"prompt\": 3}");
  CHECK(fault("{\"text\": \"a\"}") == "f:1 has no text in a field \"prompt\": {\"text\": \"a\"}");
  CHECK(fault("a\n\xFF") == "f:2 is not UTF-8");
}

TEST_CASE("a prompt of the command line is UTF-8") {
  GenerateCommand wish;
  wish.prompts = {"sch\xC3\xB6n", "\xF6"};
  try {
    (void)read_prompts(wish);
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
  }
}
