// run.json over several lives: what stays the same stands once, what cannot be read is put aside.
#include "record/log/run_record.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

LifeStart life_of(index_t number) {
  LifeStart start;
  start.life = number;
  start.run = "t-1";
  start.program.version = "0.1";
  HostFacts host;
  host.name = "n\xff";  // no UTF-8
  host.gpus.push_back({"H", "GPU-1", "550", index_t{80} << 30});
  start.hosts = {host, host};
  start.ranks = {{0, "cpu", 2}, {1, "cpu", 2}};
  start.input = "version = 1\n";
  start.plan = "ranks = 2\n";
  start.predicted_step = {{"j", 12}, {"world", 3}};
  return start;
}

Json record_in(const std::string& dir) { return Json::parse(read_text_file(dir + "/run.json")); }

}  // namespace

TEST_CASE("what lives have in common stands once in run.json") {
  const test::ScratchFolder folder("run_record");
  CHECK_FALSE(add_life_start(folder.path(), life_of(1)));
  LifeEnd end;
  end.code = 75;
  end.counted = {{"j", 120}};
  end.cpu_joules = 7;
  add_life_end(folder.path(), end);
  LifeStart second = life_of(2);
  second.input = "version = 1\n[run]\n";
  CHECK_FALSE(add_life_start(folder.path(), second));

  const Json record = record_in(folder.path());
  REQUIRE(record["lives"].size() == 2);
  const Json &before = record["lives"][0], &now = record["lives"][1];
  CHECK(before["plan"] == now["plan"]);
  CHECK(record["plans"].size() == 1);
  CHECK(record["inputs"].size() == 2);
  CHECK(record["inputs"][before["input"].get<std::string>()] == "version = 1\n");
  CHECK(record["inputs"][now["input"].get<std::string>()] == second.input);
  CHECK(record["plans"][text_hash("ranks = 2\n")] == "ranks = 2\n");
  CHECK(record["hosts"].size() == 1);
  CHECK(now["hosts"].size() == 2);
  CHECK(record["ranks"][now["ranks"].get<std::string>()]["count"] == 2);
  CHECK(before["end"]["code"] == 75);
  CHECK(before["end"]["counted_bytes"]["j"] == 120);
  CHECK(before["end"]["cpu_joules"] == 7);
  CHECK(before["end"]["gpu_joules"].is_null());
  CHECK(now["end"].is_null());
  CHECK(now["job"].is_null());
  CHECK(now["predicted_step_bytes"]["world"] == 3);
}

TEST_CASE("a run.json that is none stays under another name") {
  const test::ScratchFolder folder("run_record");
  const std::string path = folder.path() + "/run.json";
  for (const std::string name : {".damaged", ".damaged-2"}) {
    write_text_durably(path, "{\"lives\": [" + name);
    CHECK_THROWS(add_life_end(folder.path(), {}));
    const auto put_aside = add_life_start(folder.path(), life_of(1));
    REQUIRE(put_aside);
    CHECK(put_aside->path == path + name);
    CHECK(put_aside->fault == "it is no JSON");
    CHECK(read_text_file(path + name) == "{\"lives\": [" + name);
    CHECK(record_in(folder.path())["lives"].size() == 1);
  }
}

TEST_CASE("JSON of other kinds is no record, and is put aside whole") {
  const std::pair<std::string, std::string> cases[]{
      {"[1, 2]", "it is a JSON array, no object"},
      {"7", "it is a JSON number, no object"},
      {"{}", "its format is null, and this program knows 1"},
      {R"({"format": 99, "lives": []})", "its format is 99, and this program knows 1"},
      {R"({"format": "1", "lives": []})", "its format is \"1\", and this program knows 1"},
      {R"({"format": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
       "its brackets nest too deep"},
      {R"({"format": 1})", "lives is no list"},
      {R"({"format": 1, "lives": {"a": 1}})", "lives is no list"},
      {R"({"format": 1, "lives": [{}, 2]})", "lives[1] is no object"},
      {R"({"format": 1, "lives": [{"end": 3}]})", "lives[0].end is no object"},
      {R"({"format": 1, "lives": [], "hosts": []})", "hosts is no object"}};
  for (const auto& [text, fault] : cases) {
    const test::ScratchFolder folder("run_record");
    const std::string path = folder.path() + "/run.json";
    CHECK(run_record_fault(text) == fault);
    write_text_durably(path, text);
    CHECK_THROWS(add_life_end(folder.path(), {}));
    const auto put_aside = add_life_start(folder.path(), life_of(4));
    REQUIRE(put_aside);
    CHECK(put_aside->fault == fault);
    CHECK(read_text_file(put_aside->path) == text);
    CHECK(record_in(folder.path())["lives"][0]["life"] == 4);
    CHECK(run_record_fault(read_text_file(path)).empty());
    add_life_end(folder.path(), {});
  }
}

}  // namespace t3d
