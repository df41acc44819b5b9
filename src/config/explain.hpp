// --explain: the help of a key ("model.heads"), of a bare name ("heads"), or of a table ("model").
#pragma once
#include <string>

namespace t3d {

/// Throws Error(usage) with the nearest name if there is no such key.
[[nodiscard]] std::string explain(const std::string& name);

}  // namespace t3d
