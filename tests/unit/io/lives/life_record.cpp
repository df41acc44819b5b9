// The record of a life: its line, what is found out of a life that was killed, what was lost.
#include "io/lives/life_record.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace t3d {
namespace {

/// Went on from step 20 and left its record open.
LifeRecord open_life() {
  LifeRecord life;
  life.life = 2;
  life.job = "815";
  life.restart = 1;
  life.nodes = 4;
  life.ranks = 16;
  life.started = 1763809000.1234;
  life.why = "continued after: asked to stop by a signal";
  life.from_step = 20;
  life.lineage = 0;
  life.checkpoint = "r/ckpt/step-00000020";
  life.first_step_seconds = 1.5;
  return life;
}

}  // namespace

TEST_CASE("the line of a life has every field") {
  const std::string line = format_life(open_life());
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::json::parse(line) == nlohmann::json{{"life", 2},
                                                      {"job", "815"},
                                                      {"restart", 1},
                                                      {"nodes", 4},
                                                      {"ranks", 16},
                                                      {"started", 1763809000.123},
                                                      {"why", open_life().why},
                                                      {"lineage", 0},
                                                      {"from_step", 20},
                                                      {"checkpoint", "r/ckpt/step-00000020"},
                                                      {"first_step_seconds", 1.5},
                                                      {"ended", nullptr},
                                                      {"code", nullptr},
                                                      {"reason", nullptr},
                                                      {"step", nullptr},
                                                      {"saved_step", nullptr},
                                                      {"lost_steps", nullptr}});
  LifeRecord whole = open_life();
  whole.ended = 1763809100.5;
  whole.code = 75;
  whole.reason = "with \xff and \"quotes\"\nand lines";
  whole.step = 30;
  whole.saved_step = 25;
  whole.lost_steps = 5;
  const auto again = parse_life(format_life(whole));
  REQUIRE(again);
  CHECK(format_life(*again) == format_life(whole));
  CHECK(again->code == 75);
  CHECK(again->lost_steps == 5);
}

TEST_CASE("lines that are no record of a life, or a strange one") {
  for (const char* line : {"", "{", "null", "[1]", R"({"step":3})", R"({"life":0})",
                           R"({"life":-1})", R"({"life":1.5})", R"({"life":"1"})",
                           R"({"life":18446744073709551615})", R"({"life":1,"why":"cut)"})
    CHECK_FALSE(parse_life(line));
  const auto life = parse_life(
      R"({"life":3,"job":815,"ranks":-4,"step":-1,"code":300,"from_step":1e99,"reason":{},"why":7})");
  REQUIRE(life);
  CHECK(life->life == 3);
  CHECK_FALSE(life->job);
  CHECK(life->ranks == 0);
  CHECK_FALSE(life->step);
  CHECK_FALSE(life->code);
  CHECK_FALSE(life->from_step);
  CHECK_FALSE(life->reason);
}

TEST_CASE("a life that left its record open is closed with what is there") {
  SECTION("killed: the log and the checkpoints tell how far it came") {
    const LifeRecord life = closed_life(open_life(), {{}, {}, 33, 30});
    CHECK_FALSE(life.code);
    CHECK_FALSE(life.ended);
    CHECK(life.reason == "ended without a word");
    CHECK(life.step == 33);
    CHECK(life.saved_step == 30);
  }
  SECTION("killed between a checkpoint and its line") {
    CHECK(closed_life(open_life(), {{}, {}, 29, 30}).step == 30);
  }
  SECTION("killed before its first checkpoint: it has that from which it went on") {
    const LifeRecord life = closed_life(open_life(), {{}, {}, 23, {}});
    CHECK(life.saved_step == 20);
    CHECK(life.step == 23);
  }
  SECTION("killed before its first step") {
    LifeRecord early = open_life();
    early.first_step_seconds.reset();
    CHECK(closed_life(early, {{}, {}, {}, 20}).step == 20);
  }
  SECTION("killed before it went on: the log is that of the life before") {
    LifeRecord early = open_life();
    early.from_step.reset();
    early.checkpoint.reset();
    const LifeRecord life = closed_life(early, {{}, {}, 33, 30});
    CHECK_FALSE(life.step);
    CHECK_FALSE(life.saved_step);
  }
  SECTION("without a log nobody knows how far it came") {
    CHECK_FALSE(closed_life(open_life(), {{}, {}, {}, 30}).step);
  }
  SECTION("another rank said why it ended") {
    const ExitRecord exit{ExitCode::peer_lost, "rank 3 does not answer", 31, 30};
    const LifeRecord life = closed_life(open_life(), {exit, 1763809100.0, 33, 30});
    CHECK(life.code == 76);
    CHECK(life.reason == "rank 3 does not answer");
    CHECK(life.step == 31);
    CHECK(life.saved_step == 30);
    CHECK(life.ended == 1763809100.0);
  }
}

TEST_CASE("steps lost are those behind the checkpoint from which the run goes on") {
  LifeRecord life = open_life();
  CHECK_FALSE(lost_steps(life, 20, false));  // how far did it come?
  life.step = 33;
  life.saved_step = 30;
  CHECK(lost_steps(life, 30, false) == 3);
  CHECK(lost_steps(life, 25, false) == 8);   // the newest was damaged
  CHECK(lost_steps(life, 10, false) == 23);  // all of its own were
  CHECK(lost_steps(life, 0, true) == 3);     // -r never: the checkpoints stay
  CHECK(lost_steps(life, 20, true) == 3);    // -r OLDER
  life.step = 30;
  CHECK(lost_steps(life, 30, false) == 0);

  // Started anew and killed without a checkpoint: the next one goes on with those before.
  life.from_step = 0;
  life.saved_step.reset();
  life.step = 7;
  CHECK(lost_steps(life, 30, false) == 7);
  CHECK(lost_steps(life, 0, false) == 7);
  life.from_step.reset();
  life.step.reset();
  CHECK(lost_steps(life, 30, false) == 0);
}

}  // namespace t3d
