// The input of the last life that began, kept in the run folder as accepted.toml. A job that Slurm
// starts again, or a chain of jobs, reads its input in every life; where that was edited meanwhile
// and has faults now, it goes on with the kept one. Who starts a job by hand is told the faults
// instead (docs/decisions/027).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace t3d {

/// Replaces accepted.toml in `dir`: `text` with a last line that says which file it was (`path`)
/// and which Slurm job read it. Error(io).
void keep_input(const std::string& dir, const std::string& path, const std::string& text);

/// What was kept of the input `path`, whose text now has faults. The run folder is that of
/// `overrides`, or of the lines of [run] in `text` that can be read, or of the file's name. Nothing
/// where this job does not go on by itself, or where nothing is there. Never throws.
[[nodiscard]] std::optional<std::string> kept_input(
    const std::string& path, const std::string& text,
    const std::vector<std::string>& overrides) noexcept;

}  // namespace t3d
