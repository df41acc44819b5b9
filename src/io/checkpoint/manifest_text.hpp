// What the texts of manifests and indexes have in common: whole numbers that are looked at, and a
// last line with the CRC of all before. Internal to `io`.
#pragma once
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/checkpoint/manifest.hpp"

namespace t3d {

/// A whole number from `least` to `most`, or Error(io); the library itself would cut off or round.
[[nodiscard]] index_t whole_number(const nlohmann::json& json, index_t least = 0,
                                   index_t most = std::numeric_limits<index_t>::max());
inline constexpr index_t kMostCrc = std::numeric_limits<std::uint32_t>::max();

/// A file beside the manifest, or Error(io): never one somewhere else.
[[nodiscard]] std::string plain_file_name(const nlohmann::json& json);

/// `body` and the line with its CRC. Error(io) naming `path` when nobody would read so much again.
[[nodiscard]] std::string sealed(std::string body, const std::string& path,
                                 index_t most_bytes = kManifestMostBytes);
/// `text` without that line. Error(io) naming `path` when it is damaged.
[[nodiscard]] std::string_view sealed_body(std::string_view text, const std::string& path);

/// Error(io) unless the piece lies inside its tensor's bounds and its file, and its CRCs in the
/// file's table: then its numbers are used without further looks.
void check_place(const std::string& tensor, index_t element_bytes, const Box& bounds,
                 const ManifestPiece& piece, const ManifestFile& file);

/// A manifest of version 1.
[[nodiscard]] Manifest manifest_of_version_1(const nlohmann::json& json);
/// What both versions have: state, files (without indexes), tensors (without boxes).
[[nodiscard]] Manifest manifest_head(const nlohmann::json& json);

}  // namespace t3d
