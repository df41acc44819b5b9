#include "data/megatron_index.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint8_t kInt32 = 4, kUint16 = 8;
constexpr index_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr index_t kPiece = index_t{1} << 16;  // entries

/// Arrays one after another; all that is read goes into the checksum.
class MegatronIndexReader {
 public:
  explicit MegatronIndexReader(const std::string& path) : file_(path) {}
  template <class Value>
  Value value() {
    Value value{};
    take(&value, sizeof value);
    return value;
  }
  /// Calls visit(entry number, entry).
  template <class Value, class Visit>
  void array(index_t count, const Visit& visit) {
    std::vector<Value> piece;
    for (index_t first = 0; first < count; first += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, count - first)));
      take(piece.data(), std::ssize(piece) * static_cast<index_t>(sizeof(Value)));
      for (std::size_t n = 0; n < piece.size(); ++n)
        visit(first + static_cast<index_t>(n), piece[n]);
    }
  }
  template <class... Args>
  void require(bool good, fmt::format_string<Args...> text, Args&&... args) const {
    if (!good)
      throw_error(ExitCode::io, "{}: {}", file_.path(),
                  fmt::format(text, std::forward<Args>(args)...));
  }
  [[nodiscard]] index_t bytes() const { return file_.size(); }
  [[nodiscard]] index_t left() const { return file_.size() - at_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::uint32_t checksum() const { return crc_; }

 private:
  void take(void* out, index_t bytes) {
    require(bytes <= left(), "it ends in the middle of its tables");
    file_.read_at(at_, out, bytes);
    at_ += bytes;
    crc_ = crc32c(out, static_cast<std::size_t>(bytes), crc_);
  }
  FileReader file_;
  index_t at_ = 0;
  std::uint32_t crc_ = 0xffffffffU;
};

index_t id_bytes_of(const MegatronIndexReader& in, std::uint8_t type) {
  if (type == kUint16) return 2;
  if (type == kInt32) return 4;
  throw_error(ExitCode::config,
              "{}: ids of type {} are not read, only those of type 4 (int32) and 8 (uint16)",
              in.path(), type);
}

/// Lengths and places; returns the tokens.
index_t read_sequences(MegatronIndexReader& in, index_t sequences, index_t id_bytes) {
  std::vector<std::int32_t> lengths;
  lengths.reserve(static_cast<std::size_t>(sequences));
  index_t tokens = 0;
  in.array<std::int32_t>(sequences, [&](index_t n, std::int32_t length) {
    in.require(length >= 0, "sequence {} has a length of {}", n, length);
    lengths.push_back(length);
  });
  in.array<std::int64_t>(sequences, [&](index_t n, std::int64_t place) {
    in.require(place == tokens * id_bytes,
               "sequence {} begins at byte {}, and the one before it ends at {}", n, place,
               tokens * id_bytes);
    tokens += lengths[static_cast<std::size_t>(n)];
  });
  return tokens;
}

}  // namespace

bool is_megatron_index(const std::string& path) {
  const FileReader file(path);
  std::string start(kMagic.size(), '\0');
  return file.size() >= kHeaderBytes &&
         file.read_up_to(0, start.data(), std::ssize(start)) == std::ssize(start) &&
         start == kMagic;
}

MegatronIndex read_megatron_index(const std::string& path) {
  MegatronIndexReader in(path);
  std::string magic(kMagic.size(), '\0');
  for (char& letter : magic) letter = in.value<char>();
  in.require(magic == kMagic, "this is no index of Megatron's");
  const auto version = in.value<std::uint64_t>();
  in.require(version == kVersion, "an index of version {}, and {} is known", version, kVersion);
  MegatronIndex index;
  index.id_bytes = id_bytes_of(in, in.value<std::uint8_t>());
  const auto sequences = in.value<std::uint64_t>(), entries = in.value<std::uint64_t>();
  const auto room = static_cast<std::uint64_t>(in.left());
  in.require(sequences <= room / 12 && entries <= room / 8 && entries > 0 &&
                 (12 * sequences + 8 * entries == room || 13 * sequences + 8 * entries == room),
             "{} bytes do not hold {} sequences and {} documents", in.bytes(), sequences, entries);
  index.sequences = static_cast<index_t>(sequences);
  index.documents = static_cast<index_t>(entries) - 1;
  index.tokens = read_sequences(in, index.sequences, index.id_bytes);
  std::int64_t last = 0;
  in.array<std::int64_t>(index.documents + 1, [&](index_t n, std::int64_t sequence) {
    in.require(sequence >= last && sequence <= index.sequences,
               "document {} begins with sequence {} of {}", n, sequence, index.sequences);
    last = sequence;
  });
  in.array<char>(in.left(), [](index_t, char) {});
  index.checksum = in.checksum();
  return index;
}

void write_megatron_index(const std::vector<std::int32_t>& lengths, index_t id_bytes,
                          const std::function<void(const void*, index_t)>& write) {
  const auto value = [&](auto number) { write(&number, sizeof number); };
  write(kMagic.data(), std::ssize(kMagic));
  value(kVersion);
  value(id_bytes == 2 ? kUint16 : kInt32);
  value(static_cast<std::uint64_t>(lengths.size()));
  value(static_cast<std::uint64_t>(lengths.size() + 1));
  write(lengths.data(), std::ssize(lengths) * 4);
  std::int64_t place = 0;
  for (const std::int32_t length : lengths) {
    value(place);
    place += length * id_bytes;
  }
  for (std::size_t n = 0; n <= lengths.size(); ++n) value(static_cast<std::int64_t>(n));
}

}  // namespace t3d
