#include "core/ledger.hpp"

#include <array>

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

}  // namespace t3d
