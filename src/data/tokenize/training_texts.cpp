#include "data/tokenize/training_texts.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/error.hpp"
#include "data/text/byte_order_mark.hpp"
#include "data/text/line_reader.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr double kSampleBytes = 256.0 * (1 << 20);

/// Lines of text, or the text of each line of JSONL; bad ones are left out here.
std::string text_of(const TextInput& input, const LineReader::Line& line,
                    const TokenizeOptions& options, std::string& first_fault) {
  if (!input.lines || line.too_long) return std::string(line.text);
  try {
    const JsonDocument document = parse_json_line(line.text, options.fields);
    return document.prompt.empty() ? document.text : document.prompt + "\n" + document.text;
  } catch (const Error& error) {
    if (first_fault.empty()) first_fault = fmt::format("{}: {}", input.path, error.what());
    return {};
  }
}

bool begins_with_mark(const TextInput& input) {
  std::string begin(kByteOrderMark.size(), '\0');
  const index_t bytes = FileReader(input.path).read_up_to(0, begin.data(), std::ssize(begin));
  return begin.substr(0, static_cast<std::size_t>(bytes)) == kByteOrderMark;
}

}  // namespace

TrainingTexts::TrainingTexts(const std::vector<TextInput>& inputs, const std::string& folder,
                             const TokenizeOptions& options) {
  const bool plain = std::none_of(inputs.begin(), inputs.end(), [](const TextInput& input) {
    return input.lines || input.compressed || begins_with_mark(input);
  });
  if (plain) {
    for (const TextInput& input : inputs) files_.push_back(input.path);
    return;
  }
  double all = 0;
  for (const TextInput& input : inputs) all += static_cast<double>(input.bytes);
  sample_ = folder + "/sample.txt";
  files_ = {sample_};
  ::unlink(sample_.c_str());  // of a command that was killed
  const auto file = open_to_append(sample_);
  std::string first_fault;
  bool has_text = false;
  for (const TextInput& input : inputs) {
    auto room = static_cast<index_t>(kSampleBytes * static_cast<double>(input.bytes) / all);
    LineReader lines(open_stream(input.path), 0, options.line_bytes);
    for (auto line = lines.next(); line && room > 0; line = lines.next()) {
      const std::string text = text_of(input, *line, options, first_fault) + "\n";
      has_text = has_text || text.size() > 1;
      if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size())
        throw_error(ExitCode::io, "cannot write {}", sample_);
      room -= std::ssize(text);
    }
  }
  if (std::fflush(file.get()) != 0) throw_error(ExitCode::io, "cannot write {}", sample_);
  if (has_text) return;
  ::unlink(sample_.c_str());
  throw_error(ExitCode::config, "there is no text to train a tokenizer on{}",
              first_fault.empty() ? ""
                                  : fmt::format(": {}; --field NAME says which field of the lines "
                                                "is the text",
                                                first_fault));
}

TrainingTexts::~TrainingTexts() {
  if (!sample_.empty()) ::unlink(sample_.c_str());
}

}  // namespace t3d
