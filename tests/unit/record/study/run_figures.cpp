// A run's figures from files that are as they should be, and from others.
#include "record/study/run_figures.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "record/log/run_record.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

constexpr const char* kInput =
    "# The resolved input\nversion = 1\n\n[run]\nsteps = 5  # input.toml:3\n\n[model]\nlayers = 2  "
    "# "
    "input.toml:5\nffn = 64  # computed\n\n[aggregate]\nreference_batch = 8  # computed\nmethod = "
    "\"mean\"  # default\n";

/// A run of one rank and `steps` steps, of n/10 seconds each.
void write_run(const std::string& dir, int steps, bool ended = true) {
  LifeStart start;
  HostFacts host;
  host.processor = "P";
  host.cores = 2;
  start.hosts = {host};
  start.ranks = {{0, "cpu", 1}};
  start.cuboids = {{1, 2, 1}, {1, 2, 1}};
  start.sequences = 8;
  start.context = 10;
  start.input = kInput;
  start.data_hash = "d";
  (void)add_life_start(dir, start);
  LifeEnd end;
  end.steps = steps;
  end.counted = {{"j", 100 * steps}, {"checkpoint", 77}};
  end.predicted = {{"j", 100 * steps}};
  end.resident_bytes = 5;
  end.cpu_joules = 30;
  end.energy_steps = 3;
  if (ended) add_life_end(dir, end);
  std::string log;
  for (int step = 1; step <= steps; ++step)
    log += fmt::format("{{\"step\":{},\"seconds\":{},\"mfu\":{},\"imbalance\":null}}\n", step,
                       0.1 * step, 0.5);
  write_text_durably(dir + "/log.jsonl", log);
}

std::string fault_in(const std::string& dir) {
  try {
    (void)read_run_figures(dir);
  } catch (const Error& error) {
    return fmt::format("{} {}", static_cast<int>(error.code()), error.what());
  }
  return "";
}

}  // namespace

TEST_CASE("medians behind the warm-up, and sums of a step") {
  const test::ScratchFolder folder("run_figures");
  write_run(folder.path(), 10);
  const RunFigures run = read_run_figures(folder.path());
  CHECK(run.steps == 8);
  CHECK(run.seconds == Approx(0.65));
  CHECK(run.mfu == Approx(0.5));
  CHECK_FALSE(std::isfinite(run.imbalance));
  CHECK(run.counted_bytes == Approx(100));
  CHECK(run.joules == Approx(10));
  CHECK(run.shape == "2 * 1 x 2 x 1");
  CHECK(run.tokens == Approx(80));
  CHECK(run.common.at("processor") == "P (2 cores)");
}

TEST_CASE("a line that was cut is no step") {
  const test::ScratchFolder folder("run_figures");
  write_run(folder.path(), 5);
  std::string log = read_text_file(folder.path() + "/log.jsonl");
  write_text_durably(folder.path() + "/log.jsonl", log + "{\"step\":6,\"seco");
  CHECK(read_run_figures(folder.path()).steps == 3);
  write_text_durably(folder.path() + "/log.jsonl", log.substr(0, log.find('\n', 80)));
  CHECK(fault_in(folder.path()).find("log.jsonl has 1 step: the first 2 are warm-up") !=
        std::string::npos);
}

TEST_CASE("files that are not there, not whole or of a life that goes on") {
  const test::ScratchFolder folder("run_figures");
  CHECK(fault_in(folder.path()).starts_with("66 "));
  write_run(folder.path(), 5, false);
  CHECK(fault_in(folder.path()).find("78 ") == 0);
  CHECK(fault_in(folder.path()).find("has not ended in order") != std::string::npos);
  write_text_durably(folder.path() + "/run.json", R"({"format": 1, "lives": [{"end": {}}]})");
  CHECK(fault_in(folder.path()).find("lacks what a study needs") != std::string::npos);
  for (const std::string text :
       {"[]", "7", "", R"({"format": 99, "lives": []})", R"({"format": 1, "lives": [3]})",
        R"({"format": 1, "lives": []})", R"({"format": 1, "lives": [{}]})"}) {
    write_text_durably(folder.path() + "/run.json", text);
    CHECK(fault_in(folder.path()).find("74 ") == 0);
    CHECK(fault_in(folder.path()).find("run.json: is no record of a run: ") != std::string::npos);
  }
}

TEST_CASE("a record without hosts or ranks is told") {
  const test::ScratchFolder folder("run_figures");
  write_run(folder.path(), 5);
  const std::string path = folder.path() + "/run.json";
  nlohmann::json record = nlohmann::json::parse(read_text_file(path));
  record["lives"][0]["hosts"] = nlohmann::json::array();
  write_text_durably(path, record.dump());
  CHECK(fault_in(folder.path()).find("names no host, or no rank") != std::string::npos);
}

TEST_CASE("steps that the log lacks are named, in the middle and at its end") {
  const test::ScratchFolder folder("run_figures");
  write_run(folder.path(), 10);
  CHECK(read_run_figures(folder.path()).missing_steps.empty());
  const std::string path = folder.path() + "/log.jsonl";
  std::string kept;
  const std::string log = read_text_file(path);
  for (std::size_t at = 0, step = 1; at < log.size(); ++step) {
    const std::size_t end = log.find('\n', at) + 1;
    if (step != 1 && step != 5 && step < 9) kept += log.substr(at, end - at);
    at = end;
  }
  write_text_durably(path, kept);
  CHECK(read_run_figures(folder.path()).missing_steps == "steps 1, 5 and 9 to 10");
}

TEST_CASE("keys of [debug] that change no figure are passed over, the others are named") {
  const std::string debug =
      "[debug]\ncheck_finite = true  # default\nwatchdog_seconds = 5  # default\nio_seconds = 1  # "
      "default\nlost_seconds = 2  # default\ntrace = [1, 2]  # i:3\nthreads = 1  # i:4\ngraphs = "
      "true  # default\nreplan = []  # default\n";
  const auto keys = telling_keys(debug);
  CHECK(keys == std::map<std::string, std::string>{
                    {"debug.threads", "1"}, {"debug.graphs", "true"}, {"debug.replan", "[]"}});
  RunFigures a, b;
  a.folder = "a";
  b.folder = "b";
  a.common = b.common = keys;
  CHECK(difference(a, b).empty());
  b.common["debug.threads"] = "2";
  b.common["debug.graphs"] = "false";
  CHECK(difference(a, b) ==
        "debug.graphs is true in a and false in b; debug.threads is 1 in a and 2 in b");
}

TEST_CASE("keys that tell runs apart") {
  const auto keys = telling_keys(kInput);
  CHECK(keys == std::map<std::string, std::string>{
                    {"model.layers", "2"}, {"model.ffn", "64"}, {"aggregate.method", "\"mean\""}});
}

}  // namespace t3d
