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

/// What a component asks for. None of these is taken over from the component before.
std::vector<std::string> part_lines(const SbatchPart& part) {
  std::vector<std::string> lines{fmt::format("#SBATCH --nodes={}", part.nodes),
                                 fmt::format("#SBATCH --ntasks-per-node={}", part.ranks_per_node)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) lines.push_back(fmt::format("#SBATCH --{}={}", option, shell_word(value)));
  };
  const auto count = [](index_t number) { return number > 0 ? std::to_string(number) : ""; };
  add("cpus-per-task", count(part.cores_per_rank));
  add("gpus-per-task", count(part.gpus_per_rank));
  constexpr index_t kMiB = index_t{1} << 20;
  if (part.memory_bytes > 0) add("mem", fmt::format("{}M", (part.memory_bytes + kMiB - 1) / kMiB));
  add("partition", part.partition);
  add("constraint", part.constraint);
  add("exclude", part.exclude);
  return lines;
}

/// Behind the options of the first component.
std::vector<std::string> further_parts(const std::vector<SbatchPart>& parts) {
  std::vector<std::string> lines;
  for (std::size_t at = 1; at < parts.size(); ++at) {
    lines.insert(lines.end(), {"#SBATCH hetjob", "#SBATCH --exclusive", "#SBATCH --requeue"});
    const std::vector<std::string> own = part_lines(parts[at]);
    lines.insert(lines.end(), own.begin(), own.end());
  }
  return lines;
}

/// Of srun, which starts the first component alone where nothing is said.
std::string tasks_words(const SbatchWish& wish) {
  if (wish.parts.size() < 2) return fmt::format("--ntasks={}", wish.ranks);
  std::string words = "--het-group=0";
  for (std::size_t at = 1; at < wish.parts.size(); ++at) words += fmt::format(",{}", at);
  return words;
}

/// What replaces a line of the template, or the line itself; nothing where it goes.
std::vector<std::string> filled_in(const std::string& line, const SbatchWish& wish) {
  if (begins(line, "#SBATCH --partition") || begins(line, "#SBATCH --time")) return {};
  if (begins(line, "#SBATCH --nodes")) {
    if (!wish.parts.empty()) return part_lines(wish.parts.front());
    if (wish.ranks == 0) return {};
    return {fmt::format("#SBATCH --ntasks={}", wish.ranks)};
  }
  if (begins(line, "#SBATCH --job-name"))
    return {"#SBATCH --job-name=" + shell_word(job_name(wish.name))};
  if (begins(line, "program=")) {
    std::vector<std::string> lines = further_parts(wish.parts);
    if (!wish.folder.empty()) lines.push_back(enter_text(wish.folder));
    lines.push_back("program=" + shell_word(wish.program));
    return lines;
  }
  if (begins(line, "input=")) return {"input=" + shell_word(wish.input)};
  if (begins(line, "# The folders of the run")) return {};
  if (begins(line, "eval "))
    return {"run=" + shell_word(wish.run_dir), "ckpt=" + shell_word(wish.checkpoint_dir)};
  if (begins(line, "next=")) return {wish.next.empty() ? line : "next=" + shell_word(wish.next)};
  if (begins(line, "tasks=")) return {wish.ranks == 0 ? line : "tasks=" + tasks_words(wish)};
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

std::string enter_text(const std::string& folder) {
  return fmt::format("cd {} || exit {}", shell_word(folder), static_cast<int>(ExitCode::no_input));
}

std::string sbatch_text(const SbatchWish& wish) {
  std::istringstream lines(kSbatchTemplate);
  std::string text;
  bool about = false;  // the template's own explanation, up to the first option
  for (std::string line; std::getline(lines, line);) {
    if (begins(line, "#!")) {
      text += line +
              "\n# Made by transformer3d. Site options (partition, time, account)"
              " by sbatch: sbatch -p gpu -t 24:00:00 ...\n";
      if (!wish.folder.empty())
        text +=
            "# May be submitted from any folder: it starts in " + shell_word(wish.folder) +
            ",\n# where relative paths of the input begin. Its log is where sbatch is called.\n";
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
