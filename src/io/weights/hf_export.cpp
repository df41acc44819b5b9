#include "io/weights/hf_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "io/weights/hf_layout.hpp"
#include "io/weights/safetensors.hpp"

namespace t3d {
namespace {

constexpr index_t kStripNumbers = index_t{4} << 20;
// A strip of a transposed matrix is columns of ours, for which all of its blocks are read.
constexpr index_t kTurnedNumbers = index_t{32} << 20;

index_t bytes_of(const HfTensor& tensor, DType dtype) {
  return tensor.box.count() * size_of(dtype);
}

/// In order, as many as fit; a tensor is never cut.
std::vector<std::vector<HfTensor>> shards_of(const std::vector<HfTensor>& tensors, DType dtype,
                                             index_t shard_bytes) {
  std::vector<std::vector<HfTensor>> shards(1);
  index_t bytes = 0;
  for (const HfTensor& tensor : tensors) {
    if (!shards.back().empty() && bytes + bytes_of(tensor, dtype) > shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(tensor);
    bytes += bytes_of(tensor, dtype);
  }
  return shards;
}

template <class T>
class Strips {
 public:
  Strips(const WeightSource& source, SafetensorsWriter& file, DType dtype)
      : source_(source), file_(file), dtype_(dtype) {}

  void write(const HfTensor& tensor) {
    const Box& box = tensor.box;
    const index_t across = tensor.transposed ? box.rows : box.cols;  // of a row of the file
    const index_t rows = tensor.rows(),
                  at_once = std::max<index_t>(
                      1, (tensor.transposed ? kTurnedNumbers : kStripNumbers) / across);
    for (index_t row = 0; row < rows; row += at_once) {
      const index_t now = std::min(at_once, rows - row);
      numbers_.resize(static_cast<std::size_t>(now * across));
      const Box strip = tensor.transposed ? Box{box.row0, box.col0 + row, box.rows, now}
                                          : Box{box.row0 + row, box.col0, now, box.cols};
      source_.read(tensor.ours, strip, dtype_of<T>(), numbers_.data(), strip.cols);
      if (tensor.transposed) turn(strip);
      if (dtype_ == DType::f16) check_range(tensor.name);
      file_.write(dtype_of<T>(), numbers_.data(), now * across);
    }
  }

 private:
  void check_range(const std::string& name) const {
    constexpr T kLargest = 65504;
    for (const T number : numbers_)
      if (std::abs(number) > kLargest)
        throw_error(ExitCode::config, "{} holds {}, which fp16 does not have; take bf16", name,
                    number);
  }
  void turn(const Box& strip) {
    turned_.resize(numbers_.size());
    for (index_t row = 0; row < strip.rows; ++row)
      for (index_t col = 0; col < strip.cols; ++col)
        turned_[static_cast<std::size_t>(col * strip.rows + row)] =
            numbers_[static_cast<std::size_t>(row * strip.cols + col)];
    numbers_.swap(turned_);
  }

  const WeightSource& source_;
  SafetensorsWriter& file_;
  DType dtype_;
  std::vector<T> numbers_, turned_;
};

void write_shard(const WeightSource& source, const std::vector<HfTensor>& tensors, DType dtype,
                 const std::string& path) {
  std::vector<SafetensorsWriter::Tensor> list;
  for (const HfTensor& tensor : tensors)
    list.push_back({tensor.name, dtype,
                    tensor.vector ? std::vector<index_t>{tensor.cols()}
                                  : std::vector<index_t>{tensor.rows(), tensor.cols()}});
  SafetensorsWriter file(path, list);
  const auto write_all = [&](auto&& strips) {
    for (const HfTensor& tensor : tensors) strips.write(tensor);
  };
  if (dtype == DType::f64)
    write_all(Strips<double>(source, file, dtype));
  else
    write_all(Strips<float>(source, file, dtype));
  file.finish();
}

void write_index(const std::vector<std::vector<HfTensor>>& shards,
                 const std::vector<std::string>& names, index_t bytes, const std::string& path) {
  nlohmann::ordered_json index;
  index["metadata"] = {{"total_size", bytes}};
  for (std::size_t at = 0; at < shards.size(); ++at)
    for (const HfTensor& tensor : shards[at]) index["weight_map"][tensor.name] = names[at];
  write_text_durably(path, index.dump(2) + "\n");
}

}  // namespace

HfFiles write_hf_weights(const WeightSource& source, const std::vector<HfTensor>& tensors,
                         DType dtype, const std::string& folder, const std::string& stem,
                         index_t shard_bytes) {
  const auto shards = shards_of(tensors, dtype, shard_bytes);
  HfFiles files;
  for (std::size_t at = 0; at < shards.size(); ++at) {
    files.names.push_back(shards.size() == 1 ? stem + ".safetensors"
                                             : fmt::format("{}-{:05}-of-{:05}.safetensors", stem,
                                                           at + 1, shards.size()));
    write_shard(source, shards[at], dtype, folder + "/" + files.names.back());
    for (const HfTensor& tensor : shards[at]) files.bytes += bytes_of(tensor, dtype);
  }
  if (shards.size() == 1) return files;
  const std::string index = stem + ".safetensors.index.json";
  write_index(shards, files.names, files.bytes, folder + "/" + index);
  files.names.push_back(index);
  return files;
}

}  // namespace t3d
