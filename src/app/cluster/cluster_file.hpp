// cluster.toml: what is known of a cluster, in TOML (docs/15-cluster-file.md). Reading lists all
// faults once; writing gives the same numbers back, bit for bit, each key with what it means.
#pragma once
#include <string>

#include "hetero/cluster/cluster.hpp"

namespace t3d {

/// Throws ConfigErrors with every fault. `file_name` is for messages.
[[nodiscard]] Cluster parse_cluster(const std::string& text, const std::string& file_name);
/// The same of a file; Error(no_input) where it cannot be read.
[[nodiscard]] Cluster load_cluster(const std::string& path);
[[nodiscard]] std::string cluster_text(const Cluster& cluster);

}  // namespace t3d
