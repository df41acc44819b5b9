#include "data/tokenize/merge_parts.hpp"

#include <algorithm>

#include "data/token_sink.hpp"

namespace t3d {
namespace {

constexpr index_t kMany = index_t{1} << 18;  // tokens, documents at once

/// Appends tokens in runs that count alike.
void append_runs(TokenSink& sink, const std::vector<std::int32_t>& ids,
                 const std::vector<std::uint8_t>& counts, std::size_t begin, std::size_t end) {
  while (begin < end) {
    const auto first = counts.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = counts.begin() + static_cast<std::ptrdiff_t>(end);
    const auto run = std::find(first, last, *first == 0 ? 1 : 0) - first;
    sink.append(ids.data() + begin, run, *first != 0);
    begin += static_cast<std::size_t>(run);
  }
}

/// The ends of a file's documents, one after another.
class Ends {
 public:
  explicit Ends(TokenFileReader& file) : file_(file) {}
  /// The next one, or a place behind all tokens.
  [[nodiscard]] index_t next() {
    if (at_ == ends_.size()) {
      const index_t now = std::min(kMany, file_.info().documents - read_);
      if (now == 0) return file_.info().tokens + 1;
      ends_ = file_.read_document_ends(read_, now);
      read_ += now;
      at_ = 0;
    }
    return ends_[at_];
  }
  void pass() { ++at_; }

 private:
  TokenFileReader& file_;
  std::vector<index_t> ends_;
  std::size_t at_ = 0;
  index_t read_ = 0;
};

void copy_tokens(TokenFileReader& file, TokenSink& sink) {
  const index_t tokens = file.info().tokens;
  Ends ends(file);
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> counts;
  for (index_t first = 0; first < tokens; first += kMany) {
    const index_t now = std::min(kMany, tokens - first);
    ids.resize(static_cast<std::size_t>(now));
    counts.resize(ids.size());
    file.read(first, now, ids.data());
    file.read_counts(first, now, counts.data());
    index_t begin = 0;
    while (begin < now) {
      const index_t end = std::min(ends.next() - first, now);
      append_runs(sink, ids, counts, static_cast<std::size_t>(begin),
                  static_cast<std::size_t>(end));
      begin = end;
      if (ends.next() - first != end) continue;
      sink.end_document();
      ends.pass();
    }
  }
  sink.add_text_bytes(file.info().text_bytes);
}

}  // namespace

MergedTokens merge_parts(const TokenizePlan& plan, const std::string& folder,
                         const std::string& which, const TokenizeOptions& options,
                         const std::string& prefix, const TokenFileInfo& info) {
  const auto sink = make_token_sink(options.output, prefix + "-" + which, info);
  MergedTokens merged;
  for (const TokenizePart& part : plan.parts) {
    const std::vector<std::string> outputs = outputs_of(part, options);
    if (std::find(outputs.begin(), outputs.end(), which) == outputs.end()) continue;
    TokenFileReader file(part_path(folder, part, which) + ".h5");
    const PartNotes notes = notes_of(file.info());
    if (notes.ends_before) sink->end_document();
    copy_tokens(file, *sink);
    merged.tokens += file.info().tokens;
    merged.text_bytes += file.info().text_bytes;
    merged.notes.documents += notes.documents;
    if (merged.notes.unknown.count == 0) merged.notes.unknown.first = notes.unknown.first;
    merged.notes.unknown.count += notes.unknown.count;
    merged.notes.bad_lines += notes.bad_lines;
    if (merged.notes.first_bad_line.empty()) merged.notes.first_bad_line = notes.first_bad_line;
  }
  sink->finish();
  merged.path = sink->path();
  return merged;
}

}  // namespace t3d
