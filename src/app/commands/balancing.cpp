#include "app/commands/balancing.hpp"

#include <algorithm>
#include <filesystem>

#include "comm/placement.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// Collective. Everybody's flag, by rank.
std::vector<bool> gather_flags(Communicator& world, bool flag) {
  std::int32_t own = flag ? 1 : 0;
  std::vector<std::int32_t> all(static_cast<std::size_t>(world.size()));
  const std::vector<index_t> counts(all.size(), 1);
  world.all_gather({&own, DType::i32, 1, 1}, {all.data(), DType::i32, 1, std::ssize(all)}, counts)
      .wait_host();
  return {all.begin(), all.end()};
}

}  // namespace

Balancing::Balancing(Communicator& world, const Config& config, const MemoryRoom& room, bool on_gpu)
    : balancer_(config.balance, config.batch.micro,
                {crowded_ranks(world), gather_rooms(world, room), gather_flags(world, on_gpu)}) {}

void Balancing::observe(const StepReport& report, const Plan& plan) {
  if (std::optional<Plan> next = balancer_.observe(report, plan)) {
    next_ = std::move(next);
    reason_ = balancer_.reason();
  }
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
