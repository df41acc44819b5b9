// What ranks that are threads find wrong: assertions belong to one thread.
#pragma once
#include <mutex>
#include <string>

namespace t3d::test {

/// Sentences from all ranks: test assertions belong to one thread.
class Remarks {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (all_.size() < 2000) all_ += text + "\n";
  }
  void unless(bool holds, const std::string& text) {
    if (!holds) add("not so: " + text);
  }
  [[nodiscard]] const std::string& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::string all_;
};

}  // namespace t3d::test
