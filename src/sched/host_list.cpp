#include "sched/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "hetero/simulate/node_trace.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostDigits = 18;

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> names_of_host_list(std::string_view list) {
  if (list.empty()) return {};
  try {
    return expand_node_list(list);
  } catch (const Error&) {
    return {};
  }
}

std::string host_list_of(std::vector<std::string> names) {
  // By what stands before the last digits, and how many digits those are.
  std::map<std::pair<std::string, std::size_t>, std::vector<std::uint64_t>> numbered;
  std::string list;
  const auto add = [&list](const std::string& element) {
    list += (list.empty() ? "" : ",") + element;
  };
  for (const std::string& name : names) {
    const auto last = name.find_last_not_of("0123456789");
    const std::string before = last == std::string::npos ? "" : name.substr(0, last + 1);
    const std::string digits = name.substr(before.size());
    const bool padded = digits.size() > 1 && digits.front() == '0';
    if (const auto number = number_of(digits))
      numbered[{before, padded ? digits.size() : 0}].push_back(*number);
    else
      add(name);
  }
  for (auto& [key, numbers] : numbered) {
    const auto& [before, width] = key;
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::string ranges;
    for (std::size_t at = 0; at < numbers.size();) {
      std::size_t end = at;
      // A padded number and the next one have the same width only up to 99...9.
      while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
      ranges += ranges.empty() ? "" : ",";
      ranges += fmt::format("{:0{}}", numbers[at], width);
      if (end > at) ranges += fmt::format("-{:0{}}", numbers[end], width);
      at = end + 1;
    }
    const bool one = numbers.size() == 1;
    add(one ? before + ranges : fmt::format("{}[{}]", before, ranges));
  }
  return list;
}

}  // namespace t3d
