#include "forecast/simulate/size_rule.hpp"

#include <algorithm>

namespace t3d {
namespace {

const JobSize& size_of(const SizeQuestion& q, int size) {
  return q.sizes[static_cast<std::size_t>(size)];
}

double rate_of(const SizeQuestion& q, int size) { return size_of(q, size).samples_per_second(); }

/// -1: none.
int fastest_possible(const SizeQuestion& q) {
  int size = static_cast<int>(q.sizes.size()) - 1;
  while (size >= 0 && !is_possible(size_of(q, size), q.here)) --size;
  return size;
}

/// Expected, until the nodes that `size` lacks are here: they come one by one.
double missing_seconds(const SizeQuestion& q, const JobSize& size) {
  double missing = 0;
  for (std::size_t at = 0; at < q.here.size(); ++at)
    missing += static_cast<double>(std::max(size.nodes[at] - q.here[at], index_t{0}));
  return missing == 0 ? 0 : missing * q.next_return_seconds;
}

/// How long the job goes on at this size, for all that is known: to the next loss, to its end, to
/// the end of its walltime.
double undisturbed_seconds(const SizeQuestion& q, int size) {
  const double to_loss = q.losses_per_hour > 0 ? 3600 / q.losses_per_hour : kNoTime;
  const double walltime = std::max(q.left_seconds - q.reserve_seconds, 0.0);
  return std::min({to_loss, q.samples_left / rate_of(q, size), walltime});
}

/// In `seconds` of which a change takes so much.
double samples_after(double rate, double seconds, double change_seconds) {
  return rate * std::max(seconds - change_seconds, 0.0);
}

SizeDecision wait_for_any(const SizeQuestion& q) {
  double wait = kNoTime;
  for (const JobSize& size : q.sizes) wait = std::min(wait, missing_seconds(q, size));
  if (q.requeue_seconds < wait)
    return {SizeAction::stop, -1, kNoTime, "no size is possible, and the queue is faster"};
  return {SizeAction::wait, q.current, 2 * wait, "no size is possible"};
}

/// The current size is possible, maybe on other nodes than before, and so is `best`.
SizeDecision resume_same(const SizeQuestion& q, int best) {
  const double seconds = undisturbed_seconds(q, best);
  const bool grow =
      best != q.current && q.sizing != Sizing::wait &&
      samples_after(rate_of(q, best), seconds, q.reshape_seconds) >
          (1 + kGrowthMargin) * samples_after(rate_of(q, q.current), seconds, q.same_size_seconds);
  if (grow)
    return {SizeAction::grow, best, kNoTime, "stands still anyway, and more nodes are here"};
  return {SizeAction::use_spare, q.current, kNoTime, "enough nodes are here"};
}

/// The current size lacks nodes, a smaller one does not.
SizeDecision shrink_or_wait(const SizeQuestion& q, int best) {
  const SizeDecision shrink{SizeAction::shrink, best, kNoTime, "trains more than waiting"};
  const double wait = missing_seconds(q, size_of(q, q.current));
  if (wait == kNoTime) return {SizeAction::shrink, best, kNoTime, "no node will come back"};
  const SizeDecision waiting{SizeAction::wait, q.current, 2 * wait, "nodes will be back soon"};
  if (q.sizing == Sizing::shrink) return shrink;
  if (q.sizing == Sizing::wait) return waiting;
  const double whole = rate_of(q, q.current), small = rate_of(q, best);
  const double after = undisturbed_seconds(q, q.current);
  const double waited = samples_after(whole, after, q.same_size_seconds);
  const double stayed = samples_after(small, wait + after, q.reshape_seconds);
  const double grown = samples_after(small, wait, q.reshape_seconds) +
                       samples_after(whole, after, q.reshape_seconds);
  return std::max(stayed, grown) >= waited ? shrink : waiting;
}

SizeDecision resume(const SizeQuestion& q) {
  const int best = fastest_possible(q);
  if (best < 0) return wait_for_any(q);
  if (q.current < 0) return {SizeAction::grow, best, kNoTime, "begins"};
  if (is_possible(size_of(q, q.current), q.here)) return resume_same(q, best);
  return shrink_or_wait(q, best);
}

SizeDecision grow_or_go_on(const SizeQuestion& q) {
  const SizeDecision same{SizeAction::go_on, q.current, kNoTime, "no faster size is possible"};
  const int best = fastest_possible(q);
  if (best < 0 || rate_of(q, best) <= rate_of(q, q.current)) return same;
  const SizeDecision grow{SizeAction::grow, best, kNoTime, "gains more than the reshape costs"};
  if (q.sizing == Sizing::shrink) return grow;
  const double fast = rate_of(q, best), slow = rate_of(q, q.current);
  const double seconds = undisturbed_seconds(q, best);
  if (samples_after(fast, seconds, q.reshape_seconds) <= (1 + kGrowthMargin) * slow * seconds)
    return {SizeAction::go_on, q.current, kNoTime, "a reshape costs more than it gains"};
  const bool more_to_come = best + 1 < static_cast<int>(q.sizes.size());
  if (more_to_come && (fast - slow) * q.next_return_seconds < fast * q.reshape_seconds)
    return {SizeAction::go_on, q.current, q.next_return_seconds, "another node is expected soon"};
  return grow;
}

}  // namespace

bool is_possible(const JobSize& size, std::span<const index_t> here) {
  for (std::size_t at = 0; at < here.size(); ++at)
    if (here[at] < size.nodes[at]) return false;
  return true;
}

SizeDecision decide_size(const SizeQuestion& q) {
  if (q.left_seconds <= q.reserve_seconds)
    return {SizeAction::stop, q.current, kNoTime, "the walltime ends"};
  if (q.interrupted) return resume(q);
  const bool warned = q.warning_seconds < kNoTime && q.save_seconds <= q.warning_seconds;
  if (warned && !q.copies && q.unsaved_seconds > 0)
    return {SizeAction::checkpoint, q.current, kNoTime, "nodes are about to go"};
  if (q.since_checkpoint_seconds >= q.interval_seconds)
    return {SizeAction::checkpoint, q.current, kNoTime, "a checkpoint is due"};
  return grow_or_go_on(q);
}

}  // namespace t3d
