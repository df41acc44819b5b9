// Token files that an input names and that are not there: faults of the input like all others.
#pragma once
#include <string>
#include <vector>

#include "config/config_check.hpp"

namespace t3d {

/// Of one process, by the file system that it sees.
[[nodiscard]] std::vector<Fault> missing_data_files(const Config& config, const Origins& origins,
                                                    const std::string& file_name);

}  // namespace t3d
