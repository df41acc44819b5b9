// The points of a study: inputs, folders that hold them, and what cannot be one.
#include "tools/scaling/study_plan.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tools/scaling/local_study.hpp"

namespace t3d {
namespace {

constexpr const char* kInput = R"(
version = 1
[run]
name = "t"
tokens = 1e9
[model]
layers = 2
hidden = 32
heads = 4
context = 32
vocab = 256
[data]
train = "text.txt"
valid = "other.txt"
format = "bytes"
[[data.validation]]
name = "more"
files = "more.txt"
[batch]
sequences = 8
[checkpoint]
every_steps = 5
)";

class Case {
 public:
  Case() {
    command.input = folder.path() + "/input.toml";
    std::ofstream(command.input) << kInput;
    command.ranks = {2, 4};
  }
  [[nodiscard]] StudyPlan plan(const std::vector<std::string>& words = {}) const {
    return plan_study(command, words, 1);
  }
  [[nodiscard]] std::string fault(const std::vector<std::string>& words = {}) const {
    try {
      (void)plan(words);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  test::ScratchFolder folder{"study_plan"};
  ScalingCommand command;
};

}  // namespace

TEST_CASE("a point's input is the user's, short and without validation") {
  Case one;
  const StudyPlan plan = one.plan({"optimizer.lr=0.5"});
  REQUIRE(plan.points.size() == 2);
  CHECK(plan.title == "t");
  Origins origins;
  const Config config = parse_config(plan.points[1].input, "p", {}, &origins);
  CHECK(config.run.steps == 30);
  CHECK(config.run.tokens == Approx(0));
  CHECK(config.run.name == "t");
  CHECK(config.optimizer.lr == Approx(0.5));
  CHECK(config.data.valid.empty());
  CHECK(config.data.validations.empty());
  CHECK(config.checkpoint.every_steps == 0);
  CHECK(config.checkpoint.dir == config.run.dir + "/ckpt");
  CHECK(config.mesh.cuboid_auto);
  CHECK(config.batch.sequences == 8);
  CHECK(config.debug.threads == 1);
  // Keys that nobody wrote are not written: a written one decides.
  CHECK_FALSE(origins.contains("mesh.tokens"));
  CHECK_FALSE(origins.contains("optimizer.beta1"));
}

TEST_CASE("weak scaling, shapes and threads that are written") {
  Case one;
  one.command.weak = true;
  one.command.shapes = {"1x2x1", "2*1x1x2"};
  const StudyPlan plan = one.plan({"debug.threads=3"});
  REQUIRE(plan.points.size() == 2);
  CHECK(plan.points[0].name == "ranks-2-1x2x1");
  CHECK(plan.points[1].name == "ranks-4-2-1x1x2");
  const Config config = parse_config(plan.points[1].input, "p");
  CHECK(config.batch.sequences == 16);
  CHECK(config.mesh.replicas == 2);
  CHECK(config.mesh.cuboid == std::array<index_t, 3>{1, 1, 2});
  CHECK(config.debug.threads == 3);
}

TEST_CASE("calls that make no study") {
  Case one;
  one.command.shapes = {"1x2"};
  CHECK(one.fault().find("'1x2' is no shape") != std::string::npos);
  one.command.shapes = {"1x2x1y"};
  CHECK(one.fault().find("is no shape") != std::string::npos);
  one.command.shapes = {"1x2x1"};
  CHECK(one.fault().find("no shape has 4 ranks") != std::string::npos);
  one.command.shapes = {"auto"};
  CHECK(one.fault({"mesh.replicas=2", "batch.shares=[1, 2]"})
            .find("batch.shares is of one number of ranks") != std::string::npos);
  CHECK(one.fault({"mesh.replicas=2", "mesh.cuboids=[1, 1, 1, 1, 1, 1]"})
            .find("one number of ranks") != std::string::npos);
  CHECK(launcher_words("srun -n {ranks}  --x", 4) ==
        std::vector<std::string>{"srun", "-n", "4", "--x"});
  CHECK_THROWS(launcher_words("srun", 4));
}

TEST_CASE("a folder keeps its study, and grows") {
  Case one;
  const std::string dir = one.folder.path() + "/s";
  (void)keep_study(dir, one.plan());
  one.command.ranks = {1, 2};
  one.command.repeats = 7;
  const StudyPlan grown = keep_study(dir, one.plan());
  REQUIRE(grown.points.size() == 3);
  CHECK(grown.points[0].name == "ranks-1");
  CHECK(grown.repeats == 7);
  CHECK(read_study(dir).points.size() == 3);
  CHECK(read_text_file(dir + "/ranks-4/input.toml") == grown.points[2].input);
  CHECK_FALSE(is_finished(dir, grown.points[0], 1));
  CHECK_THROWS_AS(keep_study(dir, one.plan({"optimizer.lr=0.5"})), Error);
  one.command.weak = true;
  CHECK_THROWS_AS(keep_study(dir, one.plan()), Error);
}

TEST_CASE("a damaged record of a study is named, with what to do") {
  Case one;
  const std::string dir = one.folder.path() + "/s", file = dir + "/study.json";
  (void)keep_study(dir, one.plan());
  const std::string whole = read_text_file(file);
  std::string nameless = whole;
  nameless.replace(nameless.find("ranks-2"), 7, "../x");
  const auto changed = [&](const char* key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(whole);
    json[key] = value;
    return json.dump();
  };
  const auto points = nlohmann::json::parse(whole)["points"];
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), whole.substr(0, whole.size() / 2),
        nameless, changed("points", nlohmann::json::array()), changed("repeats", 0),
        changed("spread", -1), changed("format", 2), changed("title", "a\nb"),
        changed("points", {points[0], points[0]})}) {
    write_text_durably(file, text);
    CHECK_THROWS_WITH(read_study(dir), test::contains(file + " is damaged") &&
                                           test::contains("Remove it and call scaling") &&
                                           !test::contains("exception"));
  }
  std::filesystem::remove(file);
  CHECK(keep_study(dir, one.plan()).points.size() == 2);
  CHECK(read_text_file(file) == whole);
}

}  // namespace t3d
