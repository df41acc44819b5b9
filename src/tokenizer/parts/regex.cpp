#include "tokenizer/parts/regex.hpp"

#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

std::string onig_text(int code, OnigErrorInfo* info = nullptr) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int bytes = info == nullptr ? onig_error_code_to_str(text.data(), code)
                                    : onig_error_code_to_str(text.data(), code, info);
  return {reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(bytes)};
}

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
struct FreeParam {
  void operator()(OnigMatchParam* param) const { onig_free_match_param(param); }
};

constexpr unsigned kMaxDepth = 256;  // brackets of an expression
// An expression that goes back more often than this on its way through a text does so for ever.
constexpr std::size_t kRetries = 1'000'000, kRetriesPerByte = 100;

/// Searches a text several times and counts over all of them how often the expression goes back.
/// The library limits that, and does not tell the number: so a search begins with a low limit,
/// which doubles until it is enough. Searches that the lowest one is enough for cost nothing.
class LimitedSearch {
 public:
  LimitedSearch(regex_t* compiled, std::string_view text, OnigRegion* region)
      : compiled_(compiled),
        text_(text),
        region_(region),
        param_(onig_new_match_param()),
        left_(kRetries + kRetriesPerByte * text.size()) {}

  /// As onig_search(), from byte `at` on. A limit is over when nothing is left of the whole.
  int from(std::size_t at) {
    const OnigUChar* begin = bytes_of(text_);
    const OnigUChar* end = begin + text_.size();
    for (std::size_t limit = kLowest;; limit *= 2) {
      onig_initialize_match_param(param_.get());
      onig_set_retry_limit_in_match_of_match_param(param_.get(), limit);
      onig_set_retry_limit_in_search_of_match_param(param_.get(), limit);
      const int where = onig_search_with_param(compiled_, begin, end, begin + at, end, region_,
                                               ONIG_OPTION_NONE, param_.get());
      const bool over = is_limit(where);
      if (limit > kLowest) left_ -= std::min(left_, limit);
      if (!over || left_ == 0) return where;
    }
  }
  static bool is_limit(int code) {
    return code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
  }

 private:
  static constexpr std::size_t kLowest = 1024;
  regex_t* compiled_;
  std::string_view text_;
  OnigRegion* region_;
  std::unique_ptr<OnigMatchParam, FreeParam> param_;
  std::size_t left_;
};

}  // namespace

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

void Pattern::FreeRegex::operator()(re_pattern_buffer* compiled) const { onig_free(compiled); }

Pattern Pattern::plain(std::string text) {
  if (text.empty()) return regex(text);  // matches between all characters
  Pattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(const std::string& expression) {
  static std::once_flag once;
  std::call_once(once, [] {
    std::array<OnigEncoding, 1> encodings{ONIG_ENCODING_UTF8};
    onig_initialize(encodings.data(), 1);
    onig_set_parse_depth_limit(kMaxDepth);
  });
  Pattern pattern;
  OnigErrorInfo info{};
  regex_t* compiled = nullptr;
  const OnigUChar* begin = bytes_of(expression);
  const int code = onig_new(&compiled, begin, begin + expression.size(), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info);
  if (code != ONIG_NORMAL)
    throw_error(ExitCode::io, "no regular expression: {}", onig_text(code, &info));
  pattern.compiled_.reset(compiled);
  pattern.text_ = expression;
  return pattern;
}

void Pattern::each_regex_match(std::string_view text, const Found& found) const {
  const std::unique_ptr<OnigRegion, FreeRegion> region(onig_region_new());
  LimitedSearch search(compiled_.get(), text, region.get());
  std::size_t at = 0, last_end = std::string_view::npos;
  while (at <= text.size()) {
    const int where = search.from(at);
    if (where == ONIG_MISMATCH) return;
    if (where < 0)
      throw_error(ExitCode::config,
                  "the regular expression \"{}\" of the tokenizer fails on a text of {} bytes: {}",
                  printable(text_, 60), text.size(),
                  LimitedSearch::is_limit(where) ? "it goes back over the text again and again"
                                                 : onig_text(where));
    const auto from = static_cast<std::size_t>(region->beg[0]);
    const auto to = static_cast<std::size_t>(region->end[0]);
    // An empty match right behind another one does not count: the search goes on.
    if (from == to && to == last_end) {
      at += at < text.size() ? utf8_step(text, at).bytes : 1;
      continue;
    }
    found(from, to);
    at = last_end = to;
  }
}

void Pattern::each_match(std::string_view text, const Found& found) const {
  if (compiled_) return each_regex_match(text, found);
  for (std::size_t at = text.find(text_); at != std::string_view::npos;) {
    found(at, at + text_.size());
    at = text.find(text_, at + text_.size());
  }
}

std::vector<Span> Pattern::spans(std::string_view text) const {
  std::vector<Span> all;
  if (text.empty()) return {{0, 0, false}};
  std::size_t at = 0;
  each_match(text, [&](std::size_t begin, std::size_t end) {
    if (at != begin) all.push_back({at, begin, false});
    all.push_back({begin, end, true});
    at = end;
  });
  if (at != text.size()) all.push_back({at, text.size(), false});
  return all;
}

std::string Pattern::replaced(std::string_view text, std::string_view with) const {
  std::string out;
  for (const Span& span : spans(text))
    out += span.match ? with : text.substr(span.begin, span.end - span.begin);
  return out;
}

}  // namespace t3d::tok
