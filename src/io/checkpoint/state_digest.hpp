// One number for the whole state, however its tensors are cut: the sum over all elements of
// (bits + 1) * key(tensor, place), modulo 2^64, with odd keys. A sum of products with keys by place
// is the multilinear hash (Carter and Wegman, Universal classes of hash functions, 1979): whoever
// holds some elements adds their part. A change of one element always changes it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// The part of one box of `tensor` [rows, cols], whose elements (f64 or f32) lie in `data` row
/// after row.
[[nodiscard]] std::uint64_t digest_of_box(const std::string& tensor, DType type, index_t cols,
                                          const Box& box, const void* data);
/// Of all boxes of one rank's parts but those whose tensors' names start with a non-empty
/// `without`.
[[nodiscard]] std::uint64_t digest_of_parts(const std::vector<TensorPart>& parts,
                                            const std::string& without);
/// Collective. The sum over the ranks, as text: 16 hexadecimal digits.
[[nodiscard]] std::string whole_digest(Communicator& world, std::uint64_t own);
[[nodiscard]] std::string digest_text(std::uint64_t digest);
/// Looks like one.
[[nodiscard]] bool is_digest(const std::string& text);

/// Name of the text in a checkpoint that has it.
inline constexpr const char* kDigestText = "digest";

}  // namespace t3d
