// Engine: what all groups of one rank share. It advances the operations in flight, in the order in
// which they were issued, whenever anybody waits, asks, or calls progress(); it keeps the books
// (ledger, waiting times, trace) and turns a wait without end into an error that names the missing.
//
// Large operations of a group take turns, two at a time: what one works on stays in the cache, and
// the first results are there early. That cannot lock up, as all ranks of a group issue the same
// operations in the same order: everybody may work on the oldest that anybody still works on.
#pragma once
#include <array>
#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cost.hpp"
#include "comm/dilation.hpp"
#include "comm/scratch.hpp"
#include "comm/trace.hpp"
#include "comm/transport.hpp"
#include "core/tracer.hpp"

namespace t3d {

/// One collective as a state machine.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Does what can be done without waiting; true when nothing is left.
  virtual bool advance() = 0;
  /// What this rank passes to the transport: payload bytes, and messages as comm/cost.hpp counts.
  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Adds the world ranks that it still needs something from.
  virtual void missing(std::set<int>& peers) const = 0;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  explicit Engine(std::unique_ptr<Transport> transport);

  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] ScratchPool& scratch() { return scratch_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const { return wait_seconds_; }
  /// CPU time of this thread inside those waits.
  [[nodiscard]] double wait_cpu_seconds() const { return wait_cpu_seconds_; }
  void set_slowdown(double factor) { dilation_.set_factor(factor); }
  void set_watchdog(double seconds) { watchdog_seconds_ = seconds; }
  void set_wait_limit(const std::string& axis, double seconds) { limit_of_axis_[axis] = seconds; }
  /// Group number `context` is now that of a group on `axis`.
  void adopt_limit(int context, const std::string& axis);
  /// The same: its world ranks, which live as long as the group.
  void adopt_members(int context, const std::vector<int>& members);

  /// Starts an operation of group number `context`; `counted` ones appear in the ledger.
  [[nodiscard]] Work start(std::unique_ptr<Operation> operation, Verb verb, const std::string& axis,
                           int context, bool counted = true);
  /// Advances everything in flight. A failure is kept for the next wait or verb.
  void progress() noexcept;
  /// Throws when this rank's world has failed.
  void check() const;

  /// Group numbers, part of the messages' tags: 0 is the world.
  static constexpr std::size_t kContexts = 256;
  using Contexts = std::bitset<kContexts>;
  [[nodiscard]] Contexts& contexts() { return contexts_; }

 private:
  /// Under way at once, of those that send more than kLargeBytes.
  static constexpr int kTurns = 2;
  static constexpr index_t kLargeBytes = index_t{64} << 10;

  class InFlight;
  class Slower;
  /// Whether messages are still under way.
  bool progress_in_flight() noexcept;
  void advance();
  [[nodiscard]] const InFlight& first_in_turn(const InFlight& work) const;
  void wait(InFlight& work);
  [[nodiscard]] double limit_of(const InFlight& work) const;
  [[nodiscard]] index_t progress_made() const {
    return transport_->messages_done() + operations_done_;
  }
  void leave(const InFlight& work);
  [[nodiscard]] TraceMark trace_start(Tracer& tracer, Verb verb, const std::string& axis,
                                      int context, index_t bytes);
  [[noreturn]] void give_up(const InFlight& work, double seconds, double idle_seconds);

  std::unique_ptr<Transport> transport_;
  ScratchPool scratch_;
  Ledger ledger_;
  Trace trace_;
  std::map<std::string, double> wait_seconds_;
  double wait_cpu_seconds_ = 0;
  double patience_seconds_ = 0;  // of a wait before the core is offered to others
  Dilation dilation_;
  double watchdog_seconds_ = 0;
  std::map<std::string, double> limit_of_axis_;
  std::array<std::optional<double>, kContexts> limit_of_context_{};
  index_t operations_done_ = 0;
  std::array<const std::vector<int>*, kContexts> members_{};
  std::array<TracedGroup, kContexts> traced_groups_{};
  Contexts contexts_;
  std::vector<InFlight*> in_flight_;
  std::array<int, kContexts> large_under_way_{};
  std::string failure_;  // empty while all is well
  ExitCode failure_code_ = ExitCode::peer_lost;
};

}  // namespace t3d
