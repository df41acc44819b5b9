#include "run/balancing.hpp"

#include <filesystem>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// Collective. Everybody's flag, by rank.
std::vector<bool> gather_flags(Communicator& world, bool flag) {
  const std::vector<double> all = all_gather_numbers(world, flag ? 1 : 0);
  return {all.begin(), all.end()};
}

}  // namespace

BalanceOptions balance_options(const Config& config, const Origins& origins) {
  BalanceOptions options = config.balance;
  const bool written = !config.batch.shares.empty() || !config.mesh.tokens.empty();
  if (written && !origins.contains("balance.kind")) options.kind = BalanceKind::off;
  return options;
}

Balancing::Balancing(Communicator& world, const BalanceOptions& options, index_t micro,
                     const MemoryRoom& room, bool on_gpu, std::optional<Speeds> known,
                     std::optional<Replanning> replanning)
    : facts_{crowded_ranks(world), gather_rooms(world, room.bytes), gather_flags(world, on_gpu)},
      balancer_(options, micro, facts_, std::move(known)) {
  if (replanning)
    replanner_.emplace(options, std::move(replanning->request), std::move(replanning->known),
                       facts_);
}

// What costs nothing goes first. A change that moves state is priced at a step, the same number on
// all ranks; measured, it takes a tenth to a quarter of one (docs/numbers.md).
void Balancing::observe(const StepReport& report, const Plan& plan) {
  if (next_) return;
  if (std::optional<Plan> next = balancer_.observe(report, plan)) {
    next_ = std::move(next);
    reason_ = balancer_.reason();
    moves_state_ = false;
    return;
  }
  if (!replanner_) return;
  if (auto next = replanner_->observe(report, plan, report.max_own_seconds())) {
    next_ = std::move(next);
    reason_ = replanner_->reason();
    moves_state_ = true;
  }
}

std::string Balancing::hindrance() {
  std::string text = balancer_.hindrance();
  return text.empty() && replanner_ ? replanner_->kept() : text;
}

void Balancing::taken() {
  if (!replanner_) return;
  if (moves_state_)
    replanner_->taken();
  else
    replanner_->restart();
}

void Balancing::forget() {
  next_.reset();
  if (replanner_) replanner_->keep_shape();
}

Plan Balancing::take() {
  Plan plan = std::move(*next_);
  next_.reset();
  return plan;
}

void keep_plan_file(const std::string& dir, index_t after, const Plan& plan) {
  const std::string folder = dir + "/plans";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_error(ExitCode::io, "cannot create {}: {}", folder, error.message());
  write_text_durably(fmt::format("{}/{}.toml", folder, after), plan.text());
  write_text_durably(dir + "/plan.toml", plan.text());
}

}  // namespace t3d
