#include "tools/report/run_facts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "config/toml_input.hpp"
#include "core/utf8.hpp"
#include "io/lives/life_files.hpp"
#include "io/posix_file.hpp"
#include "record/log/run_record.hpp"
#include "run/run_status.hpp"

namespace t3d {
namespace {

constexpr index_t kMostLives = 10'000;
constexpr index_t kMostRecordBytes = 4 << 20;  // of run.json

std::string value_text(const InputValue& value) {
  switch (value.kind) {
    case InputValue::Kind::boolean: return value.boolean ? "true" : "false";
    case InputValue::Kind::integer: return fmt::format("{}", value.integer);
    case InputValue::Kind::real: return fmt::format("{}", value.real);
    case InputValue::Kind::list: {
      std::vector<std::string> items;
      for (const InputValue& item : value.items) items.push_back(value_text(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    default: return printable(value.text);
  }
}

std::map<std::string, std::string> read_input_keys(const std::string& dir) {
  const std::string path = dir + "/resolved.toml";
  std::map<std::string, std::string> keys;
  if (!path_exists(path)) return keys;
  const InputDocument document = parse_toml(read_text_file(path), path);
  for (const InputEntry& entry : document.entries) keys[entry.name()] = value_text(entry.value);
  std::map<std::string, index_t> counts;
  for (const InputElement& element : document.elements) {
    const std::string name = fmt::format("{}[{}]", element.array, counts[element.array]++);
    for (const InputEntry& entry : element.entries)
      keys[name + "." + entry.key] = value_text(entry.value);
  }
  return keys;
}

std::vector<LifeRecord> all_lives(const RunStatus& status) {
  std::vector<LifeRecord> lives = last_lives(status.dir, kMostLives);
  const bool open = status.life && (lives.empty() || status.life->life > lives.back().life);
  if (open) lives.push_back(*status.life);
  return lives;
}

ReportJson read_record(const std::string& dir, std::vector<std::string>& notes) {
  const std::string path = dir + "/run.json";
  if (!path_exists(path)) return nullptr;
  const FileReader file(path);
  if (file.size() > kMostRecordBytes) {
    notes.push_back(fmt::format("{} is too long for the page: {}", path,
                                format_bytes(static_cast<double>(file.size()))));
    return nullptr;
  }
  const std::string text = read_text(file);
  // Otherwise the status has said what is wrong with it.
  return run_record_fault(text).empty() ? ReportJson::parse(text, nullptr, false) : nullptr;
}

/// What a difference in makes the losses of two runs incomparable.
bool matters_to_losses(const std::string& key) {
  constexpr std::string_view starts[]{"model.", "data.", "data[", "lora.", "init."};
  const bool listed = std::any_of(std::begin(starts), std::end(starts),
                                  [&](std::string_view start) { return key.starts_with(start); });
  return listed || key == "run.seed" || key == "batch.sequences";
}

}  // namespace

RunFacts read_run_facts(const std::string& dir) {
  const RunStatus status = look_at_run(dir);
  RunFacts facts;
  facts.notes = status.faults;
  facts.saved_step = logged_step_due(status);
  const auto attempt_to = [&](const auto& look) {
    try {
      look();
    } catch (const std::exception& error) {
      const auto& notes = facts.notes;
      const bool is_known = std::find(notes.begin(), notes.end(), error.what()) != notes.end();
      if (!is_known) facts.notes.emplace_back(error.what());
    }
  };
  ReportJson& json = facts.json;
  json["state"] = name_of(status.state);
  json["exit"] = nullptr;
  if (status.exit)
    json["exit"] = {{"code", static_cast<int>(status.exit->code)},
                    {"reason", status.exit->reason},
                    {"step", status.exit->step}};
  std::vector<LifeRecord> lives;
  attempt_to([&] { lives = all_lives(status); });
  json["lives"] = ReportJson::array();
  for (const LifeRecord& life : lives)
    json["lives"].push_back(ReportJson::parse(format_life(life)));
  json["events"] = ReportJson::array();
  attempt_to([&] { json["events"] = read_run_events(dir); });
  json["plans"] = ReportJson::array();
  attempt_to([&] { json["plans"] = read_run_plans(dir, lives, facts.notes); });
  attempt_to([&] { facts.input = read_input_keys(dir); });
  json["input"] = facts.input;
  json["record"] = nullptr;
  attempt_to([&] { json["record"] = read_record(dir, facts.notes); });
  return facts;
}

std::vector<InputDifference> input_differences(
    const std::vector<std::map<std::string, std::string>>& inputs) {
  std::set<std::string> keys;
  for (const auto& input : inputs)
    for (const auto& [key, value] : input) keys.insert(key);
  std::vector<InputDifference> differences;
  for (const std::string& key : keys) {
    InputDifference difference{key, {}, matters_to_losses(key)};
    for (const auto& input : inputs) {
      const auto found = input.find(key);
      difference.values.push_back(found == input.end() ? "" : found->second);
    }
    const auto& values = difference.values;
    const bool same = std::all_of(values.begin(), values.end(), [&](const std::string& value) {
      return value == values.front();
    });
    if (!same && key != "run.dir") differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace t3d
