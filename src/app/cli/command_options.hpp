// The words of each command, as options of the parser: one function for a command, which fills its
// part of the command line. cli.cpp puts them together. Internal to the command line.
#pragma once
#include <CLI/CLI.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "app/cli.hpp"

namespace t3d {

/// --set, which most commands take.
void add_overrides(CLI::App& app, CommandLine& line);
/// A check: CLI11 makes the nearest number of one that is too large; the user meant another.
[[nodiscard]] std::string integer_fault(const std::string& word);

/// Of all words, before the parser: Error(usage) for a list with an empty part (",", "a,,b"), and
/// for an empty name of a file or folder.
void check_values(const CLI::App& app, const std::vector<std::string>& words);

/// CLI::Range, which nan passes.
template <class Number>
[[nodiscard]] CLI::Validator number_range(Number least, Number most) {
  CLI::Validator range = CLI::Range(least, most);
  const CLI::Validator is_number(
      [](const std::string& word) {
        double number = 0;
        const bool nan = CLI::detail::lexical_cast(word, number) && std::isnan(number);
        return nan ? word + " is no number" : std::string();
      },
      "");
  const std::string text = range.get_description();
  return (range & is_number).description(text);
}

void add_tokenize(CLI::App& app, TokenizeCommand& command);
// What is done with a trained model.
void add_eval(CLI::App& app, CommandLine& line);
void add_generate(CLI::App& app, CommandLine& line);
void add_inspect(CLI::App& app, InspectCommand& command);
void add_export(CLI::App& app, CommandLine& line);
void add_import(CLI::App& app, ImportCommand& command);
// What is done with runs and their folders.
void add_status(CLI::App& app, StatusCommand& command);
void add_watch(CLI::App& app, WatchCommand& command);
void add_report(CLI::App& app, ReportCommand& command);
void add_scaling(CLI::App& app, CommandLine& line);
// What is done for a cluster.
void add_plan(CLI::App& app, CommandLine& line);
void add_simulate(CLI::App& app, SimulateCommand& command);
void add_probe(CLI::App& app, CommandLine& line);
void add_calibrate(CLI::App& app, CalibrateCommand& command);

}  // namespace t3d
