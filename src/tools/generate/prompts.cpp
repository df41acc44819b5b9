#include "tools/generate/prompts.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "data/text/byte_order_mark.hpp"

namespace t3d {
namespace {

std::string prompt_of(const std::string& line, const std::string& where) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (object.is_discarded() || !object.is_object())
    throw_error(ExitCode::config, "{} is not a JSON object: {}", where, printable(line, 60));
  const auto field = object.find("prompt");
  if (field == object.end() || !field->is_string())
    throw_error(ExitCode::config, "{} has no text in a field \"prompt\": {}", where,
                printable(line, 60));
  return field->get<std::string>();
}

}  // namespace

std::vector<std::string> parse_prompts(std::istream& lines, const std::string& name) {
  std::vector<std::string> prompts;
  std::string line;
  bool json = false;
  for (index_t number = 1; std::getline(lines, line); ++number) {
    if (number == 1) line = without_byte_order_mark(line);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    if (!is_utf8(line)) throw_error(ExitCode::config, "{} is not UTF-8", where);
    if (prompts.empty()) json = line.front() == '{';
    prompts.push_back(json ? prompt_of(line, where) : line);
  }
  return prompts;
}

std::vector<std::string> read_prompts(const GenerateCommand& wish) {
  std::vector<std::string> prompts = wish.prompts;
  for (std::size_t at = 0; at < prompts.size(); ++at)
    if (!is_utf8(prompts[at])) throw_error(ExitCode::config, "--prompt {} is not UTF-8", at + 1);
  const auto add = [&](std::istream& lines, const std::string& name) {
    const std::vector<std::string> more = parse_prompts(lines, name);
    if (lines.bad()) throw_error(ExitCode::io, "cannot read {}", name);
    if (more.empty()) throw_error(ExitCode::config, "there is no prompt in {}", name);
    prompts.insert(prompts.end(), more.begin(), more.end());
  };
  if (wish.prompt_file == "-") {
    add(std::cin, "standard input");
  } else if (!wish.prompt_file.empty()) {
    if (!std::filesystem::exists(wish.prompt_file))
      throw_error(ExitCode::no_input, "there is no {}", wish.prompt_file);
    std::ifstream file(wish.prompt_file);
    if (!file || std::filesystem::is_directory(wish.prompt_file))
      throw_error(ExitCode::io, "cannot read {}: {}", wish.prompt_file,
                  file ? "it is a folder" : std::strerror(errno));
    add(file, wish.prompt_file);
  }
  for (std::string& prompt : prompts)
    if (prompt.empty()) prompt = "\n";
  if (prompts.empty()) prompts.emplace_back("\n");
  return prompts;
}

}  // namespace t3d
