#include "sched/sbatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "t3d_sbatch.hpp"

namespace t3d {
namespace {

bool begins(const std::string& line, const char* with) { return line.rfind(with, 0) == 0; }

/// It becomes a part of the log's name.
std::string job_name(std::string name) {
  for (char& letter : name)
    if (letter == '/' || letter == '\\' || letter == '%') letter = '-';
  return name;
}

/// What replaces a line of the template, or the line itself; nothing where it goes.
std::vector<std::string> filled_in(const std::string& line, const SbatchWish& wish) {
  if (begins(line, "#SBATCH --partition") || begins(line, "#SBATCH --time")) return {};
  if (begins(line, "#SBATCH --nodes")) {
    if (wish.ranks == 0) return {};
    return {fmt::format("#SBATCH --ntasks={}", wish.ranks)};
  }
  if (begins(line, "#SBATCH --job-name"))
    return {"#SBATCH --job-name=" + shell_word(job_name(wish.name))};
  if (begins(line, "program=")) return {"program=" + shell_word(wish.program)};
  if (begins(line, "input=")) return {"input=" + shell_word(wish.input)};
  if (begins(line, "# The folder of the run")) return {};
  if (begins(line, "eval ")) return {"run=" + shell_word(wish.run_dir)};
  if (begins(line, "tasks="))
    return {wish.ranks == 0 ? line : fmt::format("tasks=--ntasks={}", wish.ranks)};
  if (begins(line, "more=")) {
    std::string words;
    for (const std::string& option : wish.options) words += shell_word(option) + " ";
    return {fmt::format("more=({}\"$@\")", words)};
  }
  return {line};
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (word.find_first_of("\n\r") != std::string::npos)
    throw_error(ExitCode::config, "a path with a line break cannot stand in a job script");
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::string sbatch_text(const SbatchWish& wish) {
  std::istringstream lines(kSbatchTemplate);
  std::string text;
  bool about = false;  // the template's own explanation, up to the first option
  for (std::string line; std::getline(lines, line);) {
    if (begins(line, "#!")) {
      text += line +
              "\n# Made by transformer3d --write-sbatch. Site options (partition, time, account)"
              " by sbatch: sbatch -p gpu -t 24:00:00 ...\n";
      about = true;
      continue;
    }
    if (about && begins(line, "#") && !begins(line, "#SBATCH")) continue;
    about = false;
    for (const std::string& other : filled_in(line, wish)) text += other + "\n";
  }
  return text;
}

}  // namespace t3d
