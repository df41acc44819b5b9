#include "record/log/append_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace t3d {

AppendFile::AppendFile(std::string path, std::string mend)
    : path_(std::move(path)),
      mend_(std::move(mend)),
      file_(open_to_append(path_)),
      whole_(file_size(path_)) {
  // What could not be written must not wait in a buffer and follow later.
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
}

std::string AppendFile::put(std::string_view record) {
  const auto failed = [&](int reason) {
    ++lost_;
    return std::string(std::strerror(reason));
  };
  if (cut_ && mend_.empty()) {
    if (::ftruncate(fileno(file_.get()), whole_) != 0) return failed(errno);
    cut_ = false;
  }
  const std::string text = (cut_ ? mend_ : "") + std::string(record);
  std::clearerr(file_.get());
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) {
    // Behind the part of a record that could not be taken away, its bytes count, too.
    whole_ = cut_ ? file_size(path_) : whole_ + std::ssize(text);
    cut_ = false;
    return "";
  }
  const int reason = errno;
  cut_ = ::ftruncate(fileno(file_.get()), whole_) != 0;
  return failed(reason);
}

// What the disk refuses now is told when the next record is written.
void AppendFile::sync() const { (void)!::fdatasync(fileno(file_.get())); }

}  // namespace t3d
