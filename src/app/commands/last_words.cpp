#include "app/commands/last_words.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "io/log/exit_record.hpp"

namespace t3d {
namespace {

/// One line at the end of a file that other processes write, too: whole, or not at all.
void append_line(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line = text + "\n";
  (void)!write(file, line.data(), line.size());
  close(file);
}

}  // namespace

void LastWords::set_folder(const std::string& dir) {
  const std::lock_guard lock(mutex_);
  dir_ = dir;
}

void LastWords::set_progress(index_t step, index_t checkpoint) {
  step_ = step;
  checkpoint_ = checkpoint;
}

void LastWords::say(const PeerLoss& loss) {
  // A file system that does not answer, either, must not keep the process.
  static constexpr std::chrono::seconds kPatience{5};
  std::thread([] {
    std::this_thread::sleep_for(kPatience);
    end();
  }).detach();
  ExitRecord record{ExitCode::peer_lost, loss.text, step_, {}, true};
  std::string text = fmt::format("{}; this run ends after step {}", loss.text, record.step);
  if (const index_t saved = checkpoint_; saved >= 0) {
    record.checkpoint = saved;
    text += fmt::format(" and can go on from the checkpoint of step {}", saved);
  }
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
  const std::lock_guard lock(mutex_);
  if (dir_.empty()) return;
  append_line(dir_ + "/run.log", "error: " + text);
  try {
    write_exit_record(dir_, record, rank_);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("transformer3d: {}\n", error.what()).c_str(), stderr);
  }
}

void LastWords::end() { _exit(static_cast<int>(ExitCode::peer_lost)); }

}  // namespace t3d
