// Files with every return code looked at: Error(io), marked as refused, names the file and the
// system's reason.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// A regular file, opened for reading; any thread may read at once.
class FileReader {
 public:
  /// Error(no_input) when it does not exist, else Error(io).
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  [[nodiscard]] index_t size() const { return size_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Exactly `bytes` bytes at `offset`, or Error(io).
  void read_at(index_t offset, void* out, index_t bytes) const;
  /// The same up to the end of the file; the number of bytes read.
  index_t read_up_to(index_t offset, void* out, index_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  index_t size_ = 0;
};

/// All of it, to its end rather than to the size it had.
[[nodiscard]] std::string read_text(const FileReader& file);
[[nodiscard]] std::string read_text_file(const std::string& path);
/// The same of a file that holds one record. Error(io) when it is longer than any: it is not read.
[[nodiscard]] std::string read_record_file(const std::string& path);
/// A stream that appends. A pipe in the place of the file is refused, not waited for. Throws
/// Error(io) naming the path.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
[[nodiscard]] std::unique_ptr<std::FILE, CloseFile> open_to_append(const std::string& path);
/// Where `path` leads behind symbolic links: a regular file, or nothing yet. Else Error(io): what
/// is renamed over a device or a pipe would take its place.
[[nodiscard]] std::string replaceable_file(const std::string& path);
/// Writes FILE.tmp, fsync, rename to FILE = replaceable_file(path), fsync of the folder: after a
/// crash there is the old text or the new one. What fails leaves no FILE.tmp.
void write_text_durably(const std::string& path, std::string_view text);
/// The same with a text that is asked for piece by piece, until there is nothing.
void replace_durably(const std::string& path,
                     const std::function<std::optional<std::string>()>& next_piece);
/// The same with the first `bytes` bytes of `source`, which may be long.
void copy_durably(const std::string& source, const std::string& path, index_t bytes);
/// Cuts a file to its first `bytes` bytes, in place: no room is needed, and a kill leaves the old
/// file or the new one.
void truncate_durably(const std::string& path, index_t bytes);
/// fsync of a file or a folder.
void sync_path(const std::string& path);
/// Renames and makes the new name durable.
void rename_durably(const std::string& from, const std::string& to);
/// -1 when there is no such file; Error(io) when that cannot be found out.
[[nodiscard]] index_t file_size(const std::string& path);
/// Seconds from 1970 to its last change; nothing when there is no such file or that cannot be found
/// out.
[[nodiscard]] std::optional<double> file_time(const std::string& path);
/// Of any kind. Only "does not exist" is false: whatever else goes wrong is Error(io).
[[nodiscard]] bool path_exists(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
/// The names in a folder, in no order; none when it does not exist; else Error(io).
[[nodiscard]] std::vector<std::string> list_folder(const std::string& path);
[[nodiscard]] std::uint32_t file_crc32c(const std::string& path);
/// Bytes that an ordinary user may still write into the file system of `folder`.
[[nodiscard]] double free_bytes(const std::string& folder);
/// The one in which `path` is: "." where it names none.
[[nodiscard]] std::string folder_of(const std::string& path);
/// Makes a folder and its parents, and makes their names durable.
void make_folder(const std::string& path);
/// "1.50 GiB"
[[nodiscard]] std::string format_bytes(double bytes);

}  // namespace t3d
