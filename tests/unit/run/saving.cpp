// When the checkpoints of a job come and go, as its steps report.
#include "run/saving.hpp"

#include <filesystem>
#include <thread>

#include "core/run_event.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/remarks.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

Config config_in(const std::string& folder, AsyncRule rule) {
  Config config;
  config.checkpoint.dir = folder;
  config.checkpoint.keep = 1;
  config.checkpoint.asynchronous = rule;
  config.debug.io_seconds = 120;
  return config;
}

index_t folders_in(const std::string& folder) {
  index_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    folders += entry.path().filename().string().find("partial") == std::string::npos;
  return folders;
}

/// Two ranks that save: body(saving, save(step, now), world).
template <class Body>
void with_ranks(const std::string& folder, AsyncRule rule, Remarks& said, const Body& body) {
  const Config config = config_in(folder, rule);
  const auto tensors = small_tensors();
  run_local_ranks(2, [&](Communicator& world) {
    const auto speak = [&](const std::string& text) {
      if (world.rank() == 0) said.add(text);
    };
    Saving saving(world, config, nullptr, -1,
                  {[](const std::string&) {}, speak, [] {}, [](double) {}, {}});
    RankState state = make_state(tensors, 1, 2, world.rank());
    saving.prepare(state.parts, "");
    const auto save = [&](index_t step, bool now) {
      fill(tensors, state, step);
      saving.save({step, "r", {}}, state.parts, now, false);
    };
    body(saving, save, world);
  });
}

/// Until no process is at work on any rank.
void wait_for_processes(Saving& saving, Communicator& world) {
  for (;;) {
    std::int32_t busy = saving.flags() != 0;
    world.all_reduce({&busy, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (busy == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_CASE("flags of a step that a GPU had begun before say nothing of a process", "[saving]") {
  const ScratchFolder folder("saving");
  Remarks remarks, warnings;
  with_ranks(
      folder.path(), AsyncRule::on, warnings, [&](Saving& saving, auto save, Communicator& world) {
        save(5, false);
        saving.step_done(6, kNoFlag, true);  // begun before the process: it knows nothing of it
        remarks.unless(saving.under_way(), "step 6 knows nothing");
        saving.step_done(7, kSaving, true);
        remarks.unless(saving.under_way(), "a process is at work");
        wait_for_processes(saving, world);
        saving.step_done(8, kNoFlag, true);  // now another one publishes
        saving.step_done(9, kNoFlag, true);
        remarks.unless(saving.under_way() && saving.last_saved() == -1, "step 9 knows nothing");
        wait_for_processes(saving, world);
        saving.step_done(10, kNoFlag, true);
        remarks.unless(!saving.under_way() && saving.last_saved() == 5, "it is published");
      });
  CHECK(remarks.all() == "");
  CHECK(warnings.all() == "");
  CHECK(folders_in(folder.path()) == 1);
}

TEST_CASE("one checkpoint more stays until a step has gone on from the newest", "[saving]") {
  for (const AsyncRule rule : {AsyncRule::on, AsyncRule::off}) {
    const ScratchFolder folder("saving");
    Remarks remarks, warnings;
    with_ranks(folder.path(), rule, warnings, [&](Saving& saving, auto save, Communicator& world) {
      const auto count = [&] {
        saving.end_removal(60);
        world.barrier();
        const index_t folders = folders_in(folder.path());
        world.barrier();
        return folders;
      };
      save(1, true);
      save(2, true);
      remarks.unless(count() == 2, "no step has gone on");
      saving.step_done(3, kNoFlag, false);
      remarks.unless(count() == 2, "a step that was passed over proves nothing");
      save(3, true);
      remarks.unless(count() == 2, "two again");
      saving.step_done(4, kNoFlag, true);
      // Without a lock nothing of others is removed, and rank 0 has none here.
      remarks.unless(saving.last_saved() == 3, "the newest");
      save(4, true);
      remarks.unless(count() == 2, "and one more");
    });
    CHECK(remarks.all() == "");
    CHECK(warnings.all() == "");
  }
}

}  // namespace
}  // namespace t3d::test
