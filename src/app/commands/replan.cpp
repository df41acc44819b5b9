#include "app/commands/replan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "app/config/replan_wish.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

Plan plan_of(const std::string& file) {
  std::string text;
  try {
    text = read_text_file(file);
  } catch (const Error& error) {
    throw_error(error.code(), "debug.replan: {}", error.what());
  }
  try {
    return parse_plan(text, file);
  } catch (const Error& error) {  // read, and wrong
    throw_error(ExitCode::config, "debug.replan: {}", error.what());
  }
}

/// Whether a line of plan_differences() is about shape, places, widths, shares or memory. How
/// partial sums travel follows from the shape.
bool may_change(std::string_view difference) {
  constexpr std::array kFree{"place",       "replica",      "recompute",    "keep_weights",
                             "keep_inputs", "logits_bytes", "model.preset", "reduce_in_fp32"};
  return std::any_of(kFree.begin(), kFree.end(),
                     [&](const char* key) { return difference.starts_with(key); });
}

}  // namespace

Replan parse_replan(const std::string& text, const Plan& now) {
  const std::optional<ReplanWish> wish = parse_replan_wish(text);
  if (!wish)
    throw_error(ExitCode::config, "debug.replan: \"{}\" is not STEP:FILE or STEP:same", text);
  const std::string& file = wish->file;
  Replan replan{wish->step, file == "same" ? now : plan_of(file)};
  if (replan.plan.ranks != now.ranks)
    throw_error(ExitCode::config, "debug.replan: {} is a plan for {} ranks, the job has {}", file,
                replan.plan.ranks, now.ranks);
  replan.plan.transport = now.transport;
  for (const std::string& difference : plan_differences(now, replan.plan))
    if (!may_change(difference))
      throw_error(ExitCode::config,
                  "debug.replan: {} changes {}; a change of plan keeps what is computed", file,
                  difference);
  if (replan.plan.sequences() != now.sequences())
    throw_error(ExitCode::config,
                "debug.replan: {} changes the sequences of a step: {} -> {}; a change of plan "
                "keeps what is computed",
                file, now.sequences(), replan.plan.sequences());
  return replan;
}

}  // namespace t3d
