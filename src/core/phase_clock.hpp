// PhaseClock: where a rank's time went, by name. Scopes may nest; inner time is not counted twice.
// What an emulated slower rank sleeps belongs to no phase. A listener hears of every change: a
// device that works behind the host has its own clock (device/queue_timer.hpp).
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
      if (clock.listener_) clock.listener_(phase);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      const double total = unpaused() - start_;
      clock_.seconds_[phase_] += total - inner_;
      if (outer_ != nullptr) outer_->inner_ += total;
      clock_.current_ = outer_;
      if (clock_.listener_) clock_.listener_(outer_ != nullptr ? outer_->phase_ : "");
    }

   private:
    PhaseClock& clock_;
    const char* phase_;
    Scope* outer_;
    double start_;
    double inner_ = 0;
  };

  [[nodiscard]] const std::map<std::string, double>& seconds() const { return seconds_; }
  void clear() { seconds_.clear(); }
  /// Called with the phase that begins or goes on, "" outside all phases; empty = nobody listens.
  void set_listener(std::function<void(const char* phase)> listener) {
    listener_ = std::move(listener);
  }
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
  std::function<void(const char*)> listener_;
};

}  // namespace t3d
