// Reads that fail with a fault that may pass (a file server that restarts, a handle that went
// stale) are tried again for a while, where they fail and by the thread that reads. Only where a
// ReadPatience has been begun: elsewhere (a lock's renewal, a tool) such a fault is told at once.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "comm/busy.hpp"

namespace t3d {

class ReadPatience {
 public:
  struct Rule {
    double seconds = 60;                          // for all reads; 0 = none is tried again
    std::function<bool()> stop;                   // asked to stop: looked at while waiting
    std::function<void(const std::string&)> say;  // what is waited for, once for each read
  };
  explicit ReadPatience(Rule rule) : rule_(std::move(rule)) {}

  /// While it lives, reads of this thread are tried again.
  class Scope {
   public:
    explicit Scope(ReadPatience& patience);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ReadPatience* const before_;
  };

  void limit(double seconds);
  /// A read has failed to the end. No further one is tried again.
  [[nodiscard]] bool ran_out() const { return ran_out_; }

 private:
  friend class Tries;
  [[nodiscard]] bool is_spent() const { return spent_seconds_ >= rule_.seconds; }

  Rule rule_;
  double spent_seconds_ = 0;  // waiting, and in tries that failed
  bool ran_out_ = false;
};

/// Of one read.
class Tries {
 public:
  /// True, after a moment, where a read that failed for the system's `reason` is to be tried again.
  /// False keeps errno = `reason`. Throws Error(retry) when asked to stop.
  [[nodiscard]] bool again(int reason, const std::string& path);
  /// A part of the read has come: what fails later fails anew.
  void went_on() {
    counted_ = -1;
    busy_.reset();
  }

 private:
  double counted_ = -1;  // up to here the time is counted; -1: none has failed
  double spent_ = 0;     // of all reads, then
  double pause_ = 0;
  std::optional<BusyScope> busy_;  // the other ranks wait for it
};

}  // namespace t3d
