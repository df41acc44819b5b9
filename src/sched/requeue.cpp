#include "sched/requeue.hpp"

#include <fmt/format.h>

#include "sched/ask.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {

std::optional<std::string> scontrol(const std::vector<std::string>& words) {
  constexpr double kSeconds = 10;
  std::vector<std::string> all{"scontrol"};
  all.insert(all.end(), words.begin(), words.end());
  return output_of(all, kSeconds);
}

Requeue can_requeue(const Scontrol& scontrol, const std::string& job_id) {
  if (job_id.empty()) return {};
  const auto text = scontrol({"-o", "show", "job", job_id});
  const std::optional<SlurmJob> job = text ? slurm_job_of(*text) : std::nullopt;
  if (!job)
    return {false, "Slurm does not say what it knows of this job: run the same command again"};
  if (!job->batch)
    return {
        false,
        "this job has no script that Slurm could start again (sbatch): run the same command again"};
  if (job->state == "PENDING") return {};  // somebody has done it
  if (job->state != "RUNNING")
    return {false,
            fmt::format("Slurm says that this job is {}: it is not started again", job->state),
            true};
  if (!job->requeue)
    return {
        false,
        "Slurm may not start this job again (sbatch --requeue allows it): submit the same script "
        "again"};
  return {true, {}};
}

bool requeue(const Scontrol& scontrol, const std::string& job_id) {
  return scontrol({"requeue", "Incomplete", job_id}).has_value();
}

}  // namespace t3d
