// What writer and reader of token files agree on. Internal to io/hdf5.
#pragma once
#include <fmt/ranges.h>

#include <array>

#include "io/hdf5/checked_array.hpp"
#include "io/hdf5/token_file.hpp"

namespace t3d::token_file {

inline constexpr const char* kFormat = "transformer3d tokens";
inline constexpr std::int64_t kVersion = 3;
inline constexpr const char* kEnds = "ends";
inline constexpr const char* kAddsBos = "adds_bos";
inline constexpr const char* kUnicode = "unicode";
inline constexpr const char* kDocuments = "document_ends";
inline constexpr const char* kLossBits = "loss_bits";

[[nodiscard]] inline ArrayElement ids_of(index_t vocab) {
  return {"tokens", vocab <= 65536 ? 2 : 4};
}
inline ArrayElement document_ends() { return {kDocuments, 8}; }
inline ArrayElement loss_bits() { return {kLossBits, 1}; }
[[nodiscard]] constexpr index_t bytes_of_bits(index_t bits) { return (bits + 7) / 8; }

/// The data sets of CRCs by name.
template <class Header>
[[nodiscard]] auto crc_tables(Header& header) {
  return std::array{std::pair{"block_crc32c", &header.block_crcs},
                    std::pair{"document_ends_crc32c", &header.document_crcs},
                    std::pair{"loss_bits_crc32c", &header.loss_crcs}};
}

/// The least that can keep these: older programs read what they know.
[[nodiscard]] inline std::int64_t version_for(const SpecialIds& ids) {
  return ids.ends.empty() && !ids.adds_bos ? 2 : kVersion;
}

/// As the attributes of version 3 have them: "2 0", and -1 where it is not said.
[[nodiscard]] inline std::string text_of_ends(const SpecialIds& ids) {
  return fmt::format("{}", fmt::join(ids.ends, " "));
}
[[nodiscard]] inline std::int64_t number_of_adds_bos(const SpecialIds& ids) {
  return ids.adds_bos ? std::int64_t{*ids.adds_bos} : -1;
}

/// As a file of this version keeps it.
[[nodiscard]] std::uint32_t header_crc(const TokenFileHeader& header, std::int64_t version);

}  // namespace t3d::token_file
