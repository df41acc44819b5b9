#include "data/text/json_line.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace t3d;
using t3d::test::contains;

TEST_CASE("the wanted fields of the outermost object are read") {
  const JsonFields text{}, pair{"", "q", "a"};
  CHECK(parse_json_line(R"({"text":"a\u00e9\n\ud83d\ude00\u0000b"})", text).text ==
        std::string("a\xC3\xA9\n\xF0\x9F\x98\x80\0b", 10));
  CHECK(parse_json_line(R"( {"meta":{"text":"no"},"text":"yes","list":["text",{"text":1}]} )", text)
            .text == "yes");
  CHECK(parse_json_line(R"({"text":""})", text).text.empty());
  const JsonDocument both = parse_json_line(R"({"a":"answer","x":null,"q":"question"})", pair);
  CHECK(both.prompt == "question");
  CHECK(both.text == "answer");
}

TEST_CASE("a line that is no such object is an error that says why") {
  const auto fault = [](const std::string& line, const JsonFields& fields = {}) -> std::string {
    try {
      (void)parse_json_line(line, fields);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::config);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(fault(R"({"text":"a)"), contains("not JSON: "));
  CHECK_THAT(fault(R"({"text":"a"} {"text":"b"})"), contains("not JSON: "));
  CHECK_THAT(fault("{\"text\":\"\xff\"}"), contains("not JSON: "));
  CHECK_THAT(fault(R"({"text":"\ud800"})"), contains("not JSON: "));
  CHECK_THAT(fault("text"), contains("not JSON: "));
  CHECK_THAT(fault(""), contains("not JSON: "));
  CHECK_THAT(fault(R"([{"text":"a"}])"), contains("not an object"));
  CHECK_THAT(fault(R"("text")"), contains("not an object"));
  CHECK_THAT(fault(R"({"body":"a"})"), contains("there is no field \"text\""));
  CHECK_THAT(fault(R"({"text":["a"]})"), contains("the field \"text\" is no text"));
  CHECK_THAT(fault(R"({"text":null})"), contains("the field \"text\" is no text"));
  CHECK_THAT(fault(R"({"q":"a"})", {"", "q", "a"}), contains("there is no field \"a\""));
  CHECK(fault(std::string(100000, '[')).size() < 1000);
}
