#include "io/checkpoint/fragment.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/packer.hpp"

namespace t3d {
namespace {

/// Numbers of equal cuts.
class CutTable {
 public:
  explicit CutTable(std::vector<Cut>& cuts) : cuts_(cuts) {}
  /// Of a whole cut: any order will do.
  std::size_t number_of(const Cut& cut) {
    std::vector<index_t> key;
    for (const auto& [file, box, boxes] : cut)
      key.insert(key.end(), {file, box.row0, box.col0, box.rows, box.cols, boxes});
    const auto [place, fresh] = numbers_.try_emplace(std::move(key), cuts_.size());
    if (fresh) cuts_.push_back(cut);
    return place->second;
  }

 private:
  std::vector<Cut>& cuts_;
  std::map<std::vector<index_t>, std::size_t> numbers_;
};

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

/// Joins cuts: equal pairs make equal cuts.
class CutPairs {
 public:
  CutPairs(const Fragment& a, const Fragment& b, std::vector<Cut>& cuts)
      : a_(a), b_(b), cuts_(cuts) {}
  std::size_t number_of(std::size_t of_a, std::size_t of_b) {
    const auto [place, fresh] = numbers_.try_emplace({of_a, of_b}, cuts_.size());
    if (!fresh) return place->second;
    Cut cut = of_a == kAbsent ? Cut{} : a_.cuts[of_a];
    if (of_b != kAbsent)
      for (FileRange range : b_.cuts[of_b]) {
        range.file += std::ssize(a_.files);
        cut.push_back(range);
      }
    cuts_.push_back(std::move(cut));
    return place->second;
  }

 private:
  const Fragment &a_, &b_;
  std::vector<Cut>& cuts_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers_;
};

void add(Packer& packer, const ManifestFile& file) {
  packer.add(file.name);
  packer.add(file.index);
  for (const index_t number : {file.bytes, index_t{file.crc}, file.table_offset, file.table_count,
                               index_t{file.table_crc}, file.index_bytes, index_t{file.index_crc}})
    packer.add(number);
}

ManifestFile file_of(Unpacker& from) {
  ManifestFile file;
  file.name = from.text();
  file.index = from.text();
  file.bytes = from.number();
  file.crc = from.number();
  file.table_offset = from.number();
  file.table_count = from.number();
  file.table_crc = static_cast<std::uint32_t>(from.number());
  file.index_bytes = from.number();
  file.index_crc = static_cast<std::uint32_t>(from.number());
  return file;
}

}  // namespace

Fragment fragment_of(const std::map<std::string, StoredShape>& tensors, const FileIndex& index) {
  Fragment fragment;
  CutTable cuts(fragment.cuts);
  for (const auto& [name, shape] : tensors) {
    FragmentTensor& tensor = fragment.tensors[name];
    static_cast<StoredShape&>(tensor) = shape;
    const auto found = index.find(name);
    const bool any = found != index.end() && !found->second.empty();
    const Cut cut = any ? Cut{range_of(0, found->second)} : Cut{};
    tensor.cut = cuts.number_of(cut);
    if (!any) continue;
    const Box& all = cut.front().bounds;
    if (all.row0 < 0 || all.col0 < 0 || all.row1() > shape.rows || all.col1() > shape.cols)
      throw_error(ExitCode::io, "cannot save {}: box {} lies outside {} x {}", name, describe(all),
                  shape.rows, shape.cols);
    for (const ManifestPiece& piece : found->second)
      tensor.cover = tensor.cover + cover_sum(piece.box);
  }
  return fragment;
}

Fragment join(const Fragment& a, const Fragment& b) {
  Fragment both;
  both.files = a.files;
  both.files.insert(both.files.end(), b.files.begin(), b.files.end());
  CutPairs cuts(a, b, both.cuts);
  for (const auto& [name, tensor] : a.tensors) {
    FragmentTensor& joined = both.tensors[name] = tensor;
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end()) {
      joined.cut = cuts.number_of(tensor.cut, kAbsent);
      continue;
    }
    if (!(static_cast<const StoredShape&>(tensor) ==
          static_cast<const StoredShape&>(other->second)))
      throw_error(ExitCode::io, "ranks disagree on the shape of {}", name);
    joined.cut = cuts.number_of(tensor.cut, other->second.cut);
    joined.cover = tensor.cover + other->second.cover;
  }
  for (const auto& [name, tensor] : b.tensors) {
    const auto [place, fresh] = both.tensors.try_emplace(name, tensor);
    if (fresh) place->second.cut = cuts.number_of(kAbsent, tensor.cut);
  }
  return both;
}

std::string join_texts(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return text_of(join(parse_fragment(a), parse_fragment(b)));
}

std::string text_of(const Fragment& fragment) {
  Packer packer;
  packer.add(std::ssize(fragment.files));
  for (const ManifestFile& file : fragment.files) add(packer, file);
  packer.add(std::ssize(fragment.cuts));
  for (const Cut& cut : fragment.cuts) {
    packer.add(std::ssize(cut));
    for (const auto& [file, box, boxes] : cut)
      for (const index_t number : {file, box.row0, box.col0, box.rows, box.cols, boxes})
        packer.add(number);
  }
  for (const auto& [name, tensor] : fragment.tensors) {
    packer.add(name);
    for (const index_t number : {static_cast<index_t>(tensor.dtype), tensor.rows, tensor.cols,
                                 index_t{tensor.vector}, static_cast<index_t>(tensor.cut),
                                 static_cast<index_t>(tensor.cover.sum), tensor.cover.elements})
      packer.add(number);
  }
  return packer.take();
}

Fragment parse_fragment(const std::string& text) {
  Fragment fragment;
  Unpacker from(text);
  for (index_t left = from.number(); left > 0; --left) fragment.files.push_back(file_of(from));
  for (index_t left = from.number(); left > 0; --left) {
    Cut& cut = fragment.cuts.emplace_back();
    for (index_t ranges = from.number(); ranges > 0; --ranges) {
      FileRange range;
      Box& box = range.bounds;
      for (index_t* field : {&range.file, &box.row0, &box.col0, &box.rows, &box.cols, &range.boxes})
        *field = from.number();
      cut.push_back(range);
    }
  }
  while (from.more()) {
    FragmentTensor& tensor = fragment.tensors[from.text()];
    tensor.dtype = static_cast<DType>(from.number());
    tensor.rows = from.number();
    tensor.cols = from.number();
    tensor.vector = from.number() != 0;
    tensor.cut = static_cast<std::size_t>(from.number());
    tensor.cover.sum = static_cast<std::uint64_t>(from.number());
    tensor.cover.elements = from.number();
  }
  return fragment;
}

void check_cover(const Fragment& fragment) {
  for (const auto& [name, tensor] : fragment.tensors) {
    const std::string fault = cover_sum_fault(tensor.cover, tensor.rows, tensor.cols);
    if (!fault.empty()) throw_error(ExitCode::io, "cannot save {}: {}", name, fault);
  }
}

double tensor_bytes(const Fragment& fragment) {
  double bytes = 0;
  for (const auto& [name, tensor] : fragment.tensors)
    bytes += static_cast<double>(tensor.rows * tensor.cols * size_of(tensor.dtype));
  return bytes;
}

Manifest manifest_of(const CheckpointState& state, const Fragment& fragment) {
  Manifest manifest;
  manifest.state = state;
  manifest.files = fragment.files;
  for (const auto& [name, tensor] : fragment.tensors) manifest.tensors[name] = tensor;
  manifest.cuts = fragment.cuts;
  return manifest;
}

}  // namespace t3d
