// Round trips: whatever layout saved it, any other layout loads the same bits.
#include "io/checkpoint/checkpoint.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

std::string save(const ScratchFolder& folder, int ranks, unsigned layout, index_t step,
                 CheckpointOptions options = {}) {
  options.dir = folder.path();
  std::string path;
  run_local_ranks(ranks, [&](Communicator& world) {
    const auto tensors = small_tensors();
    RankState state = make_state(tensors, layout, ranks, world.rank());
    fill(tensors, state, step);
    const auto published = save_checkpoint(
        world, options, {step, "run-7", {{"input", "a = 1\n\"b\" = \xC3\xA9"}}}, state.parts, true);
    if (world.rank() == 0) path = published;
  });
  return path;
}

void check_load(const std::string& path, int ranks, unsigned layout, index_t step) {
  std::atomic<index_t> wrong{0};
  std::atomic<bool> clean{true};
  run_local_ranks(ranks, [&](Communicator& world) {
    const auto tensors = small_tensors();
    RankState state = make_state(tensors, layout, ranks, world.rank());
    load_checkpoint(world, path, state.parts);
    wrong += wrong_elements(tensors, state, step);
    if (!gaps_untouched(tensors, state)) clean = false;
  });
  CHECK(wrong == 0);
  CHECK(clean);
}

ExitCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    UNSCOPED_INFO(error.what());
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace

TEST_CASE("any layout loads what any other layout saved, bit for bit") {
  const std::vector<index_t> per_file{1, 2, 0, 3};
  for (unsigned layout = 0; layout < 12; ++layout) {
    const int from = 1 + static_cast<int>(layout % 5);
    const int to = 1 + static_cast<int>((layout * 3 + 2) % 6);
    CAPTURE(layout, from, to);
    const ScratchFolder folder("round_trip");
    CheckpointOptions options;
    options.ranks_per_file = per_file[layout % per_file.size()];
    options.verify = layout % 3 != 0;
    const std::string path = save(folder, from, layout, 10 + layout, options);
    check_load(path, to, 100 + layout, 10 + layout);
    CHECK_NOTHROW(describe_checkpoint(path, true));
  }
}

TEST_CASE("ranks that write nothing take part, and the state comes back") {
  const ScratchFolder folder("replicas");
  run_local_ranks(4, [&](Communicator& world) {
    const auto tensors = small_tensors();
    RankState state = make_state(tensors, 5, 2, world.rank() % 2);  // two replicas of two ranks
    fill(tensors, state, 3);
    const CheckpointOptions options{folder.path(), 1, 2, 0, true};
    save_checkpoint(world, options, {3, "r", {{"mesh", "2 x (1 x 2 x 1)"}}}, state.parts,
                    world.rank() < 2);
    const auto info = open_checkpoint(world, folder.path() + "/step-00000003");
    if (info.state.step != 3 || info.state.run_id != "r" ||
        info.state.texts.at("mesh") != "2 x (1 x 2 x 1)")
      throw std::runtime_error("the state is not what was saved");
  });
  CHECK_NOTHROW(node_file(folder.path() + "/step-00000003", 1));
  CHECK_THROWS(node_file(folder.path() + "/step-00000003", 2));
  check_load(folder.path() + "/step-00000003", 3, 77, 3);
}

TEST_CASE("boxes that overlap or leave holes are refused and nothing is left behind") {
  for (const bool overlap : {true, false}) {
    const ScratchFolder folder("cover");
    const auto run = [&] {
      run_local_ranks(2, [&](Communicator& world) {
        std::vector<float> numbers(12);
        const index_t row0 = world.rank() == 0 ? 0 : overlap ? 1 : 3;
        std::vector<TensorPart> parts{
            {"w", DType::f32, 5, 3, false, numbers.data(), {{{row0, 0, 2, 3}, 0}}}};
        save_checkpoint(world, {folder.path(), 1, 2, 0, true}, {1, "r", {}}, parts, true);
      });
    };
    CHECK(code_of(run) == ExitCode::io);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("tensors that the checkpoint lacks or has otherwise are a matter of input") {
  const ScratchFolder folder("lacking");
  const std::string path = save(folder, 2, 1, 4);
  float number = 5;
  const auto load = [&](const TensorPart& part, const std::string& optional) {
    return code_of([&] {
      run_local_ranks(1, [&](Communicator& world) {
        std::vector<TensorPart> parts{part};
        load_checkpoint(world, path, parts, optional);
      });
    });
  };
  const TensorPart lacking{"optimizer/new", DType::f32, 1, 1, true, &number, {{{0, 0, 1, 1}, 0}}};
  CHECK(load(lacking, "") == ExitCode::config);
  CHECK(load(lacking, "optimizer/") == ExitCode::done);
  CHECK(number == 5);
  CHECK(load({"one", DType::f32, 1, 1, true, &number, {{{0, 0, 1, 1}, 0}}}, "") ==
        ExitCode::config);
  CHECK(load({"one", DType::f64, 1, 2, true, &number, {}}, "") == ExitCode::config);
}

TEST_CASE("tensors of several blocks and rounds, parts of them loaded") {
  const ScratchFolder folder("large");
  const std::vector<TestTensor> tensors{{"large", DType::f32, 5, 3700000, false},
                                        {"tall", DType::f32, 700000, 3, false}};
  std::atomic<index_t> wrong{0};
  run_local_ranks(3, [&](Communicator& world) {
    RankState state = make_state(tensors, 4, 3, world.rank());
    fill(tensors, state, 1);
    save_checkpoint(world, {folder.path(), 2, 2, 0, true}, {1, "r", {}}, state.parts, true);
    RankState other = make_state(tensors, 9, 3, world.rank());
    load_checkpoint(world, folder.path() + "/step-00000001", other.parts);
    wrong += wrong_elements(tensors, other, 1);
  });
  CHECK(wrong == 0);
}

TEST_CASE("retention keeps the newest and the major ones, and never writes over") {
  const ScratchFolder folder("retention");
  CheckpointOptions options;
  options.keep = 2;
  options.major_every = 30;
  for (const char* name : {"step-00000005", "step-00000500", "notes"})  // not ours to judge
    std::filesystem::create_directories(folder.path() + "/" + name);
  for (const index_t step : {10, 20, 30, 40, 50, 60, 70}) save(folder, 2, 1, step, options);
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      all.insert(entry.path().filename().string());
    return all;
  };
  CHECK(names() == std::set<std::string>{"notes", "step-00000005", "step-00000030", "step-00000060",
                                         "step-00000070", "step-00000500"});
  CHECK(save(folder, 1, 8, 70, options) == folder.path() + "/step-00000070.1");
  check_load(folder.path() + "/step-00000070.1", 2, 3, 70);
  // One that is older than what is there, after a restart from still further back, stays too.
  CHECK(save(folder, 1, 8, 65, options) == folder.path() + "/step-00000065");
  CHECK(names().contains("step-00000065"));
  CHECK(names().contains("step-00000070.1"));
}

TEST_CASE("too little space is said before anything is written") {
  const ScratchFolder folder("space");
  const auto run = [&] {
    run_local_ranks(1, [&](Communicator& world) {
      const index_t huge = index_t{1} << 50;
      std::vector<TensorPart> parts{
          {"w", DType::f32, 1, huge, true, nullptr, {{{0, 0, 1, huge}, 0}}}};
      save_checkpoint(world, {folder.path(), 0, 2, 0, true}, {1, "r", {}}, parts, true);
    });
  };
  CHECK_THROWS_WITH(run(), t3d::test::contains("not enough space"));
  CHECK(std::filesystem::is_empty(folder.path()));
}
