#include "tools/plan/noise_of_run.hpp"

#include <optional>

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "record/log/noise_log.hpp"

namespace t3d {
namespace {

/// Of the last life's input.
index_t context_of_input(const std::string& dir, index_t planned) {
  const std::string path = dir + "/resolved.toml";
  if (!path_exists(path)) return planned;
  return parse_config(read_text_file(path), path).model.context;
}

}  // namespace

NoiseOfRun noise_of_run(const std::string& dir, index_t context) {
  NoiseOfRun run;
  const auto planned = static_cast<double>(context);
  std::optional<double> by_input;
  std::vector<NoiseStep> steps;
  for (const LoggedNoise& one : logged_noise(dir)) {
    if (one.context == 0 && !by_input)
      by_input = static_cast<double>(context_of_input(dir, context));
    const double own = one.context > 0 ? one.context : *by_input;
    run.context = static_cast<index_t>(own);
    steps.push_back({static_cast<double>(one.step), one.tokens / planned, one.gradient_signal,
                     one.gradient_noise * own / planned});
  }
  if (steps.empty())
    throw_error(ExitCode::config,
                "{}/log.jsonl has no noise scale: it is measured where two replicas or more train "
                "(mesh.replicas >= 2), some hundred steps of them. Or give it: --noise B,EXPONENT",
                dir);
  if (!fit_noise(std::move(steps), run.law))
    throw_error(ExitCode::config,
                "{}/log.jsonl has too few steps for a noise scale: their gradients together show "
                "no signal above the noise. Train longer, or give it: --noise B,EXPONENT",
                dir);
  return run;
}

}  // namespace t3d
