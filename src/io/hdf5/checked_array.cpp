#include "io/hdf5/checked_array.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/phase_clock.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

hid_t type_of(index_t bytes) {
  const H5Guard guard;
  switch (bytes) {
    case 1: return H5T_STD_U8LE;
    case 2: return H5T_STD_U16LE;
    case 4: return H5T_STD_U32LE;
    default: return H5T_STD_U64LE;
  }
}

std::uint32_t block_crc(const std::string& name, const std::vector<std::byte>& data,
                        index_t block) {
  return crc32c(data.data(), data.size(), block_seed(crc32c(name), block));
}

}  // namespace

CheckedArrayWriter::CheckedArrayWriter(const H5File& file, ArrayElement element)
    : file_(file),
      element_(std::move(element)),
      dataset_(file.create_growing(element_.name, type_of(element_.bytes),
                                   kCrcBlockBytes / element_.bytes)) {}

void CheckedArrayWriter::append(const void* values, index_t count) {
  const auto* from = static_cast<const std::byte*>(values);
  for (index_t left = count * element_.bytes; left > 0;) {
    const index_t now = std::min(left, kCrcBlockBytes - std::ssize(block_));
    block_.insert(block_.end(), from, from + now);
    from += now;
    left -= now;
    if (std::ssize(block_) == kCrcBlockBytes) flush();
  }
}

void CheckedArrayWriter::flush() {
  if (block_.empty()) return;
  crcs_.push_back(block_crc(element_.name, block_, std::ssize(crcs_)));
  file_.append(dataset_, type_of(element_.bytes), std::ssize(block_) / element_.bytes,
               block_.data());
  block_.clear();
}

std::vector<std::uint32_t> CheckedArrayWriter::finish() {
  flush();
  dataset_.close();
  return std::move(crcs_);
}

CheckedArrayReader::CheckedArrayReader(const H5File& file, ArrayElement element, index_t count,
                                       std::vector<std::uint32_t> crcs)
    : file_(file),
      element_(std::move(element)),
      count_(count),
      dataset_(file.open_dataset(element_.name)),
      crcs_(std::move(crcs)),
      verified_(crcs_.size()) {
  if (file.length_of(dataset_) != count || std::ssize(crcs_) != crc_blocks(count * element_.bytes))
    throw_error(ExitCode::io, "{} is damaged (length of {})", file.path(), element_.name);
  stamp_ = stamp();
}

CheckedArrayReader::Stamp CheckedArrayReader::stamp() const {
  struct stat entry {};
  if (::stat(file_.path().c_str(), &entry) != 0) return {};
  return {entry.st_size, entry.st_mtim.tv_sec, entry.st_mtim.tv_nsec,
          static_cast<std::int64_t>(entry.st_ino)};
}

void CheckedArrayReader::look_for_changes() {
  constexpr double kPause = 0.1;  // seconds: many ranks ask one server
  const double now = PhaseClock::now();
  if (now - looked_ < kPause) return;
  looked_ = now;
  const Stamp seen = stamp();
  if (seen == stamp_) return;
  stamp_ = seen;
  changed_ = true;
  verified_.assign(verified_.size(), false);
}

void CheckedArrayReader::read(index_t first, index_t count, void* out) {
  T3D_CHECK(first >= 0 && count >= 0 && first + count <= count_, "{} {}+{} of {}", element_.name,
            first, count, count_);
  if (count == 0) return;
  look_for_changes();
  const index_t last = (first + count - 1) * element_.bytes / kCrcBlockBytes;
  for (index_t block = first * element_.bytes / kCrcBlockBytes; block <= last; ++block)
    verify_block(block);
  file_.read_range(dataset_, type_of(element_.bytes), first, count, out);
}

void CheckedArrayReader::verify() {
  for (index_t block = 0; block < std::ssize(crcs_); ++block) verify_block(block);
}

void CheckedArrayReader::verify_block(index_t block) {
  const auto number = static_cast<std::size_t>(block);
  if (verified_[number]) return;
  const index_t each = kCrcBlockBytes / element_.bytes, first = block * each;
  const index_t count = std::min(each, count_ - first);
  block_.resize(static_cast<std::size_t>(count * element_.bytes));
  file_.read_range(dataset_, type_of(element_.bytes), first, count, block_.data());
  if (block_crc(element_.name, block_, block) != crcs_[number])
    throw_error(ExitCode::io, "{} {} ({}, block {})", file_.path(),
                changed_ ? "was changed while it is read" : "is damaged", element_.name, block);
  verified_[number] = true;
}

}  // namespace t3d
