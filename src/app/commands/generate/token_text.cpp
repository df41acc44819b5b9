#include "app/commands/generate/token_text.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace t3d {
namespace {

/// Ids in front of the new ones: what a tokenizer does at the begin of a text must not happen
/// within.
constexpr std::size_t kBefore = 4;
/// What decoders write for bytes that are no character (yet).
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes at the end of `text` that may be the begin of a character.
std::size_t unfinished(std::string_view text) {
  if (text.ends_with(kReplacement)) return kReplacement.size();
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

TokenText::TokenText(const Tokenizer& tokenizer, const std::vector<std::int32_t>& before)
    : tokenizer_(tokenizer),
      ids_(before.end() - static_cast<std::ptrdiff_t>(std::min(kBefore, before.size())),
           before.end()),
      known_(ids_.size()) {}

std::string TokenText::add(std::int32_t id) {
  ids_.push_back(id);
  return take(false);
}

std::string TokenText::rest() { return take(true); }

std::string TokenText::take(bool all) {
  const std::string known = tokenizer_.decode(std::span(ids_).first(known_));
  std::string text = tokenizer_.decode(ids_);
  if (text.size() <= known.size()) return {};
  // A character takes at most four tokens; who waits longer would wait for ever.
  if (!all && unfinished(text) > 0 && ids_.size() - known_ < kBefore) return {};
  if (known_ > 0) text.erase(0, known.size());
  ids_.erase(ids_.begin(),
             ids_.end() - static_cast<std::ptrdiff_t>(std::min(kBefore, ids_.size())));
  known_ = ids_.size();
  return text;
}

std::string StopStrings::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  std::size_t kept = 0;
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(end);
  } else {
    for (const std::string& stop : stops_)
      for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
        if (held_.ends_with(std::string_view(stop).substr(0, n))) kept = n;
  }
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::rest() { return std::exchange(held_, {}); }

}  // namespace t3d
