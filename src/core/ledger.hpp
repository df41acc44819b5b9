// Byte ledger: how many payload bytes this rank SENT per (verb, axis), and in how many calls. The
// layers predict the same table by formula (comm/cost.hpp); the two must be equal.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/types.hpp"

namespace t3d {

enum class Verb : int { all_gather, reduce_scatter, all_reduce, broadcast, exchange, barrier };
inline constexpr std::size_t kVerbs = 6;
[[nodiscard]] std::string_view name_of(Verb verb);

class Ledger {
 public:
  struct Entry {
    index_t bytes = 0;
    index_t calls = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Table = std::map<std::pair<Verb, std::string>, Entry>;

  void count(Verb verb, const std::string& axis, index_t bytes) {
    Entry& entry = table_[{verb, axis}];
    entry.bytes += bytes;
    ++entry.calls;
  }
  [[nodiscard]] const Table& table() const { return table_; }
  /// Bytes sent on `axis` by all verbs.
  [[nodiscard]] index_t bytes_on(std::string_view axis) const;
  void clear() { table_.clear(); }

 private:
  Table table_;
};

}  // namespace t3d
