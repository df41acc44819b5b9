#include "run/next_command.hpp"

#include <algorithm>
#include <string_view>

namespace t3d {
namespace {

/// As a shell reads it.
std::string word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

}  // namespace

std::string next_command(const RunWords& command, const std::vector<std::string_view>& without,
                         const std::string& instead) {
  std::string text = "transformer3d " + word(command.input);
  for (const std::string& assignment : command.overrides)
    if (std::find(without.begin(), without.end(), key_of(assignment)) == without.end() &&
        key_of(assignment) != key_of(instead))
      text += " --set " + word(assignment);
  return instead.empty() ? text : text + " --set " + word(instead);
}

}  // namespace t3d
