#include "io/writer/snapshot.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/copy_rows.hpp"
#include "core/error.hpp"
#include "io/lock/lock_owner.hpp"

namespace t3d {
namespace {

constexpr index_t kLine = 64, kPage = 4096;

[[noreturn]] void fail(const char* what, int reason) {
  throw_error(ExitCode::unavailable, "cannot {} memory for a snapshot: {}", what,
              std::strerror(reason));
}

}  // namespace

SnapshotLayout::SnapshotLayout(const SavePlan& plan) : plan_(plan) {
  for (const PlanPiece& piece : plan.pieces())
    for (const Holding& holding : piece.holdings)
      holdings_.push_back({&holding, size_of(plan.tensor_of(piece).shape.dtype)});
  std::stable_sort(holdings_.begin(), holdings_.end(), [](const Place& a, const Place& b) {
    return a.holding->rank < b.holding->rank;
  });
  int rank = 0;
  for (const auto& [holding, element_bytes] : holdings_) {
    // A rank has its pages for itself.
    const index_t alignment = holding->rank != rank ? kPage : kLine;
    rank = holding->rank;
    bytes_ = (bytes_ + alignment - 1) / alignment * alignment;
    places_[holding] = bytes_;
    bytes_ += holding->place.box.count() * element_bytes;
  }
}

void SnapshotLayout::copy(int rank, const std::vector<TensorPart>& parts,
                          std::byte* snapshot) const {
  for (const auto& [holding, element_bytes] : holdings_) {
    if (holding->rank != rank) continue;
    const auto* from =
        static_cast<const std::byte*>(parts[static_cast<std::size_t>(holding->part)].data) +
        holding->place.offset * element_bytes;
    std::memcpy(snapshot + place_of(*holding), from,
                static_cast<std::size_t>(holding->place.box.count() * element_bytes));
  }
}

const std::byte* SnapshotLayout::strip(const Strip& strip, const std::byte* snapshot,
                                       std::vector<std::byte>& merged) const {
  const index_t each = plan_.element_bytes(strip);
  const std::vector<Copy> copies = plan_.copies_of(strip);
  const auto source = [&](const Copy& copy) {
    return snapshot + place_of(*copy.holding) +
           (copy.piece.from_offset - copy.holding->place.offset) * each;
  };
  if (copies.size() == 1 && copies.front().piece.from_ld == strip.box.cols)
    return source(copies.front());
  merged.resize(static_cast<std::size_t>(strip.box.count() * each));
  for (const Copy& copy : copies) {
    const RoutePiece& piece = copy.piece;
    copy_rows(merged.data() + piece.to_offset * each, piece.to_ld * each, source(copy),
              piece.from_ld * each, piece.rows, piece.cols * each);
  }
  return merged.data();
}

SnapshotMemory SnapshotMemory::made(index_t bytes) {
  SnapshotMemory memory;
  memory.bytes_ = bytes;
  memory.file_ = ::memfd_create("t3d-snapshot", MFD_CLOEXEC);
  if (memory.file_ < 0) fail("make", errno);
  const int reason = ::posix_fallocate(memory.file_, 0, static_cast<off_t>(kHead) + bytes);
  if (reason != 0) fail("take", reason);
  memory.map(true);
  const std::string token = random_token();
  std::memcpy(memory.start_, token.data(), token.size());
  memory.name_ = fmt::format("/proc/{}/fd/{} {}", ::getpid(), memory.file_, token);
  return memory;
}

SnapshotMemory SnapshotMemory::joined(const std::string& name, index_t bytes) {
  const std::size_t space = name.find(' ');
  const std::string path = name.substr(0, space), token = name.substr(space + 1);
  SnapshotMemory memory;
  memory.bytes_ = bytes;
  memory.file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (memory.file_ < 0) fail("reach", errno);
  struct stat status {};
  // In another process namespace the same number is another process.
  const bool same = ::fstat(memory.file_, &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_size == static_cast<off_t>(kHead) + bytes;
  if (!same) fail("reach", ENOENT);
  memory.map(true);
  if (std::memcmp(memory.start_, token.data(), token.size()) != 0) fail("reach", ENOENT);
  return memory;
}

SnapshotMemory SnapshotMemory::opened(int file, index_t bytes) {
  SnapshotMemory memory;
  memory.bytes_ = bytes;
  memory.file_ = file;
  memory.owns_file_ = false;
  memory.map(false);
  return memory;
}

SnapshotMemory::SnapshotMemory(SnapshotMemory&& other) noexcept { *this = std::move(other); }

SnapshotMemory& SnapshotMemory::operator=(SnapshotMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(owns_file_, other.owns_file_);
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  std::swap(name_, other.name_);
  return *this;
}

SnapshotMemory::~SnapshotMemory() { give_back(); }

void SnapshotMemory::map(bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* start =
      ::mmap(nullptr, kHead + static_cast<std::size_t>(bytes_), protection, MAP_SHARED, file_, 0);
  if (start == MAP_FAILED) fail("map", errno);
  start_ = start;
}

void SnapshotMemory::give_back() noexcept {
  if (start_ != nullptr) ::munmap(start_, kHead + static_cast<std::size_t>(bytes_));
  if (file_ >= 0 && owns_file_) ::close(file_);
}

}  // namespace t3d
