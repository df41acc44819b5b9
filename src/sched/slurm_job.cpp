#include "sched/slurm_job.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <regex>

namespace t3d {
namespace {

/// Whole and nonnegative.
std::optional<double> number_of(std::string_view text) {
  long long value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return static_cast<double>(value);
}

/// Of a job's line, what stands between the values that a user chooses and that may hold blanks and
/// words like "JobState=FAILED": behind the name, before the command (and paths, and comments).
/// Slurm writes the keys in this order since 20.11; the whole text where it is not of that form.
struct JobLine {
  std::string_view facts, tail;
};
JobLine parts_of(std::string_view line) {
  static const std::regex head(
      " UserId=\\S+ GroupId=\\S+ MCS_label=\\S+ Priority=\\d+( [A-Za-z]+=\\S*)*? JobState=");
  std::cmatch found;
  if (!std::regex_search(line.data(), line.data() + line.size(), found, head)) return {line, line};
  const std::string_view facts = line.substr(static_cast<std::size_t>(found.position()));
  std::size_t end = facts.size();
  for (const char* key : {" Command=", " WorkDir=", " AdminComment=", " Comment="})
    end = std::min(end, facts.find(key));
  return {facts.substr(0, end), facts.substr(end)};
}

bool is_cut_off(std::string_view facts, const std::string& state) {
  const bool ends = state == "COMPLETING";
  const bool killed = value_of_key(facts, "Reason") == "JobLaunchFailure" &&
                      value_of_key(facts, "ExitCode") == "0:9";
  if ((ends || state == "FAILED") && killed) return true;
  // "2026-11-22T15:07:23", or "None"; of this start, not of one before.
  const std::string preempted = value_of_key(facts, "PreemptTime");
  return (ends || state == "PREEMPTED") && preempted.starts_with("2") &&
         preempted >= value_of_key(facts, "StartTime");
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

double slurm_job_end() {
  const char* end = std::getenv("SLURM_JOB_END_TIME");
  return end == nullptr ? 0 : number_of(end).value_or(0);
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
  const auto [facts, tail] = parts_of(line);
  SlurmJob job;
  job.id = value_of_key(line, "JobId");  // the first word
  job.state = value_of_key(facts, "JobState");
  if (job.id.empty() || job.state.empty()) return std::nullopt;
  job.partition = value_of_key(facts, "Partition");
  job.batch = value_of_key(facts, "BatchFlag") == "1";
  job.requeue = value_of_key(facts, "Requeue") == "1";
  job.cut_off = is_cut_off(facts, job.state);
  job.restarts = static_cast<int>(number_of(value_of_key(facts, "Restarts")).value_or(0));
  const std::size_t comment = tail.rfind(" Comment=");
  if (comment != std::string_view::npos)
    job.comment = value_of_key(tail.substr(comment), "Comment");
  const auto limit = seconds_of_slurm_time(value_of_key(facts, "TimeLimit"));
  const auto used = seconds_of_slurm_time(value_of_key(facts, "RunTime"));
  job.unlimited = value_of_key(facts, "TimeLimit") == "UNLIMITED";
  if (limit && used) job.left_seconds = *limit - *used;
  return job;
}

std::optional<double> grace_seconds_of(std::string_view scontrol_text) {
  if (value_of_key(scontrol_text, "PreemptMode") == "OFF") return std::nullopt;
  return number_of(value_of_key(scontrol_text, "GraceTime"));
}

}  // namespace t3d
