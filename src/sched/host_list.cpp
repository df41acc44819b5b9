#include "sched/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

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

/// "1-3,07" after `before`; false where it is not of that form, or too long.
bool add_range(std::string_view ranges, const std::vector<std::string>& before, std::size_t most,
               std::vector<std::string>& after) {
  while (!ranges.empty()) {
    const std::string_view part = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(part.size() + 1, ranges.size()));
    const auto dash = part.find('-');
    const std::string_view low = part.substr(0, dash);
    const auto first = number_of(low);
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= most) return false;
    for (std::uint64_t value = *first; value <= *last; ++value)
      for (const std::string& name : before) {
        if (after.size() >= most) return false;
        after.push_back(fmt::format("{}{:0{}}", name, value, low.size()));
      }
  }
  return !after.empty();
}

/// One element of the list: text and brackets in turns.
bool add_element(std::string_view text, std::size_t most, std::vector<std::string>& names) {
  std::vector<std::string> made{""};
  while (!text.empty()) {
    const auto open = text.find('[');
    for (std::string& name : made) name += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = text.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> after;
    if (!add_range(text.substr(open + 1, close - open - 1), made, most, after)) return false;
    made = std::move(after);
    text.remove_prefix(close + 1);
  }
  if (names.size() + made.size() > most) return false;
  for (std::string& name : made)
    if (!name.empty()) names.push_back(std::move(name));
  return true;
}

}  // namespace

std::vector<std::string> names_of_host_list(std::string_view list, std::size_t most) {
  std::vector<std::string> names;
  while (!list.empty()) {
    std::size_t end = 0;
    int depth = 0;
    while (end < list.size() && (list[end] != ',' || depth > 0)) {
      depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
      ++end;
    }
    if (!add_element(list.substr(0, end), most, names)) return {};
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
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
