// FileService: a thread that writes files for somebody who must not wait for a file system. What
// is handed over is done in its order. When too much is waiting, who hands over waits, and says so
// to the other ranks (comm/busy.hpp); where nothing gets done for kStandstill, the file system is
// taken to hang, and what is handed over is refused until something is done again.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/types.hpp"

namespace t3d {

class FileService {
 public:
  /// `most_bytes`: of what is waiting.
  explicit FileService(index_t most_bytes = index_t{16} << 20);
  /// Waits for what is left, for kLastSeconds at most; what has not begun then is dropped, and what
  /// is under way is left alone: it must own what it uses.
  ~FileService();
  FileService(const FileService&) = delete;
  FileService& operator=(const FileService&) = delete;
  static constexpr double kLastSeconds = 10, kStandstill = 60;

  /// `work` may not throw; `what` it does ("writing run/log.jsonl"), and the memory that it holds.
  /// From the service's own thread: done at once. False: refused, also after end().
  [[nodiscard]] bool put(const std::string& what, index_t bytes, std::function<void()> work);
  [[nodiscard]] bool is_own_thread() const;
  /// By a work that takes long, while it comes forward: its file system does not hang. Elsewhere
  /// than in a service's thread nothing happens.
  static void note_progress();
  /// For tests: another time than kStandstill.
  void set_standstill(double seconds);
  /// A number for all that has been handed over so far.
  [[nodiscard]] index_t newest() const;
  [[nodiscard]] bool is_done(index_t number) const;
  /// Waits until that is done, so long at most (0 = as long as it takes); whether it is.
  bool wait(index_t number, double seconds) const;
  /// Waits for all, then nothing more is taken. What is not done after `seconds` is dropped; how
  /// many these are.
  index_t end(double seconds);
  /// What is under way.
  [[nodiscard]] std::string what() const;

 private:
  struct State;
  static thread_local State* served;  // by this thread
  std::shared_ptr<State> state_;
  index_t most_;
};

}  // namespace t3d
