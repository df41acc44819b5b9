// Slurm's lists of node names.
#include <charconv>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "hetero/simulate/node_trace.hpp"

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

}  // namespace t3d
