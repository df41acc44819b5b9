#include "record/log/event_log.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "core/error.hpp"
#include "record/log/event_file.hpp"
#include "record/log/step_scalars.hpp"

namespace t3d {
namespace {

/// TensorBoard looks for "tfevents" and reads files in the order of their names.
constexpr std::string_view kBefore = "events.out.tfevents.", kBehind = ".transformer3d";

double seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// What the program itself has written there, the oldest first.
std::vector<std::string> event_files(const std::string& folder) {
  if (!is_folder(folder)) return {};
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [](const std::string& name) {
    return !name.starts_with(kBefore) || !name.ends_with(kBehind);
  });
  std::sort(names.begin(), names.end());
  return names;
}

void remove_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw_error(ExitCode::io, "cannot remove {}: {}", path, error.message());
}

index_t number_of(const std::string& name) {
  index_t number = 0;
  std::from_chars(name.data() + kBefore.size(), name.data() + name.size(), number);
  return number;
}

/// Its name comes after those that are there, whatever the clock of this node says.
std::string next_file(const std::string& folder) {
  make_folder(folder);
  auto number = static_cast<index_t>(seconds_now());
  for (const std::string& name : event_files(folder))
    number = std::max(number, number_of(name) + 1);
  return fmt::format("{}/{}{:010}{}", folder, kBefore, number, kBehind);
}

}  // namespace

// A life has cut the files of those before it when it began its own: what is older than a file that
// begins in time is not looked at.
void cut_events(const std::string& folder, index_t last_step) {
  std::vector<std::string> names = event_files(folder);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const std::string path = folder + "/" + *name;
    const auto first = first_event_step(path);
    const FoundEvents kept = find_events(path, last_step);
    if (!kept.has_steps)
      remove_file(path);
    else if (kept.bytes < file_size(path))
      truncate_durably(path, kept.bytes);
    if (kept.has_steps && first && *first <= last_step) return;
  }
}

void copy_events(const std::string& source, const std::string& folder, index_t last_step) {
  for (const std::string& name : event_files(source)) {
    const FoundEvents kept = find_events(source + "/" + name, last_step);
    if (!kept.has_steps) continue;
    make_folder(folder);
    copy_durably(source + "/" + name, folder + "/" + name, kept.bytes);
  }
}

StepsThere logged_events(const std::string& folder, index_t most_bytes) {
  const std::vector<std::string> names = event_files(folder);
  StepsThere steps;
  for (auto name = names.begin(); name != names.end() && !steps.first; ++name)
    steps.first = first_logged_step(folder + "/" + *name);
  if (!steps.first) return steps;
  auto oldest = names.end();  // of those that are looked at
  index_t left = most_bytes;
  while (oldest != names.begin() && left > 0) left -= file_size(folder + "/" + *--oldest);
  for (auto name = oldest; name != names.end(); ++name)
    for_each_event_step(
        folder + "/" + *name, [&](index_t step) { steps.add(step); },
        name == oldest ? std::max<index_t>(0, -left) : 0);
  constexpr index_t kAll = std::numeric_limits<index_t>::max();
  if (steps.missing.last() || most_bytes == kAll) return steps;
  return logged_events(folder, kAll);
}

void drop_events(const std::string& folder) {
  for (const std::string& name : event_files(folder)) remove_file(folder + "/" + name);
  if (is_folder(folder) && list_folder(folder).empty()) remove_file(folder);
}

EventLog::EventLog(const std::string& folder, index_t start_step) : file_(next_file(folder)) {
  const double now = seconds_now();
  // A TensorBoard that is running has read the steps that are done again now.
  const std::string reason =
      file_.put(tf_record(version_event(now)) + tf_record(start_event(now, start_step + 1)));
  if (!reason.empty()) throw_error(ExitCode::io, "cannot write {}: {}", file_.path(), reason);
}

std::string EventLog::put(const StepRecord& record) {
  std::vector<EventScalar> scalars = step_scalars(record);
  // TensorBoard groups by what stands before the first slash.
  for (auto& [name, number] : scalars)
    if (name.find('/') == std::string::npos) name = "step/" + name;
  return file_.put(tf_record(scalar_event(seconds_now(), record.step, scalars)));
}

}  // namespace t3d
