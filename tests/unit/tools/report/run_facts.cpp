// What a report finds in a run folder besides the steps, and what it says of files that are none.
#include "tools/report/run_facts.hpp"

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/plan.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "support/scratch_folder.hpp"
#include "tools/report/report_page.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  [[nodiscard]] const std::string& dir() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(dir() + "/" + name).parent_path());
    std::ofstream(dir() + "/" + name, std::ios::binary) << text;
  }

 private:
  test::ScratchFolder folder_{"run_facts"};
};

LifeRecord life_from(index_t step, double started) {
  LifeRecord life;
  life.from_step = step;
  life.started = started;
  return life;
}

}  // namespace

TEST_CASE("events of run.log have the step that the log tells before them") {
  const Folder run;
  run.write("run.log",
            "---- 2026-11-23 01:07:28 start at step 0\n"
            "plan: 1 x 2 x 1 (+0.0 %): 210.1 ms: even\n"
            "warning: two\x01words\n"
            "step 10/100  loss 3.7848  norm 1.66\n"
            "plan cefdc43201ee8073: sequences by slab 6+6 -> 8+4; slowest is replica 1: 0.04 s\n"
            "step 20/100  loss 3.7\n"
            "checkpoint runs/x/ckpt/step-00000025.lineage-1 in 0.21 s beside the steps\n"
            "checkpoint             0.216       0.230       0.244     1.4%\n"
            "---- 2026-11-23 02:00:00 start at step 25\n"
            "error: gone");
  const ReportJson events = read_run_events(run.dir());
  REQUIRE(events.size() == 5);
  CHECK(events[0]["kind"] == "start");
  CHECK(events[1]["text"] == "two\\x01words");
  CHECK(events[2]["kind"] == "plan");
  CHECK(events[2]["step"] == 10);
  CHECK(events[3]["kind"] == "checkpoint");
  CHECK(events[3]["step"] == 25);
  CHECK(events[4]["step"] == 25);
}

TEST_CASE("plans say what each rank has, and obsolete ones are left out") {
  const Folder run;
  const Plan plan = test::plan_of_cuboids(test::gpt_input(), {{2, 1, 1}, {1, 2, 1}});
  run.write("plans/0.toml", plan.text());
  run.write("plans/30.toml", plan.text());
  run.write("plans/notes.txt", "no plan");
  std::vector<std::string> notes;
  const double later = 4e9, earlier = 0;
  ReportJson plans =
      read_run_plans(run.dir(), {life_from(0, earlier), life_from(20, earlier)}, notes);
  REQUIRE(plans.size() == 2);
  CHECK(plans[0]["after"] == 0);
  CHECK(plans[0]["hash"] == plan.hash());
  CHECK(plans[0]["slabs"] == std::vector<index_t>{0, 1, 2, 2});
  const index_t first = plan.replicas[1].ffn.size(0), ffn = plan.model.ffn;
  CHECK(plans[0]["widths"]["ffn"] == std::vector<index_t>{ffn, ffn, first, ffn - first});
  CHECK_FALSE(plans[1].contains("slabs"));
  // A life that went on from step 20 after the plan of step 30 was written has made it obsolete.
  plans = read_run_plans(run.dir(), {life_from(0, earlier), life_from(20, later)}, notes);
  REQUIRE(plans.size() == 1);
  CHECK(plans[0]["after"] == 0);
  CHECK(notes.empty());
}

TEST_CASE("a file that cannot be understood is told, and the rest is there") {
  const Folder run;
  run.write("log.jsonl", "");
  run.write("ckpt/none", "");
  run.write("run.json", "[1]");
  run.write("plans/0.toml", "nonsense");
  run.write("resolved.toml",
            "[run]\nname = \"t\"  # default\nsteps = 20\n[data]\ntrain = [\"a\", \"b\"]\n");
  const RunFacts facts = read_run_facts(run.dir());
  REQUIRE(facts.notes.size() == 2);
  CHECK_THAT(facts.notes[0], test::contains("run.json is no record of a run: it is a JSON array"));
  CHECK_THAT(facts.notes[1], test::contains("plans/0.toml is not a plan"));
  CHECK(facts.input.at("run.steps") == "20");
  CHECK(facts.input.at("data.train") == "[a, b]");
  CHECK(facts.json["record"].is_null());
  CHECK_THROWS_AS(read_run_facts(run.dir() + "/none"), Error);
}

TEST_CASE("inputs differ in keys, and some matter to the losses") {
  const auto differences = input_differences(
      {{{"run.dir", "a"}, {"model.layers", "2"}, {"log.json", "true"}},
       {{"run.dir", "b"}, {"model.layers", "4"}, {"log.json", "true"}, {"optimizer.lr", "1"}}});
  REQUIRE(differences.size() == 2);
  CHECK(differences[0].key == "model.layers");
  CHECK(differences[0].matters);
  CHECK(differences[1].values == std::vector<std::string>{"", "1"});
  CHECK_FALSE(differences[1].matters);
}

TEST_CASE("what is in a page cannot end the element that it stands in") {
  ReportRun run;
  run.json["name"] = "</script><b>";
  run.steps = std::string("\0\xff\x10", 3);
  const std::string page = report_page({{"version", 1}}, {run});
  CHECK(page.starts_with(kReportMark));
  CHECK(page.find("</script><b>") == std::string::npos);
  CHECK_THAT(page, test::contains("\\u003c/script>\\u003cb>"));
  CHECK_THAT(page, test::contains("id=\"steps-0\">AP8Q</script>"));
  CHECK(page.find("{{") == std::string::npos);
  CHECK(base64_of("f") == "Zg==");
  CHECK(base64_of("fo") == "Zm8=");
  CHECK(base64_of("foobar") == "Zm9vYmFy");
  CHECK(base64_of("").empty());
}

}  // namespace t3d
