// A small program around checkpoints, for tests that need a process of its own.
//
//   save DIR STEP LAYOUT RANKS    known contents; exits with the error's code
//   background DIR STEP LAYOUT RANKS    the same by processes beside the ranks
//   load DIR LAYOUT RANKS         prints the step loaded (or "none"); 1 when a number is wrong
//   bench DIR MEGABYTES RANKS     seconds and GB/s of save and load
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/lock/run_lock.hpp"
#include "io/writer/background_save.hpp"
#include "io/writer/writer_main.hpp"
#include "support/checkpoint_data.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Known contents of `step`, through save(world, options, state, parts).
template <class Save>
int save_known(const std::string& dir, index_t step, unsigned layout, int ranks, const Save& save) {
  std::filesystem::create_directories(dir);
  const RunLock lock({dir}, "tool", [](const std::string&) {});
  run_local_ranks(ranks, [&](Communicator& world) {
    const auto tensors = small_tensors();
    RankState state = make_state(tensors, layout, ranks, world.rank());
    fill(tensors, state, step);
    save(world, CheckpointOptions{dir, 1, 2, 0, true, &lock.lease()},
         CheckpointState{step, "tool", {{"input", "x"}}}, state.parts);
  });
  return 0;
}

void save_in_foreground(Communicator& world, const CheckpointOptions& options,
                        const CheckpointState& state, const std::vector<TensorPart>& parts) {
  save_checkpoint(world, options, state, parts, true);
}

void save_in_background(Communicator& world, const CheckpointOptions& options,
                        const CheckpointState& state, const std::vector<TensorPart>& parts) {
  BackgroundSave save(world, options, "", 0);
  save.prepare(parts);
  save.begin(state, parts);
  const SaveOutcome outcome = save.settle(options.keep);
  if (outcome.fault) throw AgreedError(outcome.fault->code(), outcome.fault->what());
}

int load(const std::string& dir, unsigned layout, int ranks) {
  std::atomic<index_t> wrong{0}, step{-1};
  run_local_ranks(ranks, [&](Communicator& world) {
    const auto tensors = small_tensors();
    RankState state = make_state(tensors, layout, ranks, world.rank());
    const auto info = load_newest(world, dir, always(state.parts), [](const std::string& text) {
      fmt::print(stderr, "{}\n", text);
    });
    if (!info) return;
    step = info->state.step;
    wrong += wrong_elements(tensors, state, info->state.step);
  });
  fmt::print("{}\n", step < 0 ? "none" : std::to_string(step));
  return wrong == 0 ? 0 : 1;
}

int bench(const std::string& dir, index_t megabytes, int ranks) {
  using Clock = std::chrono::steady_clock;
  const index_t rows = megabytes * 1024 * 1024 / 4 / 4096 / ranks * ranks;
  run_local_ranks(ranks, [&](Communicator& world) {
    const index_t own = rows / ranks;
    std::vector<float> numbers(static_cast<std::size_t>(own * 4096), 1.5F);
    std::vector<TensorPart> parts;  // tensors of 16 MiB
    for (index_t n = 0; n * 1024 < rows; ++n) {
      const index_t mine = std::min<index_t>(1024, rows - n * 1024) / ranks;
      parts.push_back({fmt::format("blocks.{}.weight", n),
                       DType::f32,
                       mine * ranks,
                       4096,
                       false,
                       numbers.data() + n * 1024 / ranks * 4096,
                       {{{mine * world.rank(), 0, mine, 4096}, 0}}});
    }
    const auto timed = [&](const char* what, const auto& body) {
      world.barrier();
      const auto start = Clock::now();
      body();
      world.barrier();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (world.rank() == 0)
        fmt::print("{}: {:.3f} s, {:.2f} GB/s\n", what, seconds,
                   static_cast<double>(rows * 4096 * 4) / seconds * 1e-9);
    };
    std::string path;
    for (const bool verify : {false, true})
      timed(verify ? "save, verified" : "save", [&] {
        path =
            save_checkpoint(world, {dir, 1, 1, 0, verify}, {1 + verify, "bench", {}}, parts, true);
      });
    timed("load", [&] { load_checkpoint(world, path, parts); });
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = run_checkpoint_writer(argc, argv)) return *status;
  const std::vector<std::string> words(argv, argv + argc);
  const auto number = [&](std::size_t n) { return std::atoi(words.at(n).c_str()); };
  const auto layout = [&](std::size_t n) { return static_cast<unsigned>(number(n)); };
  try {
    if (words.at(1) == "save")
      return save_known(words.at(2), number(3), layout(4), number(5), save_in_foreground);
    if (words.at(1) == "background")
      return save_known(words.at(2), number(3), layout(4), number(5), save_in_background);
    if (words.at(1) == "load") return load(words.at(2), layout(3), number(4));
    if (words.at(1) == "bench") return bench(words.at(2), number(3), number(4));
    return static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
