// A folder of safetensors: which file has which tensor. Internal to `io`.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/weights/safetensors.hpp"

namespace t3d {

class HfFolder {
 public:
  /// model.safetensors, or the files that model.safetensors.index.json names. Error(no_input) when
  /// there are neither; for pickled weights with the command that converts them.
  explicit HfFolder(const std::string& folder);
  struct Place {
    const SafetensorsReader* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
  };
  [[nodiscard]] const std::map<std::string, Place>& tensors() const { return tensors_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void open(const std::string& name);
  void open_indexed(const std::string& index);

  std::string path_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::map<std::string, Place> tensors_;
};

}  // namespace t3d
