#include "core/ledger.hpp"

#include <fmt/core.h>

#include <array>
#include <set>

namespace t3d {

std::string_view name_of(Verb verb) {
  constexpr std::array<std::string_view, 6> names{"all_gather", "reduce_scatter", "all_reduce",
                                                  "broadcast",  "exchange",       "barrier"};
  return names[static_cast<std::size_t>(verb)];
}

index_t Ledger::bytes_on(std::string_view axis) const {
  index_t bytes = 0;
  for (const auto& [key, entry] : table_)
    if (key.second == axis) bytes += entry.bytes;
  return bytes;
}

index_t Ledger::messages() const {
  index_t messages = 0;
  for (const auto& [key, entry] : table_) messages += entry.messages;
  return messages;
}

std::string difference(const Ledger& counted, const Ledger& predicted) {
  std::set<Ledger::Table::key_type> keys;
  for (const Ledger* ledger : {&counted, &predicted})
    for (const auto& [key, entry] : ledger->table()) keys.insert(key);
  const auto bytes = [](const Ledger& ledger, const Ledger::Table::key_type& key) {
    const auto found = ledger.table().find(key);
    return found == ledger.table().end() ? 0 : found->second.bytes;
  };
  std::string text;
  for (const auto& key : keys) {
    const index_t sent = bytes(counted, key), said = bytes(predicted, key);
    if (sent == said) continue;
    text += fmt::format("{}{} on {}: {} bytes counted, {} predicted", text.empty() ? "" : "; ",
                        name_of(key.first), key.second, sent, said);
  }
  return text;
}

}  // namespace t3d
