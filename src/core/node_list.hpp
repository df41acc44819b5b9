// Lists of nodes as Slurm writes them: "n[1-3,07],gpu01-ib".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace t3d {

/// "n[1-3,07],gpu2" as names. Error(config), without the place, when it is malformed or names more
/// than 100,000 nodes.
[[nodiscard]] std::vector<std::string> expand_node_list(std::string_view list);
/// The same; nothing where the text is refused.
[[nodiscard]] std::vector<std::string> names_of_node_list(std::string_view list);
/// As a list, neighbours joined: the inverse, but for the order.
[[nodiscard]] std::string node_list_of(std::vector<std::string> names);

}  // namespace t3d
