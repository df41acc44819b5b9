// Checkpoints that processes beside the ranks write from a snapshot.
#include "io/writer/background_save.hpp"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/checkpoint/state_digest.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/lock/run_lock.hpp"
#include "io/posix_file.hpp"
#include "io/writer/writer_task.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/remarks.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

namespace fs = std::filesystem;

constexpr double kLimit = 120;  // seconds

/// Names in a folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

/// Processes that this one has started.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) all.push_back(child);
  }
  return all;
}

index_t loaded_wrong(const std::string& path, unsigned layout, int ranks, index_t step) {
  const auto tensors = small_tensors();
  std::atomic<index_t> wrong{0};
  run_local_ranks(ranks, [&](Communicator& world) {
    RankState state = make_state(tensors, layout, ranks, world.rank());
    load_checkpoint(world, path, state.parts);
    wrong += wrong_elements(tensors, state, step);
  });
  return wrong;
}

TEST_CASE("state may change while it is saved, and any layout loads it", "[background]") {
  const auto tensors = small_tensors();
  for (const int ranks : {1, 2, 5})
    for (const index_t per_file : {index_t{0}, index_t{1}, index_t{2}}) {
      const ScratchFolder folder("background");
      std::string path, digest, expected;
      Remarks remarks;
      run_local_ranks(ranks, [&](Communicator& world) {
        BackgroundSave save(world, {folder.path(), per_file, 2, 0, true}, "", kLimit);
        for (const index_t step : {4, 8}) {
          RankState state = make_state(tensors, static_cast<unsigned>(step), ranks, world.rank());
          fill(tensors, state, step);
          const std::string now = whole_digest(world, digest_of_parts(state.parts, ""));
          save.prepare(state.parts);
          save.begin({step, "r", {{"input", "x"}}}, state.parts);
          fill(tensors, state, step + 1);
          remarks.unless(save.pending() == step, "it is under way");
          const SaveOutcome outcome = save.settle(2);
          remarks.unless(save.pending() == -1 && !save.busy(), "it has ended");
          remarks.unless(!outcome.fault, "no fault");
          remarks.unless(outcome.step == step, "its step");
          remarks.unless(outcome.stall_seconds <= outcome.seconds, "its times");
          if (world.rank() != 0) continue;
          remarks.unless(outcome.writer_cpu_seconds > 0, "its work");
          path = outcome.path;
          digest = outcome.digest;
          expected = now;
        }
      });
      CHECK(remarks.all() == "");
      CHECK(path == folder.path() + "/step-00000008");
      CHECK(names_in(folder.path()).size() == 2);
      CHECK(digest == expected);
      CHECK(loaded_wrong(path, 3, 3, 8) == 0);
      run_local_ranks(1, [&](Communicator& world) {
        CHECK(open_checkpoint(world, path).state.texts.at(kDigestText) == digest);
      });
    }
}

TEST_CASE("it ends by itself, without anybody waiting", "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  Remarks remarks;
  run_local_ranks(2, [&](Communicator& world) {
    BackgroundSave save(world, {folder.path(), 0, 2, 0, true}, "", kLimit);
    RankState state = make_state(tensors, 1, 2, world.rank());
    fill(tensors, state, 6);
    save.prepare(state.parts);
    save.begin({6, "r", {}}, state.parts);
    std::optional<SaveOutcome> outcome;
    while (!outcome) {  // as a step's report would say it
      std::int32_t busy = save.busy();
      world.all_reduce({&busy, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
      if (busy == 0) outcome = save.advance(2);
    }
    remarks.unless(outcome->path == folder.path() + "/step-00000006", "published");
    if (outcome->fault) remarks.add(outcome->fault->what());
  });
  CHECK(remarks.all() == "");
  CHECK(loaded_wrong(folder.path() + "/step-00000006", 9, 1, 6) == 0);
}

TEST_CASE("numbers that are not finite are not published", "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  Remarks remarks;
  run_local_ranks(2, [&](Communicator& world) {
    BackgroundSave save(world, {folder.path(), 0, 2, 0, true}, "", kLimit);
    std::vector<float> numbers(12, 1.0F);
    std::vector<TensorPart> parts{
        {"w", DType::f32, 4, 6, false, numbers.data(), {{{2 * world.rank(), 0, 2, 6}, 0}}}};
    if (world.rank() == 1) numbers[7] = std::numeric_limits<float>::infinity();
    save.prepare(parts);
    save.begin({3, "r", {}}, parts);
    const SaveOutcome outcome = save.settle(2);
    remarks.unless(outcome.not_finite == "w", "the tensor is named");
    remarks.unless(outcome.path.empty(), "nothing is published");
  });
  CHECK(remarks.all() == "");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("what goes wrong in the process is known to all, and the next save works",
          "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  Remarks remarks;
  run_local_ranks(3, [&](Communicator& world) {
    BackgroundSave save(world, {folder.path(), 1, 2, 0, true}, "", kLimit);
    RankState state = make_state(tensors, 1, 3, world.rank());
    fill(tensors, state, 1);
    save.prepare(state.parts);
    save.begin({1, "r", {}}, state.parts);
    if (world.rank() == 0)  // before or while the processes write
      for (const std::string& name : names_in(folder.path()))
        fs::remove_all(folder.path() + "/" + name);
    const SaveOutcome outcome = save.settle(2);
    remarks.unless(outcome.fault && outcome.fault->code() == ExitCode::io, "a fault of files");
    remarks.unless(outcome.path.empty(), "nothing is published");
    save.begin({1, "r", {}}, state.parts);
    remarks.unless(save.settle(2).path == folder.path() + "/step-00000001", "the next one is");
  });
  CHECK(remarks.all() == "");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("an answer counts only of a process that has ended by itself", "[background]") {
  TaskResult said;
  said.text = "step-7";
  said.digest = 12;
  const std::string answer = text_of(said);
  CHECK_FALSE(result_of(answer, "").fault);
  CHECK(result_of(answer, "").digest == 12);
  const TaskResult ended = result_of(answer, "it took longer than debug.io_seconds");
  REQUIRE(ended.fault);
  CHECK(ended.fault->code() == ExitCode::io);
  CHECK(ended.text == "step-7");  // what was published stays published
  const TaskResult cut = result_of(answer.substr(0, answer.size() - 1), "");
  CHECK(cut.fault);
  CHECK(cut.text.empty());
  said.fault = Error(ExitCode::unavailable, "its own");
  CHECK(result_of(text_of(said), "by signal 9").fault->code() == ExitCode::unavailable);
}

TEST_CASE("a process that takes too long is ended", "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  Remarks remarks;
  run_local_ranks(1, [&](Communicator& world) {
    BackgroundSave save(world, {folder.path(), 1, 2, 0, true}, "", 0.05);
    RankState state = make_state(tensors, 1, 1, 0);
    fill(tensors, state, 1);
    save.prepare(state.parts);
    save.begin({1, "r", {}}, state.parts);
    for (const pid_t child : children()) ::kill(child, SIGSTOP);
    const SaveOutcome outcome = save.settle(2);
    remarks.unless(outcome.fault && std::string(outcome.fault->what()).find("debug.io_seconds") !=
                                        std::string::npos,
                   "the limit is named");
  });
  CHECK(remarks.all() == "");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a lost lock is found out before publishing", "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  Remarks remarks;
  const RunLock lock({folder.path()}, "r", [](const std::string&) {});
  run_local_ranks(2, [&](Communicator& world) {
    CheckpointOptions options{folder.path(), 1, 2, 0, true};
    if (world.rank() == 0) options.lock = &lock.lease();
    BackgroundSave save(world, options, "", kLimit);
    RankState state = make_state(tensors, 1, 2, world.rank());
    fill(tensors, state, 1);
    save.prepare(state.parts);
    save.begin({1, "r", {}}, state.parts);
    if (world.rank() == 0)
      write_text_durably(folder.path() + "/run.lock", format_owner(this_process("other")));
    const SaveOutcome outcome = save.settle(2);
    remarks.unless(outcome.fault && outcome.fault->code() == ExitCode::unavailable, "lost");
  });
  CHECK(remarks.all() == "");
  for (const char* name : {"/run.lock", "/.run.lock.last"}) fs::remove(folder.path() + name);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("who ends while it is written leaves no process", "[background]") {
  const auto tensors = small_tensors();
  const ScratchFolder folder("background");
  run_local_ranks(2, [&](Communicator& world) {
    BackgroundSave save(world, {folder.path(), 1, 2, 0, true}, "", kLimit);
    RankState state = make_state(tensors, 1, 2, world.rank());
    fill(tensors, state, 1);
    save.prepare(state.parts);
    save.begin({1, "r", {}}, state.parts);
  });
  CHECK(children().empty());
  for (const std::string& name : names_in(folder.path()))
    CHECK(name.find("partial") != std::string::npos);
}

TEST_CASE("the digest knows every element and its place, not the cuts", "[background]") {
  std::vector<float> numbers(24);
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = static_cast<float>(n / 2);
  const auto digest = [&](const char* name, std::vector<PlacedBox> boxes, index_t cols) {
    return digest_of_parts(
        {{name, DType::f32, 24 / cols, cols, false, numbers.data(), std::move(boxes)}}, "");
  };
  const std::uint64_t whole = digest("a", {{{0, 0, 4, 6}, 0}}, 6);
  CHECK(digest("a", {{{0, 0, 1, 6}, 0}, {{1, 0, 3, 6}, 6}}, 6) == whole);
  CHECK(is_digest(digest_text(whole)));
  CHECK(is_digest(digest_text(0)));
  CHECK_FALSE(is_digest("zz\n"));
  CHECK(digest("b", {{{0, 0, 4, 6}, 0}}, 6) != whole);
  CHECK(digest("a", {{{0, 0, 3, 6}, 0}}, 6) != whole);
  CHECK(digest_of_parts({{"a", DType::f32, 4, 6, false, numbers.data(), {{{0, 0, 4, 6}, 0}}}},
                        "a") == 0);
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const float before = numbers[n];
    numbers[n] = std::nextafter(before, 100.0F);
    CHECK(digest("a", {{{0, 0, 4, 6}, 0}}, 6) != whole);
    numbers[n] = before;
  }
  for (std::size_t n = 2; n < numbers.size(); ++n) {  // neighbours may be equal, these are not
    std::swap(numbers[n], numbers[n - 2]);
    CHECK(digest("a", {{{0, 0, 4, 6}, 0}}, 6) != whole);
    std::swap(numbers[n], numbers[n - 2]);
  }
  std::fill(numbers.begin(), numbers.end(), 0.0F);
  CHECK(digest("a", {{{0, 0, 4, 6}, 0}}, 6) != 0);  // zeros are numbers, too
}

}  // namespace
}  // namespace t3d::test
