// What a report says of a run besides its steps, as JSON for the page: lives, end, checkpoints,
// events, plans with the widths of every rank, the input, run.json. What cannot be read is told in
// "notes", and is no reason to write no page.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/lives/life_record.hpp"

namespace t3d {

using ReportJson = nlohmann::ordered_json;

struct RunFacts {
  ReportJson json;                           // "lives", "exit", ...
  std::map<std::string, std::string> input;  // of resolved.toml: "table.key" -> value
  std::vector<std::string> notes;
  std::optional<index_t> saved_step;  // that log.jsonl should have
};

/// Error(no_input) when `dir` is no run folder.
[[nodiscard]] RunFacts read_run_facts(const std::string& dir);

/// Of run.log: [{"step", "kind", "text"}, ...]; the step is the last that the log tells before the
/// line. Kinds: start, checkpoint, plan, warning, error. The last ones where there are very many.
[[nodiscard]] ReportJson read_run_events(const std::string& dir);

/// Of plans/: [{"after", "hash", "mesh", "slabs", "widths"}, ...] by the step after which each
/// holds. "slabs": of each rank, -1 = idle; "widths": {"hidden": [of each rank], ...}; both are
/// left out where they are those of the plan before. A plan that no longer is that of its step,
/// because a later life went on from before it, is left out.
[[nodiscard]] ReportJson read_run_plans(const std::string& dir,
                                        const std::vector<LifeRecord>& lives,
                                        std::vector<std::string>& notes);

/// A key in which the inputs of runs differ.
struct InputDifference {
  std::string key;
  std::vector<std::string> values;  // of each run; empty = it has no such key
  bool matters = false;             // the losses cannot be compared
};
[[nodiscard]] std::vector<InputDifference> input_differences(
    const std::vector<std::map<std::string, std::string>>& inputs);

}  // namespace t3d
