// The index of Megatron's token files: NAME.bin holds the ids of all sequences, NAME.idx says where
// each begins. Little-endian, in this order:
//
//   9 bytes "MMIDIDX" and two zeros, uint64 version 1, uint8 type of the ids (4 = int32, 8 =
//   uint16), uint64 S sequences, uint64 D entries of the documents, int32 [S] length of each
//   sequence, int64 [S] its byte in NAME.bin, int64 [D] the sequence that each document begins
//   with, and at the end S; newer files may have int8 [S] modes behind that.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct MegatronIndex {
  index_t id_bytes = 0;  // 2 or 4
  index_t sequences = 0, documents = 0, tokens = 0;
  std::uint32_t checksum = 0;  // CRC32C of the whole file
};

/// True when `path` begins as an index does.
[[nodiscard]] bool is_megatron_index(const std::string& path);

/// Reads and checks all of it; 4 bytes of memory a sequence. Error(io) naming the path when it is
/// not whole, or the sequences do not lie one behind another; Error(config) for ids of another
/// type.
[[nodiscard]] MegatronIndex read_megatron_index(const std::string& path);

/// Hands the index of documents of one sequence each to `write`, piece by piece.
void write_megatron_index(const std::vector<std::int32_t>& lengths, index_t id_bytes,
                          const std::function<void(const void*, index_t)>& write);

}  // namespace t3d
