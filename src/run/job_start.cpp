// The order matters: who watches the other ranks comes first, the lock before the first file is
// written, and what could not be read is told where lives are counted.
#include "run/job_start.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/placement.hpp"
#include "core/env_seconds.hpp"
#include "core/phase_clock.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/shared_folder.hpp"
#include "run/init_weights.hpp"
#include "run/setup.hpp"
#include "sched/requeue.hpp"
#include "sched/stop_signal.hpp"

namespace t3d {
namespace {

constexpr const char* kOldInput = "with the input of the life before, as the file has faults";

// On rank 0. Asked to stop while an owner without a sign of life is waited for: stops.
std::unique_ptr<RunLock> lock_folders(const std::vector<std::string>& folders,
                                      const std::string& run) {
  double last_word = PhaseClock::now();
  return std::make_unique<RunLock>(folders, run, [&](const std::string& text) {
    if (stop_signal() != 0)
      throw_error(ExitCode::retry, "asked to stop by a signal while waiting: {}", text);
    if (PhaseClock::now() - last_word < 5) return;
    last_word = PhaseClock::now();
    fmt::print(stderr, "transformer3d: waiting: {}\n", text);
  });
}

/// A file server that restarts needs a minute.
ReadPatience::Rule patience_of_start() {
  constexpr double kSeconds = 60;
  return {env_seconds("T3D_RETRY_SECONDS", kSeconds), [] { return stop_signal() != 0; },
          [](const std::string& text) { fmt::print(stderr, "transformer3d: {}\n", text); }};
}

}  // namespace

JobStart::JobStart(Communicator& world, const RunWords& command,
                   const std::function<void(const std::string&)>& warn)
    : patience(patience_of_start()),
      last_words(world.rank()),
      life(warn),
      end(config, world.rank(), life, warn),
      world_(world),
      command_(command) {}

void JobStart::prepare() {
  begin_watching();
  const std::optional<AgreedError> unread = read_texts();
  const std::vector<int> nodes = node_of_ranks(world_);
  // Another job's lock may have to be waited for: the limit is that of files.
  all_or_none(*checkpoint_group(world_), [&] {
    if (world_.rank() == 0) prepare_folder(1 + *std::max_element(nodes.begin(), nodes.end()));
  });
  const std::string token = broadcast_text(world_, lock ? lock->lease().token : "");
  const Epoch epoch = epoch_of_lock(token);
  end.set_folder(lock.get(), epoch);
  if (broadcast_text(world_, life.goes_on_in_job() ? "auto" : "") == "auto") {
    early_notes.push_back(fmt::format("-r {} was for the first life of this job; it goes on",
                                      config.checkpoint.restart));
    config.checkpoint.restart = "auto";
  }
  check_folders(nodes, token);
  last_words.set_folder(config.run.dir, epoch);
  if (unread) throw AgreedError(*unread);
  stopping = std::make_unique<Stopping>(config, world_.rank() == 0);
  // Rank 0 alone asks Slurm; whoever speaks for a lost rank must not take the job's next life for
  // its own.
  const std::string restarts = broadcast_text(world_, std::to_string(slurm_restarts()));
  if (world_.rank() != 0) hear_restarts(std::stoi(restarts));
}

void JobStart::begin_watching() {
  {
    const ReadPatience::Scope patient(patience);
    config = load_input(world_, command_.input, command_.overrides, world_.size(), origins,
                        DataFiles::read, &input);
  }
  last_words.set_requeue(config.run.requeue);
  world_.set_watchdog(config.debug.watchdog_seconds);
  // The other ranks wait for the one that tries again.
  if (config.debug.watchdog_seconds > 0) patience.limit(config.debug.watchdog_seconds / 2);
  world_.set_wait_limit(kCheckpointAxis, config.debug.io_seconds);
  set_busy_limit(config.debug.io_seconds);
  watch = std::make_unique<PeerWatch>(
      world_, PeerWatch::Options{config.debug.lost_seconds,
                                 [this](const PeerLoss& loss) { last_words.say(loss); },
                                 [this] { last_words.end(); },
                                 [this](const PeerLoss& loss) { last_words.hear(loss); }});
}

// A fault that may pass is returned: it is told in the run folder, where lives are counted, once
// that is there.
std::optional<AgreedError> JobStart::read_texts() {
  const ReadPatience::Scope patient(patience);
  try {
    texts = open_texts(world_, config);
    check_first_weights(world_, config);
  } catch (const AgreedError& error) {
    look_whether_it_passes(error.code());
    if (!end.may_pass()) throw;
    return error;
  }
  return std::nullopt;
}

void JobStart::look_whether_it_passes(ExitCode code) {
  if (code != ExitCode::io) return;
  std::int32_t ran_out = patience.ran_out() ? 1 : 0;
  world_.all_reduce({&ran_out, DType::i32, 1, 1}, ReduceOp::max).wait_host();
  if (ran_out != 0) end.fault_may_pass();
}

// Other ranks than 0 write into the run folder too: last words, choices of engines.
void JobStart::check_folders(const std::vector<int>& nodes, const std::string& token) {
  const std::string &dir = config.run.dir, &checkpoints = config.checkpoint.dir;
  check_shared_folder(world_, nodes, checkpoints, token);
  if (!checkpoints.starts_with(dir + "/")) check_shared_folder(world_, nodes, dir, token);
}

// Fails now rather than after hours if nothing can be written. Nothing is written before the
// folders are locked.
void JobStart::prepare_folder(index_t nodes) {
  const std::vector<std::string> folders{config.run.dir, config.checkpoint.dir};
  for (const std::string& folder : folders) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw_error(ExitCode::io, "cannot create {}: {}", folder, error.message());
  }
  lock = lock_folders(folders, config.run.name);
  const ReadPatience::Scope patient(patience);  // the lock's own files have rules of their own
  for (const std::string& folder : folders) remove_old_checks(folder);
  life.begin(config, *lock, world_.size(), nodes, input.fault.empty() ? "" : kOldInput);
}

}  // namespace t3d
