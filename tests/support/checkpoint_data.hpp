// Tensors with known contents, cut at random over ranks: what checkpoint tests save and load.
#pragma once
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/random.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d::test {

struct TestTensor {
  std::string name;
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  bool vector = false;
};

inline std::vector<TestTensor> small_tensors() {
  return {{"embed.token.weight", DType::f32, 97, 33, false},
          {"blocks.0.attn.qkv.weight", DType::f32, 48, 144, false},
          {"blocks.0.attn.qkv.bias", DType::f32, 1, 144, true},
          {"optimizer/m/blocks.0.attn.qkv.weight", DType::f32, 48, 144, false},
          {"norm.scale", DType::f64, 1, 7, true},
          {"one", DType::f64, 1, 1, true},
          {"double", DType::f64, 31, 5, false},
          {"nothing", DType::f32, 0, 12, false}};
}

/// Whatever the checkpoint: these.
inline PartsOf always(const std::vector<TensorPart>& parts) {
  return [&parts](const CheckpointInfo&) { return parts; };
}

/// The file of group `number` in a checkpoint's folder.
inline std::string node_file(const std::string& folder, int number) {
  const std::string prefix = "node-0000" + std::to_string(number) + ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(prefix)) return entry.path().string();
  throw std::runtime_error("no " + prefix + " in " + folder);
}

/// The bits of one element: a function of the global index and of the step. Finite as f64 and f32:
/// the highest bits of their exponents are 0.
inline std::uint64_t element_bits(const TestTensor& tensor, index_t index, index_t step) {
  const RandomKey key{static_cast<std::uint64_t>(step), stream_of(tensor.name)};
  constexpr std::uint64_t kFinite = ~((std::uint64_t{1} << 62) | (std::uint64_t{1} << 30));
  return kFinite &
         ((std::uint64_t{random_bits(key, 2 * index)} << 32) | random_bits(key, 2 * index + 1));
}

/// Cuts [rows, cols] into boxes by random cuts, uneven and sometimes empty.
inline void cut_at_random(const Box& box, int depth, std::mt19937& random, std::vector<Box>& out) {
  const bool by_row = (random() & 1U) != 0;
  const index_t length = by_row ? box.rows : box.cols;
  if (depth == 0 || length == 0 || random() % 8 == 0) {
    out.push_back(box);
    return;
  }
  const auto cut = static_cast<index_t>(random() % static_cast<std::uint64_t>(length + 1));
  Box first = box, second = box;
  (by_row ? first.rows : first.cols) = cut;
  (by_row ? second.rows : second.cols) = length - cut;
  (by_row ? second.row0 : second.col0) += cut;
  cut_at_random(first, depth - 1, random, out);
  cut_at_random(second, depth - 1, random, out);
}

/// What one rank holds in layout number `layout`.
struct RankState {
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorPart> parts;
};

inline RankState make_state(const std::vector<TestTensor>& tensors, unsigned layout, int ranks,
                            int rank) {
  std::mt19937 random(layout);  // the same on every rank
  RankState state;
  for (const TestTensor& tensor : tensors) {
    std::vector<Box> boxes;
    cut_at_random({0, 0, tensor.rows, tensor.cols}, 4, random, boxes);
    TensorPart part{tensor.name,   tensor.dtype, tensor.rows, tensor.cols,
                    tensor.vector, nullptr,      {}};
    index_t count = 0;
    for (const Box& box : boxes) {
      if (static_cast<int>(random() % static_cast<unsigned>(ranks)) != rank) continue;
      count += 3;  // gaps that nobody may touch
      part.boxes.push_back({box, count});
      count += box.count();
    }
    state.memory.emplace_back(static_cast<std::size_t>((count + 3) * size_of(tensor.dtype)),
                              std::byte{0xA5});
    state.parts.push_back(std::move(part));
  }
  for (std::size_t n = 0; n < tensors.size(); ++n) state.parts[n].data = state.memory[n].data();
  return state;
}

/// Calls body(address, bits) for every element of every box.
template <class Body>
void for_each_element(const std::vector<TestTensor>& tensors, RankState& state, index_t step,
                      const Body& body) {
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const index_t each = size_of(tensors[n].dtype);
    for (const auto& [box, offset] : state.parts[n].boxes)
      for (index_t row = 0; row < box.rows; ++row)
        for (index_t col = 0; col < box.cols; ++col) {
          const index_t global = (box.row0 + row) * tensors[n].cols + box.col0 + col;
          body(state.memory[n].data() + (offset + row * box.cols + col) * each, each,
               element_bits(tensors[n], global, step));
        }
  }
}

inline void fill(const std::vector<TestTensor>& tensors, RankState& state, index_t step) {
  for_each_element(tensors, state, step, [](std::byte* at, index_t bytes, std::uint64_t bits) {
    std::memcpy(at, &bits, static_cast<std::size_t>(bytes));
  });
}

/// Elements whose bits are not those of `step`.
inline index_t wrong_elements(const std::vector<TestTensor>& tensors, RankState& state,
                              index_t step) {
  index_t wrong = 0;
  for_each_element(tensors, state, step, [&](std::byte* at, index_t bytes, std::uint64_t bits) {
    wrong += std::memcmp(at, &bits, static_cast<std::size_t>(bytes)) != 0;
  });
  return wrong;
}

/// Everything that is not in a box still has the pattern it was made with.
inline bool gaps_untouched(const std::vector<TestTensor>& tensors, RankState state) {
  for_each_element(tensors, state, 0, [](std::byte* at, index_t bytes, std::uint64_t) {
    std::memset(at, 0xA5, static_cast<std::size_t>(bytes));
  });
  for (const auto& memory : state.memory)
    for (const std::byte byte : memory)
      if (byte != std::byte{0xA5}) return false;
  return true;
}

}  // namespace t3d::test
