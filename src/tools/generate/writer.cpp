#include "tools/generate/writer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "io/output.hpp"

namespace t3d {
namespace {

void show(std::string_view text) {
  if (text.empty()) return;
  write_output(text);
  flush_output();
}

}  // namespace

void TextWriter::begin(const std::string& prompt) {
  if (stream_) show(prompt);
}

void TextWriter::piece(std::string_view text) {
  if (stream_) show(text);
}

void TextWriter::finish(index_t number, FinishedText text) {
  waiting_.emplace(number, std::move(text));
  for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; ++next_) {
    print(next_, first->second);
    first = waiting_.erase(first);
  }
}

void TextWriter::print(index_t number, const FinishedText& text) const {
  if (stream_) return show("\n");
  if (!json_) return show(text.prompt + text.text + "\n");
  const nlohmann::ordered_json object{{"index", number},
                                      {"prompt", text.prompt},
                                      {"text", text.text},
                                      {"tokens", text.tokens},
                                      {"end", text.end}};
  using Json = nlohmann::ordered_json;
  show(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace t3d
