// Lists of nodes as Slurm writes them: "n[1-3,07],gpu01-ib".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace t3d {

/// All names, in their order; nothing where the text is not of that form. No more than `most` of
/// them: a list may say "n[1-999999999]".
[[nodiscard]] std::vector<std::string> names_of_host_list(std::string_view list,
                                                          std::size_t most = 1 << 20);
/// As a list, neighbours joined: the inverse, but for the order.
[[nodiscard]] std::string host_list_of(std::vector<std::string> names);

}  // namespace t3d
