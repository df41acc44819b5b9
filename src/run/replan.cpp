#include "run/replan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/replan_wish.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

Plan plan_of(const std::string& key, const std::string& file) {
  std::string text;
  try {
    text = read_text_file(file);
  } catch (const Error& error) {
    throw_error(error.code(), "{}: {}", key, error.what());
  }
  try {
    return parse_plan(text, file);
  } catch (const Error& error) {  // read, and wrong
    throw_error(ExitCode::config, "{}: {}", key, error.what());
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

Plan plan_instead(const std::string& key, const std::string& file, const Plan& now) {
  Plan plan = plan_of(key, file);
  if (plan.ranks != now.ranks)
    throw_error(ExitCode::config, "{}: {} is a plan for {} ranks, the job has {}", key, file,
                plan.ranks, now.ranks);
  plan.transport = now.transport;
  for (const std::string& difference : plan_differences(now, plan))
    if (!may_change(difference))
      throw_error(ExitCode::config, "{}: {} changes {}; a change of plan keeps what is computed",
                  key, file, difference);
  if (plan.sequences() != now.sequences())
    throw_error(ExitCode::config,
                "{}: {} changes the sequences of a step: {} -> {}; a change of plan keeps what is "
                "computed",
                key, file, now.sequences(), plan.sequences());
  return plan;
}

Replan parse_replan(const std::string& text, const Plan& now) {
  const std::optional<ReplanWish> wish = parse_replan_wish(text);
  if (!wish)
    throw_error(ExitCode::config, "debug.replan: \"{}\" is not STEP:FILE or STEP:same", text);
  if (wish->file == "same") return {wish->step, now};
  return {wish->step, plan_instead("debug.replan", wish->file, now)};
}

std::vector<Replan> parse_replans(const std::vector<std::string>& texts, const Plan& now) {
  std::vector<Replan> all;
  for (const std::string& text : texts) {
    Replan replan = parse_replan(text, now);
    if (std::any_of(all.begin(), all.end(),
                    [&](const Replan& other) { return other.step == replan.step; }))
      throw_error(ExitCode::config, "debug.replan: two changes after step {}", replan.step);
    all.push_back(std::move(replan));
  }
  return all;
}

}  // namespace t3d
