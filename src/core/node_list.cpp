#include "core/node_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "core/types.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostNodes = 100'000, kMostDigits = 9;
constexpr int kMostBrackets = 4;  // of one name

[[noreturn]] void refuse(std::string_view list) {
  throw_error(ExitCode::config, "'{}' is no list of nodes", printable(list, 60));
}

void add(std::vector<std::string>& names, std::string name) {
  if (names.size() == kMostNodes) throw_error(ExitCode::config, "more than {} nodes", kMostNodes);
  names.push_back(std::move(name));
}

index_t number_of(std::string_view digits, std::string_view list) {
  index_t value = 0;
  const auto [end, reason] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || digits.size() > kMostDigits || reason != std::errc{} ||
      end != digits.data() + digits.size() || value < 0)
    refuse(list);
  return value;
}

/// Every name before and behind one pair of brackets, "1-3,07", with `tail` expanded in turn.
void expand_one(std::string_view entry, std::string_view list, const std::string& head,
                std::vector<std::string>& names, int brackets = 0) {
  const std::size_t open = entry.find('[');
  if (open == std::string_view::npos) {
    if (entry.find(']') != std::string_view::npos || (entry.empty() && head.empty())) refuse(list);
    add(names, head + std::string(entry));
    return;
  }
  const std::size_t close = entry.find(']', open);
  if (close == std::string_view::npos || brackets == kMostBrackets) refuse(list);
  const std::string before = head + std::string(entry.substr(0, open));
  std::string_view ranges = entry.substr(open + 1, close - open - 1);
  for (;;) {
    const std::size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const index_t from = number_of(low, list);
    const index_t to =
        dash == std::string_view::npos ? from : number_of(range.substr(dash + 1), list);
    if (to < from) refuse(list);
    for (index_t at = from; at <= to; ++at)
      expand_one(entry.substr(close + 1), list, before + fmt::format("{:0{}}", at, low.size()),
                 names, brackets + 1);
    if (comma == std::string_view::npos) return;
    ranges.remove_prefix(comma + 1);
  }
}

constexpr std::size_t kMostJoined = 18;

std::optional<std::uint64_t> joined_number(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > kMostJoined) return std::nullopt;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> names;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (depth < 0 || depth > 1) refuse(list);
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    expand_one(list.substr(from, at - from), list, "", names);
    from = at + 1;
  }
  if (depth != 0) refuse(list);
  return names;
}

std::vector<std::string> names_of_node_list(std::string_view list) {
  if (list.empty()) return {};
  try {
    return expand_node_list(list);
  } catch (const Error&) {
    return {};
  }
}

std::string node_list_of(std::vector<std::string> names) {
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
    if (const auto number = joined_number(digits))
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
