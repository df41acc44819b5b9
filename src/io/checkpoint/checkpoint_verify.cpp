// Reading a node file from end to end: every block against its CRC, and the whole file's CRC.
#include <algorithm>
#include <cstddef>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

struct Extent {  // one data set in the file
  index_t offset = 0, bytes = 0, first_crc = 0;
  std::string dataset;
};

std::vector<Extent> extents_of(const Manifest& manifest, const FileIndex& index) {
  std::vector<Extent> extents;
  for (const auto& [name, pieces] : index) {
    const index_t each = size_of(manifest.tensors.at(name).dtype);
    for (const ManifestPiece& piece : pieces)
      extents.push_back(
          {piece.offset, piece.box.count() * each, piece.first_crc, dataset_name(name, piece.box)});
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  return extents;
}

/// Reads forward and keeps the CRC of all that it has seen.
class Walker {
 public:
  explicit Walker(const FileReader& reader)
      : reader_(reader), buffer_(static_cast<std::size_t>(kCrcBlockBytes)) {}
  /// Up to one block; returns its CRC from `seed`.
  std::uint32_t read(index_t bytes, std::uint32_t seed) {
    reader_.read_at(at_, buffer_.data(), bytes);
    at_ += bytes;
    whole_ = crc32c(buffer_.data(), static_cast<std::size_t>(bytes), whole_);
    return crc32c(buffer_.data(), static_cast<std::size_t>(bytes), seed);
  }
  void skip_to(index_t offset) {
    if (offset < at_) throw_error(ExitCode::io, "{}: data sets overlap", reader_.path());
    while (at_ < offset) static_cast<void>(read(std::min(kCrcBlockBytes, offset - at_), 0));
  }
  [[nodiscard]] std::uint32_t whole() const { return whole_; }

 private:
  const FileReader& reader_;
  std::vector<std::byte> buffer_;
  index_t at_ = 0;
  std::uint32_t whole_ = 0xffffffffU;
};

}  // namespace

std::vector<std::uint32_t> read_crc_table(const FileReader& reader, const ManifestFile& file) {
  std::vector<std::uint32_t> table(static_cast<std::size_t>(file.table_count));
  const auto bytes = static_cast<index_t>(table.size() * sizeof table[0]);
  reader.read_at(file.table_offset, table.data(), bytes);
  if (crc32c(table.data(), static_cast<std::size_t>(bytes)) != file.table_crc)
    throw_error(ExitCode::io, "{} is damaged (data set {})", reader.path(), kCrcTableName);
  return table;
}

std::uint32_t verify_node_file(const std::string& folder, const Manifest& manifest, index_t number,
                               const FileIndex& index) {
  const ManifestFile& file = manifest.files[static_cast<std::size_t>(number)];
  const FileReader reader(folder + "/" + file.name);
  if (reader.size() != file.bytes)
    throw_error(ExitCode::io, "{} has {} bytes instead of {}", reader.path(), reader.size(),
                file.bytes);
  const auto table = read_crc_table(reader, file);
  Walker walker(reader);
  for (const Extent& extent : extents_of(manifest, index)) {
    walker.skip_to(extent.offset);
    const std::uint32_t seed = dataset_seed(manifest.state, extent.dataset);
    for (index_t block = 0; block < crc_blocks(extent.bytes); ++block) {
      const index_t bytes = std::min(kCrcBlockBytes, extent.bytes - block * kCrcBlockBytes);
      const std::uint32_t crc = walker.read(bytes, block_seed(seed, block));
      if (crc != table[static_cast<std::size_t>(extent.first_crc + block)])
        throw_error(ExitCode::io, "{} is damaged (data set {}, block {})", reader.path(),
                    extent.dataset, block);
    }
  }
  walker.skip_to(file.bytes);
  return walker.whole();
}

}  // namespace t3d
