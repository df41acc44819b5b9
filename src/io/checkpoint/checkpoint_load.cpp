// Loading: the manifest says which node files may hold boxes that are wanted. File by file,
// intersect the boxes of its index with those, then read the blocks that hold the intersections
// once each, in file order, check them, and scatter. Each rank reads for itself, and has one index
// at a time.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

#include "comm/agree.hpp"
#include "core/route.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/checkpoint_read.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

constexpr index_t kReadBlocks = 16;  // at most this many at once

struct Target {      // one intersection and where it goes
  RoutePiece route;  // from the stored piece
  std::byte* data = nullptr;
};

struct PieceRead {
  const std::string* tensor = nullptr;
  index_t element_bytes = 0;
  const ManifestPiece* piece = nullptr;
  std::vector<Target> targets;

  [[nodiscard]] index_t bytes() const { return piece->box.count() * element_bytes; }
};

void check_shape(const ManifestTensor& stored, const TensorPart& part, const std::string& path) {
  if (stored.rows != part.rows || stored.cols != part.cols)
    throw_error(ExitCode::config, "{} is {} x {} here and {} x {} in {}", part.name, part.rows,
                part.cols, stored.rows, stored.cols, path);
  if (stored.dtype != part.dtype)
    throw_error(ExitCode::config, "{} is {} here and {} in {}", part.name, name_of(part.dtype),
                name_of(stored.dtype), path);
}

/// A box that is wanted, and what was found of it.
struct Want {
  const std::string* tensor = nullptr;
  const ManifestTensor* stored = nullptr;
  PlacedBox place;
  std::byte* data = nullptr;
  std::vector<Box> found;  // relative to the box
};

std::vector<Want> wants_of(const Manifest& manifest, const std::string& path,
                           const std::vector<TensorPart>& parts,
                           const std::string& optional_prefix) {
  std::vector<Want> wants;
  for (const TensorPart& part : parts) {
    const auto found = manifest.tensors.find(part.name);
    if (found == manifest.tensors.end()) {
      if (!optional_prefix.empty() && part.name.starts_with(optional_prefix)) continue;
      throw_error(ExitCode::config, "{} has no tensor {}", path, part.name);
    }
    check_shape(found->second, part, path);
    for (const PlacedBox& place : part.boxes)
      if (!place.box.empty())
        wants.push_back(
            {&found->first, &found->second, place, static_cast<std::byte*>(part.data), {}});
  }
  return wants;
}

/// The files that may hold some of it, with the names of the tensors that are wanted from each.
std::map<index_t, TensorNames> files_of(const Manifest& manifest, const std::vector<Want>& wants) {
  std::map<index_t, TensorNames> files;
  for (const Want& want : wants)
    for (const FileRange& range : manifest.cut_of(*want.stored))
      if (!intersect(range.bounds, want.place.box).empty()) files[range.file].insert(*want.tensor);
  return files;
}

/// What one file has of what is wanted, in the order of the file.
std::vector<PieceRead> plan_reads(const FileIndex& index, std::vector<Want>& wants) {
  std::map<const ManifestPiece*, PieceRead> reads;
  for (Want& want : wants) {
    const auto held = index.find(*want.tensor);
    if (held == index.end()) continue;
    for (const ManifestPiece& piece : held->second) {
      const Box common = intersect(piece.box, want.place.box);
      if (common.empty()) continue;
      want.found.push_back({common.row0 - want.place.box.row0, common.col0 - want.place.box.col0,
                            common.rows, common.cols});
      const PlacedBox stored{piece.box, 0};
      PieceRead& read =
          reads.try_emplace(&piece, PieceRead{want.tensor, size_of(want.stored->dtype), &piece, {}})
              .first->second;
      for (const RoutePiece& route : route({&stored, 1}, {&want.place, 1}, want.place.box))
        read.targets.push_back({route, want.data});
    }
  }
  std::vector<PieceRead> sorted;
  for (auto& [piece, read] : reads) sorted.push_back(std::move(read));
  std::sort(sorted.begin(), sorted.end(), [](const PieceRead& a, const PieceRead& b) {
    return a.piece->offset < b.piece->offset;
  });
  return sorted;
}

/// Marks the blocks that hold an element of any target.
std::vector<bool> blocks_needed(const PieceRead& read) {
  std::vector<bool> needed(static_cast<std::size_t>(crc_blocks(read.bytes())));
  for (const Target& target : read.targets) {
    const RoutePiece& route = target.route;
    for (index_t row = 0; row < route.rows; ++row) {
      const index_t first = (route.from_offset + row * route.from_ld) * read.element_bytes;
      const index_t last = first + route.cols * read.element_bytes - 1;
      for (index_t block = first / kCrcBlockBytes; block <= last / kCrcBlockBytes; ++block)
        needed[static_cast<std::size_t>(block)] = true;
    }
  }
  return needed;
}

/// Copies what `target` wants of the elements [first, first + count) of the piece.
void scatter(const Target& target, index_t each, const std::byte* data, index_t first,
             index_t count) {
  const RoutePiece& route = target.route;
  const index_t before = first - route.from_offset;  // elements of the piece, not of the target
  const index_t row_end =
      before + count > 0 ? std::min(route.rows, (before + count - 1) / route.from_ld + 1) : 0;
  for (index_t row = std::max<index_t>(before / route.from_ld, 0); row < row_end; ++row) {
    const index_t start = route.from_offset + row * route.from_ld;
    const index_t begin = std::max(first, start);
    const index_t end = std::min(first + count, start + route.cols);
    if (begin >= end) continue;
    std::memcpy(target.data + (route.to_offset + row * route.to_ld + begin - start) * each,
                data + (begin - first) * each, static_cast<std::size_t>((end - begin) * each));
  }
}

/// Reads pieces of one node file.
class PieceReader {
 public:
  PieceReader(const std::string& folder, const Manifest& manifest, index_t number)
      : state_(manifest.state),
        reader_(folder + "/" + manifest.files[static_cast<std::size_t>(number)].name),
        table_(read_crc_table(reader_, manifest.files[static_cast<std::size_t>(number)])) {}

  void read(const PieceRead& read) {
    const std::vector<bool> needed = blocks_needed(read);
    const std::string dataset = dataset_name(*read.tensor, read.piece->box);
    const std::uint32_t seed = dataset_seed(state_, dataset);
    const auto blocks = std::ssize(needed);
    for (index_t block = 0; block < blocks;) {
      index_t end = block;
      while (end < blocks && end - block < kReadBlocks && needed[static_cast<std::size_t>(end)])
        ++end;
      if (end == block) {
        ++block;
        continue;
      }
      read_blocks(read, dataset, seed, block, end);
      block = end;
    }
  }

 private:
  void read_blocks(const PieceRead& read, const std::string& dataset, std::uint32_t seed,
                   index_t begin, index_t end) {
    const index_t first = begin * kCrcBlockBytes;
    const index_t bytes = std::min(end * kCrcBlockBytes, read.bytes()) - first;
    buffer_.resize(static_cast<std::size_t>(kReadBlocks * kCrcBlockBytes));
    reader_.read_at(read.piece->offset + first, buffer_.data(), bytes);
    for (index_t block = begin; block < end; ++block) {
      const index_t at = (block - begin) * kCrcBlockBytes;
      const auto size = static_cast<std::size_t>(std::min(kCrcBlockBytes, bytes - at));
      const std::uint32_t crc = crc32c(buffer_.data() + at, size, block_seed(seed, block));
      if (crc != table_[static_cast<std::size_t>(read.piece->first_crc + block)])
        throw_error(ExitCode::io, "{} is damaged (data set {}, block {})", reader_.path(), dataset,
                    block);
    }
    for (const Target& target : read.targets)
      scatter(target, read.element_bytes, buffer_.data(), first / read.element_bytes,
              bytes / read.element_bytes);
  }

  const CheckpointState& state_;
  FileReader reader_;
  std::vector<std::uint32_t> table_;
  std::vector<std::byte> buffer_;
};

}  // namespace

const FileIndex& IndexCache::of(index_t file) {
  const auto [place, fresh] = read_.try_emplace(file);
  if (fresh) place->second = read_index(folder_, manifest_, file, names_);
  return place->second;
}

void load_parts(const Manifest& manifest, const std::string& path,
                const std::vector<TensorPart>& parts, const std::string& optional_prefix,
                IndexCache* cache) {
  std::vector<Want> wants = wants_of(manifest, path, parts, optional_prefix);
  for (const auto& [file, names] : files_of(manifest, wants)) {
    const FileIndex own = cache != nullptr ? FileIndex{} : read_index(path, manifest, file, names);
    const std::vector<PieceRead> reads =
        plan_reads(cache != nullptr ? cache->of(file) : own, wants);
    if (reads.empty()) continue;
    PieceReader reader(path, manifest, file);
    for (const PieceRead& read : reads) reader.read(read);
  }
  for (const Want& want : wants)
    if (!cover_fault(want.found, want.place.box.rows, want.place.box.cols).empty())
      throw_error(ExitCode::io, "{} does not hold all of {}", path, *want.tensor);
}

Manifest read_manifest(Communicator& all, const std::string& path) {
  std::string text;
  std::optional<Error> fault;
  attempt(fault, [&] {
    if (all.rank() == 0) text = read_manifest_text(path);
  });
  agree(all, fault);
  text = broadcast_text(all, std::move(text));
  Manifest manifest;
  attempt(fault, [&] {
    manifest = parse_manifest(text, path + "/" + kManifestName);
    if (all.rank() == 0) check_files(manifest, path);
  });
  agree(all, fault);
  return manifest;
}

void load_from(Communicator& all, const Manifest& manifest, const std::string& path,
               const std::vector<TensorPart>& parts, const std::string& optional_prefix) {
  std::optional<Error> fault;
  attempt(fault, [&] { load_parts(manifest, path, parts, optional_prefix); });
  agree(all, fault);
}

void load_checkpoint(Communicator& world, const std::string& path, std::vector<TensorPart>& parts,
                     const std::string& optional_prefix) {
  const auto all = checkpoint_group(world);
  load_from(*all, read_manifest(*all, path), path, parts, optional_prefix);
}

}  // namespace t3d
