#include "io/log/step_log.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string log_of(const std::string& dir, index_t lineage) {
  return fmt::format("{}/log.lineage-{}.jsonl", dir, lineage);
}

std::string text_of(const std::string& path) {
  return file_size(path) > 0 ? read_text_file(path) : "";
}

/// The records of `text` up to `last_step`; a line cut short by a kill goes too.
std::string records_until(std::string_view text, index_t last_step) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto record = nlohmann::json::parse(line, nullptr, false);
    const bool whole =
        record.is_object() && record.contains("step") && record["step"].is_number_integer();
    if (whole && record["step"].get<index_t>() <= last_step) kept.append(line).append("\n");
  }
  return kept;
}

}  // namespace

void prepare_step_log(const std::string& dir, const LogLineage& lineage, index_t start_step) {
  const std::string path = dir + "/log.jsonl";
  std::string source = path;
  if (lineage.begins && lineage.number > 0) {
    const std::string before = log_of(dir, lineage.number - 1);
    // One that is there already is whole: what log.jsonl holds then came to no checkpoint.
    if (file_size(path) >= 0 && file_size(before) < 0) rename_durably(path, before);
    source = log_of(dir, lineage.parent);
  } else if (!lineage.begins && file_size(log_of(dir, lineage.number)) >= 0) {
    rename_durably(log_of(dir, lineage.number), path);
  }
  const std::string kept = records_until(text_of(source), start_step);
  if (kept != text_of(path)) write_text_durably(path, kept);
}

}  // namespace t3d
