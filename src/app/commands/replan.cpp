#include "app/commands/replan.hpp"

#include <charconv>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

Plan plan_of(const std::string& file) {
  try {
    return parse_plan(read_text_file(file), file);
  } catch (const Error& error) {
    throw_error(error.code(), "debug.replan: {}", error.what());
  }
}

}  // namespace

Replan parse_replan(const std::string& wish, const Plan& now) {
  const auto colon = wish.find(':');
  Replan replan;
  const char* end = wish.data() + std::min(colon, wish.size());
  const auto [stop, error] = std::from_chars(wish.data(), end, replan.step);
  if (colon == std::string::npos || error != std::errc() || stop != end || replan.step < 1)
    throw_error(ExitCode::config, "debug.replan: \"{}\" is not STEP:FILE or STEP:same", wish);
  const std::string file = wish.substr(colon + 1);
  replan.plan = file == "same" ? now : plan_of(file);
  if (replan.plan.ranks != now.ranks)
    throw_error(ExitCode::config, "debug.replan: {} is a plan for {} ranks, the job has {}", file,
                replan.plan.ranks, now.ranks);
  for (const std::string& difference : plan_differences(now, replan.plan))
    if (difference.starts_with("model.") && !difference.starts_with("model.preset"))
      throw_error(ExitCode::config, "debug.replan: {} is a plan for another model: {}", file,
                  difference);
  if (replan.plan.optimizer != now.optimizer || replan.plan.compute != now.compute ||
      replan.plan.matmul != now.matmul)
    throw_error(ExitCode::config, "debug.replan: {} changes the optimizer or the precision", file);
  replan.plan.transport = now.transport;
  return replan;
}

}  // namespace t3d
