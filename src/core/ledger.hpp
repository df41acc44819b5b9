// Ledger: what this rank SENT per (verb, axis): payload bytes, messages, and in how many calls. The
// layers predict the bytes by formula (comm/cost.hpp); the two must be equal. The messages of whole
// steps have no formula: tests/unit/comm/cost.cpp bounds those of a step's control traffic.
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
    index_t messages =
        0;  // one per peer and operation, or per peer and round of one; 0 in formulas
    index_t calls = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Table = std::map<std::pair<Verb, std::string>, Entry>;

  void count(Verb verb, const std::string& axis, index_t bytes, index_t messages = 0) {
    add(verb, axis, {bytes, messages, 1});
  }
  void add(Verb verb, const std::string& axis, const Entry& more) {
    Entry& entry = table_[{verb, axis}];
    entry.bytes += more.bytes;
    entry.messages += more.messages;
    entry.calls += more.calls;
  }
  /// Everything that `other` counted, on top of what stands here.
  void merge(const Ledger& other) {
    for (const auto& [key, entry] : other.table_) add(key.first, key.second, entry);
  }
  [[nodiscard]] const Table& table() const { return table_; }
  /// Bytes sent on `axis` by all verbs.
  [[nodiscard]] index_t bytes_on(std::string_view axis) const;
  /// Messages sent by all verbs on all axes.
  [[nodiscard]] index_t messages() const;
  void clear() { table_.clear(); }

 private:
  Table table_;
};

/// Where the bytes of two ledgers differ, over every verb and axis that either has, as text; empty
/// where they are equal. Calls and messages do not matter here: formulas merge them.
[[nodiscard]] std::string difference(const Ledger& counted, const Ledger& predicted);

}  // namespace t3d
