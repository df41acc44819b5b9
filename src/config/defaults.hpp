// Texts made from the schema: the commented default input, the resolved input, the reference page.
#pragma once
#include <string>

#include "config/config.hpp"
#include "config/config_check.hpp"

namespace t3d {

/// --defaults: a complete commented input; required and computed keys are commented out, so that
/// reading it gives the defaults.
[[nodiscard]] std::string defaults_text();

/// resolved.toml: every key with its value, and whence it came. Reading it gives `config` again.
[[nodiscard]] std::string resolved_text(const Config& config, const Origins& origins = {});

/// The keys that `origins` names, and the lists of tables: an input that says no more than what
/// somebody wrote.
[[nodiscard]] std::string written_text(const Config& config, const Origins& origins);

/// docs/02-input.md, printed by --input-reference.
[[nodiscard]] std::string input_reference();

}  // namespace t3d
