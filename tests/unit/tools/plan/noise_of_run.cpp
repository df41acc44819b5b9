// The noise scale of a run in sequences of the planned context, whatever the run's own was.
#include "tools/plan/noise_of_run.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

/// 60 steps of 256 tokens, with a noise scale of 12 of the run's sequences.
void write_log(const std::string& dir) {
  std::string log;
  for (int step = 1; step <= 60; ++step)
    log += fmt::format(
        "{{\"step\":{},\"tokens\":256,\"gradient_signal\":0.5,\"gradient_noise\":6.0}}\n", step);
  write_text_durably(dir + "/log.jsonl", log);
}

/// Of sequences of 16 tokens.
void write_input(const std::string& dir) {
  write_text_durably(dir + "/resolved.toml",
                     "version = 1\n[run]\nsteps = 60\n[model]\nlayers = 1\nhidden = 8\nheads = 1\n"
                     "vocab = 256\ncontext = 16\n[data]\ntrain = \"text.txt\"\nformat = \"bytes\"\n"
                     "[batch]\nsequences = 16\n");
}

std::string life(index_t first_step, index_t context) {
  return fmt::format("{{\"first_step\": {}, \"context\": {}}}", first_step, context);
}

}  // namespace

TEST_CASE("the noise scale counts in planned sequences") {
  const ScratchFolder folder("noise_of_run");
  const std::string& dir = folder.path();
  write_log(dir);
  const auto check = [&](index_t planned, index_t own) {
    const NoiseOfRun run = noise_of_run(dir, planned);
    const auto tokens = static_cast<double>(planned);
    CHECK(run.context == own);
    CHECK(run.law.at(30) == Approx(12 * static_cast<double>(own) / tokens));
    CHECK(run.law.sequences == Approx(256 / tokens));
  };
  SECTION("nothing says the run's own: it is the planned one") {
    check(32, 32);
    check(64, 64);
  }
  SECTION("its input says it") {
    write_input(dir);
    check(32, 16);
  }
  SECTION("its record says it, before its input") {
    write_input(dir);
    write_text_durably(dir + "/run.json", "{\"lives\": [" + life(0, 64) + "]}");
    check(64, 64);
    check(32, 64);
    check(128, 64);
  }
  SECTION("each life has its own") {
    // Thirty steps of 64 tokens a sequence, thirty of 128, whose noise is that of two. A life
    // that went too far is rolled back.
    write_text_durably(dir + "/run.json", "{\"lives\": [" + life(0, 64) + ", " + life(40, 32) +
                                              ", " + life(30, 128) + "]}");
    const NoiseOfRun run = noise_of_run(dir, 64);
    CHECK(run.context == 128);
    CHECK(run.law.at(10) < 12);
    CHECK(run.law.at(50) > 18);
  }
  SECTION("a damaged record says nothing") {
    for (const char* text : {"", "[]", "{\"lives\": 3}", "{\"lives\": [7, {\"context\": -4}]}"}) {
      write_text_durably(dir + "/run.json", text);
      check(32, 32);
    }
  }
}

TEST_CASE("a log that does not know the noise is answered") {
  const ScratchFolder folder("noise_of_run");
  CHECK_THROWS_AS(noise_of_run(folder.path(), 32), Error);
  write_text_durably(folder.path() + "/log.jsonl", "{\"step\":1,\"tokens\":256}\n");
  CHECK_THROWS_WITH(noise_of_run(folder.path(), 32), contains("has no noise scale"));
}

}  // namespace t3d::test
