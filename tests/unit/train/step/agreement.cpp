// Ranks that decide differently, and replicas that drift apart: seen in the step's report.
#include "train/step/agreement.hpp"

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Makes one weight of the rank's another one.
void spoil(Trainer& trainer) {
  const std::vector<TensorPart> parts = trainer.parts();
  static_cast<float*>(const_cast<void*>(static_cast<const void*>(parts.front().data)))[0] += 1e-6F;
}

struct Looks {
  std::vector<index_t> differ;  // steps whose reports say so
  std::vector<MendReport> mended;
  std::string bytes;
};

/// Six steps over `cuboids`, looked at in every second one; after the first, ranks of the replicas
/// in `bad` are spoilt.
Looks run_spoilt(const std::vector<Cuboid>& cuboids, const std::vector<index_t>& bad) {
  Config config = gpt_input();
  config.batch.sequences = 6;
  const Plan plan = plan_of_cuboids(config, cuboids);
  Looks looks;
  Remarks bytes;
  run_local_ranks(plan.ranks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    TrainOptions options = train_options(config, plan.ranks);
    options.replicas_every = 2;
    Trainer trainer(machine, plan, options, corpus(config));
    for (int step = 1; step <= 6; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string fault = difference(world.ledger(), trainer.predicted_step());
      if (!fault.empty()) bytes.add(fault);
      const index_t d = trainer.formation().coord().d;
      if (step == 1 && std::find(bad.begin(), bad.end(), d) != bad.end()) spoil(trainer);
      if (!report.replicas_differ) continue;
      const MendReport done = trainer.mend_replicas();
      if (world.rank() != 0) continue;
      looks.differ.push_back(report.step);
      looks.mended.push_back(done);
    }
  });
  looks.bytes = bytes.all();
  return looks;
}

}  // namespace

TEST_CASE("marks agree only where all are equal") {
  CHECK(marks_agree(3 * 7.0, 3 * 49.0, 3));
  CHECK_FALSE(marks_agree(7 + 7 + 8, 49 + 49 + 64, 3));
  const double most = (1 << 18) - 1, ranks = 65536;
  CHECK(marks_agree(ranks * most, ranks * most * most, index_t{65536}));
  CHECK_FALSE(marks_agree(ranks * most - 1, ranks * most * most - 2 * most + 1, index_t{65536}));
  CHECK(mark_of("a", 0, 1) != mark_of("a", 1, 1));
  CHECK(mark_of("a", 0, 1) != mark_of("b", 0, 1));
  CHECK(minority_text({1, 2, 1, 1, 5}) == "ranks 1, 4");
}

TEST_CASE("a sum over replicas is 0 only where their digests are equal") {
  for (const index_t replicas : {2, 3, 7}) {
    double sum = 0;
    for (index_t d = 0; d < replicas; ++d) sum += replica_part(0x123456789abcdefU, d, replicas, 5);
    CHECK(replicas_agree(sum));
    CHECK_FALSE(replicas_agree(sum + replica_part(1, 1, replicas, 5)));
  }
  CHECK(ReplicaDigests{{4, 9, 4}}.sound() == 0);
  CHECK(ReplicaDigests{{9, 4, 4}}.sound() == 1);
  CHECK_FALSE(ReplicaDigests{{4, 9}}.sound());
  CHECK(ReplicaDigests{{9, 4, 4}}.unlike(1) == std::vector<index_t>{0});
}

TEST_CASE("a replica that drifts is named, and gets what most have") {
  for (const std::vector<Cuboid>& cuboids :
       {std::vector<Cuboid>{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
        std::vector<Cuboid>{{2, 1, 1}, {1, 1, 1}, {1, 2, 1}}}) {
    CHECK(run_spoilt(cuboids, {}).differ.empty());
    for (const index_t bad : {0, 2}) {
      const Looks looks = run_spoilt(cuboids, {bad});
      CHECK(looks.bytes == "");
      REQUIRE(looks.differ == std::vector<index_t>{2});  // and never again
      CHECK(looks.mended.front().mended);
      CHECK(looks.mended.front().text.find(fmt::format("replica {} are not", bad)) !=
            std::string::npos);
    }
  }
}

TEST_CASE("two replicas that differ on processors of one kind end the run") {
  const Looks looks = run_spoilt({{1, 1, 1}, {1, 1, 1}}, {1});
  REQUIRE(!looks.mended.empty());
  CHECK_FALSE(looks.mended.front().mended);
  CHECK(looks.mended.front().text.find("so the run stops") != std::string::npos);
}

TEST_CASE("ranks that decide differently end at once, and are named") {
  const Config config = gpt_input();
  for (const bool differs : {false, true}) {
    std::string said;
    with_trainer(plan_of(config, Grid{}, 3), config,
                 [&](Communicator& world, Machine&, Trainer& trainer) {
                   const std::uint64_t decision = differs && world.rank() == 1 ? 6 : 7;
                   trainer.start_step(kNoFlag, decision);
                   try {
                     const StepReport report = trainer.finish_step();
                     if (report.decision != 7) throw std::runtime_error("decision is lost");
                   } catch (const AgreedError& error) {
                     if (world.rank() == 2) said = error.what();
                   }
                 });
    CHECK((said.find("rank 1 hold") != std::string::npos) == differs);
  }
}
