// A folder of a test's own, removed at its end.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace t3d::test {

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name) {
    const std::string filled_in(6, 'X');  // by mkdtemp
    path_ = (std::filesystem::temp_directory_path() / ("t3d_" + name + "_" + filled_in)).string();
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot create " + path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace t3d::test
