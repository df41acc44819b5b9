#include "data/tokenize/part_worker.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/text/byte_order_mark.hpp"
#include "data/text/line_reader.hpp"
#include "data/text/text_cut.hpp"
#include "io/crc32c.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr index_t kPieceBytes = index_t{1} << 20;  // of a text, encoded at once

/// One of a part's results.
class PartFile {
 public:
  PartFile(const std::string& path, const Tokenizer& tokenizer)
      : writer_(path, {tokenizer.vocab(), tokenizer.kind(), "", "", 0, 0}) {}

  void add(const std::vector<std::int32_t>& ids, bool counts) {
    writer_.append(ids.data(), std::ssize(ids), counts);
  }
  void add_unknown(const tok::UnknownCharacters& more) {
    if (notes_.unknown.count == 0) notes_.unknown.first = more.first;
    notes_.unknown.count += more.count;
  }
  void add_text_bytes(index_t bytes) { writer_.add_text_bytes(bytes); }
  void end_document() {
    if (writer_.tokens() == 0) notes_.ends_before = true;
    writer_.end_document();
    ++notes_.documents;
  }
  PartNotes& notes() { return notes_; }
  void finish() {
    const nlohmann::json json{{"documents", notes_.documents},
                              {"bad_lines", notes_.bad_lines},
                              {"first_bad_line", notes_.first_bad_line},
                              {"unknown_characters", notes_.unknown.count},
                              {"first_unknown", std::uint32_t{notes_.unknown.first}},
                              {"ends_before", notes_.ends_before}};
    writer_.set_source(json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
    writer_.finish();
  }

 private:
  TokenFileWriter writer_;
  PartNotes notes_;
};

class PartWorker {
 public:
  PartWorker(const TokenizePlan& plan, const TokenizePart& part, const TokenizeOptions& options,
             const Tokenizer& tokenizer, const std::string& folder, const std::atomic<bool>& stop)
      : plan_(plan), options_(options), tokenizer_(tokenizer), special_(plan.special), stop_(stop) {
    for (const std::string& which : outputs_of(part, options))
      files_.push_back(
          std::make_unique<PartFile>(part_path(folder, part, which) + ".h5", tokenizer));
    for (const TextSegment& segment : part.segments) {
      if (has_lines(plan.inputs[segment.input], options))
        read_lines(segment);
      else
        read_text(segment);
    }
    for (const auto& file : files_) file->finish();
  }

 private:
  void read_text(const TextSegment& segment) {
    const TextInput& input = plan_.inputs[segment.input];
    PartFile& file = *files_.front();
    const auto stream = open_stream(input.path, segment.begin);
    if (segment.begin == 0) begin_document(file, true);
    std::optional<char> before;  // the byte before what is encoded next
    if (segment.begin > 0) FileReader(input.path).read_at(segment.begin - 1, &before.emplace(), 1);
    // A compressed text is as long as it is.
    const index_t bytes =
        input.compressed ? std::numeric_limits<index_t>::max() / 2 : segment.end - segment.begin;
    index_t read = 0;
    for_pieces(*stream, bytes, kPieceBytes, [&](std::string_view piece) {
      check_stop();
      const std::string_view text =
          segment.begin + read == 0 ? without_byte_order_mark(piece) : piece;
      file.add(ids_of(text, before), true);
      file.add_text_bytes(std::ssize(text));
      if (tokenizer_.uses_unicode()) file.add_unknown(tok::unknown_characters(text));
      read += std::ssize(piece);
    });
    if (!input.compressed && read != bytes)
      throw_error(ExitCode::io, "{} became shorter while it was read", input.path);
    if (segment.ends_document) end_document(file);
  }

  void read_lines(const TextSegment& segment) {
    const TextInput& input = plan_.inputs[segment.input];
    // The line that begins before the segment is another's.
    const index_t from = std::max<index_t>(segment.begin - 1, 0);
    LineReader lines(open_stream(input.path, from), from, options_.line_bytes);
    if (segment.begin > 0) static_cast<void>(lines.next());
    while (const auto line = lines.next()) {
      if (!input.compressed && line->offset >= segment.end) break;
      if (line->text.find_first_not_of(" \t") == std::string_view::npos) continue;
      std::optional<JsonDocument> document;
      try {
        document = document_of(input, *line);
      } catch (const Error& fault) {
        bad_line(input, line->offset, fault.what());
      }
      const bool empty = document && document->prompt.empty() && document->text.empty();
      if (document && !empty) write(*document);
    }
  }

  [[nodiscard]] JsonDocument document_of(const TextInput& input,
                                         const LineReader::Line& line) const {
    if (line.too_long)
      throw_error(ExitCode::config, "a line of more than {}",
                  format_bytes(static_cast<double>(options_.line_bytes)));
    if (!input.lines) return {"", std::string(line.text)};
    return parse_json_line(line.text, options_.fields);
  }

  void bad_line(const TextInput& input, index_t offset, const std::string& what) {
    PartNotes& notes = files_.front()->notes();
    ++notes.bad_lines;
    if (options_.skip_bad_lines && notes.bad_lines > 1) return;
    const std::string text =
        fmt::format("{}:{}: {}", input.path, line_number(input.path, offset), what);
    if (!options_.skip_bad_lines)
      throw_error(ExitCode::config, "{}; --on-bad-line skip leaves such lines out", text);
    notes.first_bad_line = text;
  }

  void write(const JsonDocument& document) {
    PartFile& file = file_of(document);
    begin_document(file, document.prompt.empty());
    std::optional<char> before;
    encode(file, document.prompt, before, false);
    encode(file, document.text, before, true);
    file.add_text_bytes(std::ssize(document.prompt) + std::ssize(document.text));
    end_document(file);
  }

  /// Equal documents are all on one side, whoever reads them.
  PartFile& file_of(const JsonDocument& document) {
    if (files_.size() == 1) return *files_.front();
    const double place = crc32c(document.text, crc32c(document.prompt)) / 4294967296.0;
    return *files_[place < options_.valid_fraction ? 1 : 0];
  }

  void check_stop() const {
    if (stop_) throw StoppedPart();
  }
  /// Of a text that may be cut before or behind this piece.
  [[nodiscard]] std::vector<std::int32_t> ids_of(std::string_view piece,
                                                 std::optional<char>& before) const {
    auto ids = before ? tokenizer_.encode_rest(piece, *before) : tokenizer_.encode(piece);
    if (!piece.empty()) before = piece.back();
    return ids;
  }
  void encode(PartFile& file, std::string_view text, std::optional<char>& before,
              bool counts) const {
    while (!text.empty()) {
      check_stop();
      const bool whole = std::ssize(text) <= kPieceBytes;
      const std::string_view start = text.substr(0, kPieceBytes);
      const std::size_t now = whole ? text.size() : std::max<std::size_t>(text_cut(start), 1);
      file.add(ids_of(text.substr(0, now), before), counts);
      if (tokenizer_.uses_unicode()) file.add_unknown(tok::unknown_characters(text.substr(0, now)));
      text.remove_prefix(now);
    }
  }
  void begin_document(PartFile& file, bool counts) const {
    if (options_.document_begin && special_.bos >= 0) file.add({special_.bos}, counts);
  }
  void end_document(PartFile& file) const {
    if (options_.document_end && special_.eos >= 0) file.add({special_.eos}, true);
    file.end_document();
  }

  const TokenizePlan& plan_;
  const TokenizeOptions& options_;
  const Tokenizer& tokenizer_;
  SpecialIds special_;
  const std::atomic<bool>& stop_;
  std::vector<std::unique_ptr<PartFile>> files_;
};

}  // namespace

std::string part_path(const std::string& folder, const TokenizePart& part,
                      const std::string& which) {
  return fmt::format("{}/{}-{}", folder, part.name, which);
}

std::vector<std::string> outputs_of(const TokenizePart& part, const TokenizeOptions& options) {
  if (part.valid) return {"valid"};
  // Of lines some go to validation; a part of texts alone just stays without.
  if (options.valid_fraction > 0) return {"train", "valid"};
  return {"train"};
}

bool is_finished(const std::string& folder, const TokenizePart& part,
                 const TokenizeOptions& options) {
  for (const std::string& which : outputs_of(part, options))
    if (!path_exists(part_path(folder, part, which) + ".h5")) return false;
  return true;
}

void tokenize_part(const TokenizePlan& plan, const TokenizePart& part,
                   const TokenizeOptions& options, const Tokenizer& tokenizer,
                   const std::string& folder, const std::atomic<bool>& stop) {
  PartWorker(plan, part, options, tokenizer, folder, stop);
}

PartNotes notes_of(const TokenFileInfo& info) {
  const auto json = nlohmann::json::parse(info.source);
  return {
      json.at("documents").get<index_t>(),
      json.at("bad_lines").get<index_t>(),
      json.at("first_bad_line").get<std::string>(),
      {json.value("unknown_characters", std::int64_t{0}),  // absent in parts of earlier versions
       static_cast<char32_t>(json.value("first_unknown", std::uint32_t{0}))},
      json.at("ends_before").get<bool>()};
}

}  // namespace t3d
