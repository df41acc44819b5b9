#include "io/weights/safetensors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

struct Format {
  std::string_view name;
  index_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<Format, 16> kFormats{{{"F64", 8, DType::f64},
                                           {"F32", 4, DType::f32},
                                           {"F16", 2, DType::f16},
                                           {"BF16", 2, DType::bf16},
                                           {"I64", 8, {}},
                                           {"I32", 4, {}},
                                           {"I16", 2, {}},
                                           {"I8", 1, {}},
                                           {"U64", 8, {}},
                                           {"U32", 4, {}},
                                           {"U16", 2, {}},
                                           {"U8", 1, {}},
                                           {"BOOL", 1, {}},
                                           {"F8_E4M3", 1, {}},
                                           {"F8_E5M2", 1, {}},
                                           {"C64", 8, {}}}};

const Format* find_format(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const Format& format) { return format.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw_error(ExitCode::io, "{} is not a file of safetensors: {}", path, what);
}

index_t number_of(const Json& json, const std::string& path, const std::string& name) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > kMost)
    bad(path, fmt::format("a size of {} is no number from 0 on", printable(name, 100)));
  return json.get<index_t>();
}

/// Elements; Error when they are more than a file can hold.
index_t count_of(const std::vector<index_t>& shape, const std::string& path,
                 const std::string& name) {
  constexpr index_t kMost = index_t{1} << 56;
  index_t count = 1;
  for (const index_t extent : shape) {
    if (extent != 0 && count > kMost / extent)
      bad(path, fmt::format("{} has more numbers than fit into a file", printable(name, 100)));
    count *= extent;
  }
  return count;
}

SafetensorsEntry entry_of(const std::string& name, const Json& json, index_t data_begin,
                          const std::string& path) {
  const auto field = [&](const char* key, bool right) -> const Json& {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (found == json.end()) bad(path, fmt::format("{} has no {}", printable(name, 100), key));
    if (found->is_array() != right)
      bad(path, fmt::format("{} of {} is of another kind", key, printable(name, 100)));
    return *found;
  };
  SafetensorsEntry entry;
  const Json& dtype = field("dtype", false);
  if (!dtype.is_string())
    bad(path, fmt::format("the dtype of {} is no word", printable(name, 100)));
  entry.dtype = dtype.get<std::string>();
  const Format* format = find_format(entry.dtype);
  if (format == nullptr)
    bad(path, fmt::format("the dtype {} of {} is not known", printable(entry.dtype, 40),
                          printable(name, 100)));
  for (const Json& extent : field("shape", true))
    entry.shape.push_back(number_of(extent, path, name));
  const Json& offsets = field("data_offsets", true);
  if (offsets.size() != 2) bad(path, fmt::format("{} has no two offsets", printable(name, 100)));
  const index_t begin = number_of(offsets[0], path, name), end = number_of(offsets[1], path, name);
  const index_t bytes = count_of(entry.shape, path, name) * format->bytes;
  if (end < begin || end - begin != bytes)
    bad(path, fmt::format("{} has {} bytes by its shape and offsets {} to {}", printable(name, 100),
                          bytes, begin, end));
  constexpr index_t kFar = std::numeric_limits<index_t>::max() / 2;
  if (end > kFar) bad(path, fmt::format("{} is after its end", printable(name, 100)));
  entry.begin = data_begin + begin;
  entry.end = data_begin + end;
  return entry;
}

/// Names at the top of the object; the JSON library keeps the last of two alike without a word.
Json parse_object(std::string_view text, const std::string& path) {
  std::set<std::string> names;
  std::string twice;
  constexpr int kDeepest = 8;  // more is not a header, and parsing it may need much memory
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) bad(path, "its header is nested too deeply");
    if (event == Json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, look);
  } catch (const Json::exception& error) {
    bad(path, fmt::format("its header is no JSON ({})", error.what()));
  }
  if (!json.is_object()) bad(path, "its header is no JSON object");
  if (!twice.empty()) bad(path, fmt::format("{} is there twice", printable(twice, 100)));
  return json;
}

void check_places(const SafetensorsHeader& header, index_t data_begin, index_t file_bytes,
                  const std::string& path) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  for (const auto& [name, entry] : header) order.emplace_back(&entry, &name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  index_t at = data_begin;
  for (const auto& [entry, name] : order) {
    if (entry->end > file_bytes)
      bad(path, fmt::format("{} ends at byte {}, the file at {}: it was cut short",
                            printable(*name, 100), entry->end, file_bytes));
    if (entry->begin != at)
      bad(path,
          fmt::format("{} {}", printable(*name, 100),
                      entry->begin < at ? "overlaps another tensor" : "has a hole before it"));
    at = entry->end;
  }
  if (at != file_bytes) bad(path, fmt::format("{} bytes follow its last tensor", file_bytes - at));
}

std::string read_header(const FileReader& file) {
  std::uint64_t length = 0;
  static_assert(std::endian::native == std::endian::little, "lengths are read as they lie");
  if (file.size() < index_t{8}) bad(file.path(), "it is shorter than 8 bytes");
  file.read_at(0, &length, sizeof length);
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes))
    bad(file.path(),
        fmt::format("a header of {} bytes, at most {} are read", length, kMostHeaderBytes));
  std::string text(static_cast<std::size_t>(length), '\0');
  if (file.size() < 8 + std::ssize(text)) bad(file.path(), "it ends within its header");
  file.read_at(8, text.data(), std::ssize(text));
  return text;
}

std::string header_text(const std::vector<SafetensorsWriter::Tensor>& tensors) {
  nlohmann::ordered_json json;
  json["__metadata__"] = {{"format", "pt"}};
  index_t at = 0;
  for (const auto& tensor : tensors) {
    index_t bytes = size_of(tensor.dtype);
    for (const index_t extent : tensor.shape) bytes *= extent;
    json[tensor.name] = {{"dtype", safetensors_name(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // numbers begin at a multiple of 8
  return text;
}

}  // namespace

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  const Format* format = find_format(name);
  return format == nullptr ? std::nullopt : format->dtype;
}

std::string_view safetensors_name(DType dtype) {
  for (const Format& format : kFormats)
    if (format.dtype == dtype) return format.name;
  throw_error(ExitCode::config, "weights cannot be stored as {}", name_of(dtype));
}

SafetensorsHeader parse_safetensors_header(std::string_view text, index_t data_begin,
                                           index_t file_bytes, const std::string& path) {
  const Json json = parse_object(text, path);
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items())
    if (name != "__metadata__") header[name] = entry_of(name, value, data_begin, path);
  check_places(header, data_begin, file_bytes, path);
  return header;
}

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(path) {
  const std::string text = read_header(file_);
  header_ = parse_safetensors_header(text, 8 + std::ssize(text), file_.size(), path);
}

void SafetensorsReader::read(const SafetensorsEntry& tensor, index_t first, index_t count, DType to,
                             void* out) const {
  const std::optional<DType> from = dtype_of_safetensors(tensor.dtype);
  if (!from) throw_error(ExitCode::io, "{}: {} are no numbers of a model", path(), tensor.dtype);
  const index_t each = size_of(*from);
  T3D_CHECK(first >= 0 && count >= 0 && tensor.begin + (first + count) * each <= tensor.end,
            "numbers {}+{} of a tensor of {} bytes", first, count, tensor.end - tensor.begin);
  if (*from == to) return file_.read_at(tensor.begin + first * each, out, count * each);
  constexpr index_t kAtOnce = 1 << 20;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(count, kAtOnce) * each));
  for (index_t done = 0; done < count; done += kAtOnce) {
    const index_t now = std::min(kAtOnce, count - done);
    file_.read_at(tensor.begin + (first + done) * each, buffer.data(), now * each);
    convert_numbers(*from, buffer.data(), to, static_cast<std::byte*>(out) + done * size_of(to),
                    now);
  }
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<Tensor>& tensors)
    : partial_(path), tensors_(tensors) {
  fd_ = ::open(partial_.name().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0)
    throw_error(ExitCode::io, "cannot create {}: {}", partial_.name(), std::strerror(errno));
  const std::string text = header_text(tensors);
  if (std::ssize(text) > kMostHeaderBytes)
    throw_error(ExitCode::io, "{} would have a header of {} bytes", path, text.size());
  const auto length = static_cast<std::uint64_t>(text.size());
  store(&length, sizeof length);
  store(text.data(), std::ssize(text));
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void SafetensorsWriter::store(const void* data, index_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, from, static_cast<std::size_t>(bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      throw_error(ExitCode::io, "cannot write {}: {}", partial_.name(), std::strerror(errno));
    from += done;
    bytes -= done;
  }
}

void SafetensorsWriter::write(DType from, const void* numbers, index_t count) {
  const auto* source = static_cast<const std::byte*>(numbers);
  while (count > 0) {
    while (left_ == 0) {
      T3D_CHECK(at_ < tensors_.size(), "more numbers than {} has tensors for", partial_.path());
      left_ = 1;
      for (const index_t extent : tensors_[at_].shape) left_ *= extent;
      ++at_;
    }
    const DType to = tensors_[at_ - 1].dtype;
    constexpr index_t kAtOnce = 1 << 20;
    const index_t now = std::min({count, left_, kAtOnce});
    converted_.resize(static_cast<std::size_t>(now * size_of(to)));
    convert_numbers(from, source, to, converted_.data(), now);
    store(converted_.data(), std::ssize(converted_));
    source += now * size_of(from);
    count -= now;
    left_ -= now;
  }
}

void SafetensorsWriter::finish() {
  T3D_CHECK(at_ == tensors_.size() && left_ == 0, "{} is not whole", partial_.path());
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0)
    throw_error(ExitCode::io, "cannot write {}: {}", partial_.name(), std::strerror(errno));
  partial_.publish();
}

}  // namespace t3d
