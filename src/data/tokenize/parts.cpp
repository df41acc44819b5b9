#include "data/tokenize/parts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/text/text_cut.hpp"

namespace t3d {
namespace {

constexpr int kWay = 4;  // of making parts; another one does not take those of this

/// What besides the text decides about the tokens.
std::string settings_text(const TokenizeOptions& options, const Tokenizer& tokenizer,
                          const SpecialIds& special) {
  return fmt::format("{}\n{}\n{:x}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{} {}\n", kWay,
                     tokenizer.kind(), tokenizer_hash(tokenizer), options.valid_fraction,
                     options.fields.text, options.fields.prompt, options.fields.completion,
                     options.document_lines, options.document_end, options.document_begin,
                     options.skip_bad_lines, options.line_bytes, special.bos, special.eos);
}

/// Enough parts for many workers, and not too many files.
index_t part_bytes(const TokenizePlan& plan, const TokenizeOptions& options) {
  constexpr index_t kParts = 256, kLeast = index_t{1} << 20, kMost = index_t{64} << 20;
  if (options.part_bytes > 0) return options.part_bytes;
  index_t all = 0;
  for (const TextInput& input : plan.inputs) all += input.bytes;
  return std::clamp(all / kParts, kLeast, kMost);
}

/// Makes parts of about `most` bytes out of segments.
class PartMaker {
 public:
  PartMaker(TokenizePlan& plan, index_t most, const TokenizeOptions& options,
            const Tokenizer& tokenizer)
      : plan_(plan), most_(most), settings_(settings_text(options, tokenizer, plan.special)) {}

  void add(const TextSegment& segment, bool valid) {
    if (segment.begin == segment.end) return;
    if (open_.valid != valid) close();
    open_.valid = valid;
    open_.segments.push_back(segment);
    open_.bytes += segment.end - segment.begin;
    if (open_.bytes >= most_) close();
  }
  void close() {
    if (open_.segments.empty()) return;
    std::string text = settings_ + (open_.valid ? "valid\n" : "train\n");
    for (const TextSegment& segment : open_.segments) {
      const TextInput& input = plan_.inputs[segment.input];
      text += fmt::format("{}\n{} {:.9f} {} {} {}\n", input.path, input.bytes, input.changed,
                          segment.begin, segment.end, segment.ends_document);
    }
    open_.name = fmt::format("part-{:016x}", stream_of(text));
    plan_.parts.push_back(std::move(open_));
    open_ = {};
  }

 private:
  TokenizePlan& plan_;
  index_t most_ = 0;
  std::string settings_;
  TokenizePart open_;
};

/// Where the validation part of the texts begins: input and byte.
struct ValidStart {
  std::size_t input = 0;
  index_t byte = 0;
};

ValidStart find_valid_start(const TokenizePlan& plan, const TokenizeOptions& options) {
  ValidStart start{plan.inputs.size(), 0};
  if (options.valid_fraction == 0) return start;
  index_t all = 0;
  for (const TextInput& input : plan.inputs)
    if (!has_lines(input, options)) all += input.bytes;
  index_t left = std::llround(static_cast<double>(all) * (1.0 - options.valid_fraction));
  bool any = false;
  for (std::size_t n = 0; n < plan.inputs.size(); ++n) {
    const TextInput& input = plan.inputs[n];
    if (has_lines(input, options)) continue;
    if (left >= input.bytes) {
      left -= input.bytes;
      any = true;
      continue;
    }
    if (!input.compressed) return {n, cut_of_file(input.path, input.bytes, left)};
    if (2 * left < input.bytes && any) return {n, 0};
    start = {n + 1, 0};
    const bool more =
        std::any_of(plan.inputs.begin() + static_cast<std::ptrdiff_t>(n) + 1, plan.inputs.end(),
                    [&](const TextInput& later) { return !has_lines(later, options); });
    if (more) return start;
    throw_error(ExitCode::config,
                "{} is compressed and cannot be cut for validation; decompress it, or let "
                "documents be lines",
                input.path);
  }
  return start;
}

}  // namespace

bool has_lines(const TextInput& input, const TokenizeOptions& options) {
  return input.lines || options.document_lines;
}

TokenizePlan plan_parts(std::vector<TextInput> inputs, const TokenizeOptions& options,
                        const Tokenizer& tokenizer, const SpecialIds& special) {
  TokenizePlan plan{std::move(inputs), {}, special};
  const ValidStart valid = find_valid_start(plan, options);
  const index_t most = part_bytes(plan, options);
  PartMaker maker(plan, most, options, tokenizer);
  for (std::size_t n = 0; n < plan.inputs.size(); ++n) {
    const TextInput& input = plan.inputs[n];
    const bool lines = has_lines(input, options);
    const index_t each = input.compressed ? std::max<index_t>(input.bytes, 1) : most;
    for (index_t begin = 0; begin < input.bytes;) {
      index_t end = std::min(begin + each, input.bytes);
      if (!lines && !input.compressed) end = cut_of_file(input.path, input.bytes, end);
      if (!lines && valid.input == n && begin < valid.byte) end = std::min(end, valid.byte);
      const bool of_valid =
          !lines && (n > valid.input || (n == valid.input && begin >= valid.byte));
      const bool ends = end == input.bytes || (valid.input == n && end == valid.byte);
      maker.add({n, begin, end, ends}, of_valid);
      begin = end;
    }
  }
  maker.close();
  return plan;
}

std::vector<std::vector<std::size_t>> share_parts(const TokenizePlan& plan, std::size_t workers) {
  std::vector<std::size_t> order(plan.parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return plan.parts[a].bytes > plan.parts[b].bytes;
  });
  std::vector<std::vector<std::size_t>> shares(workers);
  std::vector<index_t> load(workers);
  for (const std::size_t part : order) {
    const auto least =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    shares[least].push_back(part);
    load[least] += plan.parts[part].bytes;
  }
  return shares;
}

}  // namespace t3d
