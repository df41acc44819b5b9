// Which checkpoint a run goes on from, and which ones retention may remove, after starts from
// nothing and from older checkpoints.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/manifest.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/lock/run_lock.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;
namespace fs = std::filesystem;

namespace {

/// A run that saves, ends and starts again in one folder, as the main job does.
class Job {
 public:
  /// `restart` as the input has it: "auto", "never" or the name of a checkpoint. The step to go on
  /// from, -1 for none.
  index_t start(const std::string& restart) {
    warnings = "";
    const Warn warn = [this](const std::string& text) { warnings += text + "\n"; };
    index_t step = -1;
    run_local_ranks(2, [&](Communicator& world) {
      std::optional<CheckpointInfo> from;
      if (restart == "auto")
        from = find_checkpoint(world, folder_.path(), warn);
      else if (restart != "never")
        from = open_checkpoint(world, at(restart));
      const Lineage lineage = next_lineage(world, folder_.path(), from, warn);
      if (world.rank() != 0) return;
      lineage_ = lineage;
      if (from) step = from->state.step;
    });
    return step;
  }
  void save(index_t step) {
    run_local_ranks(2, [&](Communicator& world) {
      const auto tensors = small_tensors();
      RankState state = make_state(tensors, 3, 2, world.rank());
      fill(tensors, state, step);
      save_checkpoint(world, {folder_.path(), 1, 2, 100, true}, {step, "r", {}, lineage_},
                      state.parts, true);
    });
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      all.insert(entry.path().filename().string());
    return all;
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  void damage(const std::string& name) const {
    std::ofstream(at(name) + "/MANIFEST.json", std::ios::trunc) << "{}\n";
  }
  [[nodiscard]] const Lineage& lineage() const { return lineage_; }
  std::string warnings;

 private:
  ScratchFolder folder_{"lineage"};
  Lineage lineage_;
};

bool contains_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a run that goes on from its newest checkpoint stays in its lineage") {
  Job job;
  CHECK(job.start("auto") == -1);
  for (const index_t step : {10, 20, 30}) job.save(step);
  CHECK(job.names() == std::set<std::string>{"step-00000020", "step-00000030"});
  CHECK(job.start("auto") == 30);
  CHECK(job.lineage() == Lineage{});
  CHECK(job.start("step-00000030/") == 30);
  CHECK(job.lineage() == Lineage{});
  CHECK(job.warnings.empty());
}

TEST_CASE("started anew in a folder with higher steps: auto follows, retention counts its own") {
  Job job;
  job.start("auto");
  for (const index_t step : {90, 100, 110}) job.save(step);
  CHECK(job.start("never") == -1);
  CHECK(job.lineage().number == 1);
  CHECK(job.lineage().parent.empty());
  CHECK(contains_text(job.warnings, "step-00000110"));
  CHECK(job.start("auto") == 110);  // a lineage begins with its first checkpoint
  job.start("never");
  job.save(5);
  CHECK(job.start("auto") == 5);
  CHECK(contains_text(job.warnings, "step-00000110"));
  for (const index_t step : {10, 15}) job.save(step);
  CHECK(job.start("auto") == 15);
  CHECK(job.names() == std::set<std::string>{"step-00000100", "step-00000110",
                                             "step-00000010.lineage-1", "step-00000015.lineage-1"});
  // The first one is gone back to: a third lineage, that the second does not hide.
  CHECK(job.start("step-00000110") == 110);
  CHECK(job.lineage() == Lineage{2, "step-00000110", "r", 110, 0});
  job.save(120);
  CHECK(job.start("auto") == 120);
  CHECK(job.names().size() == 5);
}

TEST_CASE("continued from an older checkpoint: what was left behind is never taken") {
  Job job;
  job.start("auto");
  for (const index_t step : {100, 110, 120}) job.save(step);  // 100 is a major one
  CHECK(job.start("step-00000110") == 110);
  CHECK(job.lineage() == Lineage{1, "step-00000110", "r", 110, 0});
  job.save(115);
  job.damage("step-00000115.lineage-1");
  // Its manifest says nothing any more, but its name does: not 120, which it left behind. What it
  // came from is unknown, so nothing is chosen.
  CHECK_THROWS_WITH(job.start("auto"), t3d::test::contains("no valid checkpoint"));
  job.start("step-00000110");
  job.save(118);
  CHECK(job.lineage().number == 2);
  job.save(119);
  job.damage("step-00000118.lineage-2");
  CHECK(job.start("auto") == 119);
  fs::resize_file(node_file(job.at("step-00000119.lineage-2"), 0), 10);
  CHECK(job.start("auto") == 110);
  CHECK(
      contains_text(job.warnings, "passing over checkpoint " + job.at("step-00000119.lineage-2")));
  CHECK(job.lineage().number == 3);
  job.damage("step-00000110");
  CHECK(job.start("auto") == 100);
}

TEST_CASE("going back because of damage begins a lineage: the damaged one cannot win later") {
  Job job;
  job.start("auto");
  for (const index_t step : {10, 20}) job.save(step);
  const std::string manifest = job.at("step-00000020/MANIFEST.json");
  fs::rename(manifest, manifest + ".hidden");
  std::ofstream(manifest) << "{}\n";
  CHECK(job.start("auto") == 10);
  CHECK(job.lineage().number == 1);
  job.save(15);
  fs::rename(manifest + ".hidden", manifest);
  CHECK(job.start("auto") == 15);
}

TEST_CASE("retention removes only what it has read and found whole") {
  Job job;
  job.start("auto");
  for (const index_t step : {10, 20}) job.save(step);
  // A manifest that cannot be read at this moment.
  const std::string manifest = job.at("step-00000010/MANIFEST.json");
  fs::rename(manifest, manifest + ".hidden");
  fs::create_directory(manifest);
  job.save(30);
  fs::remove(manifest);
  fs::rename(manifest + ".hidden", manifest);
  CHECK(job.names().contains("step-00000010"));
  job.save(40);
  CHECK(job.names() == std::set<std::string>{"step-00000030", "step-00000040"});
}

TEST_CASE("a checkpoint folder that cannot be looked at is not an empty one") {
  const ScratchFolder folder("lineage");
  const auto find = [&](const std::string& dir) {
    run_local_ranks(2, [&](Communicator& world) {
      if (find_checkpoint(world, dir, {})) throw std::runtime_error("found one");
    });
  };
  CHECK_NOTHROW(find(folder.path() + "/absent"));
  CHECK_NOTHROW(find(folder.path()));
  std::ofstream(folder.path() + "/file") << "x";
  CHECK_THROWS_WITH(find(folder.path() + "/file"), t3d::test::contains("/file: Not a directory"));
  fs::create_symlink("nowhere", folder.path() + "/dangling");
  CHECK_THROWS_WITH(find(folder.path() + "/dangling"), t3d::test::contains("/dangling: No such"));
  fs::create_symlink("step-00000010", folder.path() + "/step-00000010");
  CHECK_THROWS_WITH(find(folder.path()), t3d::test::contains("step-00000010: Too many levels"));
  fs::remove(folder.path() + "/step-00000010");
  fs::create_directory(folder.path() + "/step-00000010");
  fs::create_symlink("MANIFEST.json", folder.path() + "/step-00000010/MANIFEST.json");
  CHECK_THROWS_WITH(find(folder.path()), t3d::test::contains("MANIFEST.json: Too many levels"));
  fs::remove(folder.path() + "/step-00000010/MANIFEST.json");
  CHECK_THROWS_WITH(find(folder.path()), t3d::test::contains("-r never"));
  fs::rename(folder.path() + "/step-00000010", folder.path() + "/step-00000010.partial-7");
  CHECK_NOTHROW(find(folder.path()));
}

TEST_CASE("without its lock a run neither publishes nor removes") {
  const ScratchFolder folder("lineage");
  const RunLock lock({folder.path()}, "r", [](const std::string&) {});
  const auto save = [&](index_t step) {
    run_local_ranks(2, [&](Communicator& world) {
      const auto tensors = small_tensors();
      RankState state = make_state(tensors, 3, 2, world.rank());
      fill(tensors, state, step);
      save_checkpoint(world, {folder.path(), 1, 1, 0, true, &lock.lease()}, {step, "r", {}},
                      state.parts, true);
    });
  };
  save(10);
  fs::create_directory(folder.path() + "/step-00000005.partial-abc");  // of somebody who died
  save(20);
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      all.insert(entry.path().filename().string());
    all.erase(".run.lock.last");  // who has had the lock
    return all;
  };
  CHECK(names() == std::set<std::string>{"run.lock", "step-00000020"});
  write_text_durably(folder.path() + "/run.lock", format_owner(this_process("other")));
  try {
    save(30);
    FAIL("published without the lock");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
  }
  CHECK(names() == std::set<std::string>{"run.lock", "step-00000020"});
}
