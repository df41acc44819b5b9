#include "ops/cuda/engine_choice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace t3d::cuda {
namespace {

constexpr std::string_view kTitle = "transformer3d engine choices 1: ";

std::vector<std::string> split_at_tabs(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

bool read_number(const std::string& text, double& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

}  // namespace

const std::string* EngineChoices::find(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second.engine;
}

void EngineChoices::put(const std::string& key, std::string engine,
                        std::vector<EngineTiming> timings) {
  choices_[key] = {std::move(engine), std::move(timings)};
}

bool EngineChoices::load(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != std::string(kTitle) + header_) return !file.bad();
  while (std::getline(file, line)) {
    // key, engine, then pairs of engine and microseconds
    const std::vector<std::string> fields = split_at_tabs(line);
    if (fields.size() < 4 || fields.size() % 2 != 0) return false;
    std::vector<EngineTiming> timings;
    for (std::size_t i = 2; i < fields.size(); i += 2) {
      EngineTiming timing{fields[i], 0};
      if (!read_number(fields[i + 1], timing.microseconds)) return false;
      timings.push_back(std::move(timing));
    }
    put(fields[0], fields[1], std::move(timings));
  }
  return !file.bad();
}

void EngineChoices::save(const std::string& path) const {
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  {
    std::ofstream file(beside, std::ios::trunc);
    file << kTitle << header_ << '\n';
    for (const auto& [key, choice] : choices_) {
      if (choice.timings.empty()) continue;
      file << key << '\t' << choice.engine;
      for (const EngineTiming& timing : choice.timings)
        file << fmt::format("\t{}\t{:.3f}", timing.engine, timing.microseconds);
      file << '\n';
    }
    file.close();
    if (!file) {
      std::remove(beside.c_str());
      throw_error(ExitCode::io, "cannot write the engine choices {}", beside);
    }
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    std::remove(beside.c_str());
    throw_error(ExitCode::io, "cannot rename the engine choices to {}", path);
  }
}

std::string EngineChoices::table() const {
  std::string text;
  for (const auto& [key, choice] : choices_) {
    text += fmt::format("{:<60} {:<20}", key, choice.engine);
    for (const EngineTiming& timing : choice.timings)
      text += fmt::format("  {} {:.1f} us", timing.engine, timing.microseconds);
    text += '\n';
  }
  return text;
}

}  // namespace t3d::cuda
