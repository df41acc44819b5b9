#include "sched/slurm_job.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

namespace t3d {
namespace {

/// Whole and nonnegative.
std::optional<double> number_of(std::string_view text) {
  long long value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return static_cast<double>(value);
}

bool is_cut_off(std::string_view line, const std::string& state) {
  const bool ends = state == "COMPLETING";
  const bool killed =
      value_of_key(line, "Reason") == "JobLaunchFailure" && value_of_key(line, "ExitCode") == "0:9";
  if ((ends || state == "FAILED") && killed) return true;
  // "2026-11-22T15:07:23", or "None"; of this start, not of one before.
  const std::string preempted = value_of_key(line, "PreemptTime");
  return (ends || state == "PREEMPTED") && preempted.starts_with("2") &&
         preempted >= value_of_key(line, "StartTime");
}

}  // namespace

std::string slurm_job_id() {
  // The last task of an array has the number of the whole array.
  const char* array = std::getenv("SLURM_ARRAY_JOB_ID");
  const char* task = std::getenv("SLURM_ARRAY_TASK_ID");
  if (array != nullptr && task != nullptr) return std::string(array) + "_" + task;
  const char* id = std::getenv("SLURM_JOB_ID");
  return id == nullptr ? "" : id;
}

std::string value_of_key(std::string_view text, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + 1)) {
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\n') continue;
    const std::size_t begin = at + wanted.size();
    const std::size_t end = text.find_first_of(" \n", begin);
    return std::string(text.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  return {};
}

std::optional<double> seconds_of_slurm_time(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = number_of(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  for (int parts = 1;; ++parts) {
    const std::size_t colon = text.find(':');
    const auto number = number_of(text.substr(0, colon));
    if (!number || parts > 3) return std::nullopt;
    seconds = 60 * seconds + *number;
    if (colon == std::string_view::npos) {
      if (parts < 2) return std::nullopt;
      return 86400 * days + seconds;
    }
    text.remove_prefix(colon + 1);
  }
}

std::optional<SlurmJob> slurm_job_of(std::string_view scontrol_text) {
  const std::string_view line = scontrol_text.substr(0, scontrol_text.find('\n'));
  SlurmJob job;
  job.id = value_of_key(line, "JobId");
  job.state = value_of_key(line, "JobState");
  if (job.id.empty() || job.state.empty()) return std::nullopt;
  job.partition = value_of_key(line, "Partition");
  job.batch = value_of_key(line, "BatchFlag") == "1";
  job.requeue = value_of_key(line, "Requeue") == "1";
  job.cut_off = is_cut_off(line, job.state);
  job.restarts = static_cast<int>(number_of(value_of_key(line, "Restarts")).value_or(0));
  job.comment = value_of_key(line, "Comment");
  const auto limit = seconds_of_slurm_time(value_of_key(line, "TimeLimit"));
  const auto used = seconds_of_slurm_time(value_of_key(line, "RunTime"));
  if (limit && used) job.left_seconds = *limit - *used;
  return job;
}

std::optional<double> grace_seconds_of(std::string_view scontrol_text) {
  if (value_of_key(scontrol_text, "PreemptMode") == "OFF") return std::nullopt;
  return number_of(value_of_key(scontrol_text, "GraceTime"));
}

}  // namespace t3d
