// The last operations of a rank, for the message of a wait that did not end.
#pragma once
#include <array>
#include <string>

#include "core/ledger.hpp"

namespace t3d {

class Trace {
 public:
  static constexpr std::size_t kLength = 64;

  /// Notes the start of an operation and returns its number.
  index_t add(Verb verb, const std::string& axis, index_t bytes);
  void finish(index_t number);
  /// In one line: the oldest that are under way, and the last that came before.
  [[nodiscard]] std::string text() const;

 private:
  struct Entry {
    Verb verb = Verb::barrier;
    bool finished = false;
    std::string axis;
    index_t bytes = 0;
  };
  std::array<Entry, kLength> ring_;
  index_t next_ = 0;
};

}  // namespace t3d
