#include "tokenizer/parts/split.hpp"

#include <algorithm>

namespace t3d::tok {
namespace {

// A match joins the part before it, but not a match before it.
std::vector<Span> with_previous(const std::vector<Span>& spans) {
  std::vector<Span> parts;
  bool was_match = false;
  for (const Span& span : spans) {
    if (span.match && !was_match && !parts.empty())
      parts.back().end = span.end;
    else
      parts.push_back(span);
    was_match = span.match;
  }
  return parts;
}

std::vector<Span> with_next(const std::vector<Span>& spans) {
  std::vector<Span> parts;
  bool was_match = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->match && !was_match && !parts.empty())
      parts.back().begin = span->begin;
    else
      parts.push_back(*span);
    was_match = span->match;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Span> contiguous(const std::vector<Span>& spans) {
  std::vector<Span> parts;
  bool was_match = false;
  for (const Span& span : spans) {
    if (span.match == was_match && !parts.empty())
      parts.back().end = span.end;
    else
      parts.push_back(span);
    was_match = span.match;
  }
  return parts;
}

}  // namespace

SplitBehavior split_behavior(const JsonPart& part) {
  const std::string name = part.text();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::with_previous;
  if (name == "MergedWithNext") return SplitBehavior::with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  part.fail("{} is not known here", in_quotes(name));
}

std::vector<Span> split_spans(const std::vector<Span>& spans, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::with_previous: return with_previous(spans);
    case SplitBehavior::with_next: return with_next(spans);
    case SplitBehavior::contiguous: return contiguous(spans);
    case SplitBehavior::isolated: return spans;
    case SplitBehavior::removed: break;
  }
  std::vector<Span> parts;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(parts),
               [](const Span& span) { return !span.match; });
  return parts;
}

}  // namespace t3d::tok
