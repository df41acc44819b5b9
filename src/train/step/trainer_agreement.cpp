// What ranks must hold alike: compared in every step's report, and mended where that is possible.
#include <fmt/ranges.h>

#include "comm/agree.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "train/step/agreement.hpp"
#include "train/step/state_parts.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

// Before anybody acts on it: ranks that do different things wait for each other for ever.
void Trainer::check_agreement(const Pending& pending) {
  Communicator& world = machine_.world();
  if (marks_agree(pending.values[kMark], pending.values[kMarkSquares], world.size())) return;
  throw AgreedError(
      ExitCode::internal,
      fmt::format("step {}: {} hold another plan than most, or have decided otherwise what comes "
                  "next: a processor or memory is at fault there. The last checkpoint is sound; "
                  "go on from it without these ranks' nodes",
                  pending.report.step, minority_text(all_gather_numbers(world, pending.mark))));
}

bool Trainer::compares_replicas(index_t step) const {
  return plan().replicas.size() > 1 && source_ != nullptr && !formation_->idle() &&
         options_.replicas_every > 0 && step % options_.replicas_every == 0;
}

std::uint64_t Trainer::digest_of_weights() {
  const std::vector<TensorPart> parts = weight_parts(formation_->model(), *image_);
  image_->download();
  return digest_of_parts(parts, "");
}

// A rank's digest, and what it computes on.
std::string Trainer::own_digest() {
  if (formation_->idle()) return {};
  const std::string place =
      machine_.choice().gpu >= 0 ? std::string(machine_.device().name()) : processor_name();
  return digest_text(digest_of_weights()) + digest_text(stream_of(place));
}

// On processors of one kind all have the same bits; where kinds differ, products of matrices in the
// update (Muon) and GPUs' kernels may round otherwise, which is no fault: then the first replica
// counts where there is no majority.
MendReport Trainer::mend_replicas() {
  constexpr std::size_t kDigits = 16;
  const std::vector<std::string> all = all_gather_texts(machine_.world(), own_digest());
  ReplicaDigests digests{std::vector<std::uint64_t>(plan().replicas.size())};
  const std::vector<int> active = plan().active();
  bool one_kind = true;
  for (std::size_t number = 0; number < active.size(); ++number) {
    const std::string& text = all[static_cast<std::size_t>(active[number])];
    const std::string& first = all[static_cast<std::size_t>(active.front())];
    const index_t d = plan().mesh().coord_of(static_cast<int>(number)).d;
    digests.of[static_cast<std::size_t>(d)] += std::stoull(text.substr(0, kDigits), nullptr, 16);
    one_kind = one_kind && text.substr(kDigits) == first.substr(kDigits);
  }
  const std::optional<index_t> most = digests.sound();
  const std::vector<index_t> others = digests.unlike(most.value_or(0));
  MendReport report;
  if (others.empty()) return report;
  report.mended = most.has_value() || !one_kind;
  report.text = fmt::format(
      "the weights of replica{} {} are not those of {}: {}; {}", others.size() == 1 ? "" : "s",
      fmt::join(others, ", "), most ? "most" : "replica 0",
      one_kind ? "a processor or memory is at fault" : "processors of other kinds round otherwise",
      !report.mended ? "no state is that of most, so the run stops"
      : most         ? "they have what most have now"
                     : "they have what replica 0 has now");
  if (report.mended) report.moved = reshape(Plan(plan()), most.value_or(0));
  return report;
}

}  // namespace t3d
