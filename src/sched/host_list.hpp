// Lists of nodes as Slurm writes them: "n[1-3,07],gpu01-ib".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace t3d {

/// All names, as expand_node_list() gives them; nothing where it refuses the text.
[[nodiscard]] std::vector<std::string> names_of_host_list(std::string_view list);
/// As a list, neighbours joined: the inverse, but for the order.
[[nodiscard]] std::string host_list_of(std::vector<std::string> names);

}  // namespace t3d
