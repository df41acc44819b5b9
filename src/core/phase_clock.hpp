// PhaseClock: where a rank's time went, by name. Scopes may nest; inner time is not counted twice.
// What an emulated slower rank sleeps belongs to no phase. Listeners hear of every change: a device
// that works behind the host has its own clock (device/queue_timer.hpp).
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/thread_clock.hpp"

namespace t3d {

class PhaseClock {
 public:
  class Scope {
   public:
    Scope(PhaseClock& clock, const char* phase)
        : clock_(clock), phase_(phase), outer_(clock.current_), start_(unpaused()) {
      clock.current_ = this;
      if (clock.listener_ != nullptr) clock.listener_->tell(phase);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      const double total = unpaused() - start_;
      clock_.seconds_[phase_] += total - inner_;
      if (outer_ != nullptr) outer_->inner_ += total;
      clock_.current_ = outer_;
      if (clock_.listener_ != nullptr)
        clock_.listener_->tell(outer_ != nullptr ? outer_->phase_ : "");
    }

   private:
    PhaseClock& clock_;
    const char* phase_;
    Scope* outer_;
    double start_;
    double inner_ = 0;
  };

  /// While one lives, `heard` is called with the phase that begins or goes on, "" outside all
  /// phases, after those of the listeners before it. The last one ends first.
  class Listener {
   public:
    Listener(PhaseClock& clock, std::function<void(const char* phase)> heard)
        : clock_(clock), before_(clock.listener_), heard_(std::move(heard)) {
      clock.listener_ = this;
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    ~Listener() { clock_.listener_ = before_; }
    void tell(const char* phase) const {
      if (before_ != nullptr) before_->tell(phase);
      heard_(phase);
    }

   private:
    PhaseClock& clock_;
    const Listener* before_;
    std::function<void(const char*)> heard_;
  };

  [[nodiscard]] const std::map<std::string, double>& seconds() const { return seconds_; }
  void clear() { seconds_.clear(); }
  /// Monotonic seconds.
  [[nodiscard]] static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// now(), standing still while the thread sleeps for emulation.
  [[nodiscard]] static double unpaused() { return now() - paused_seconds(); }

 private:
  std::map<std::string, double> seconds_;
  Scope* current_ = nullptr;
  const Listener* listener_ = nullptr;  // the last one
};

}  // namespace t3d
