#include "app/cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/cli/command_options.hpp"
#include "app/manual/command_facts.hpp"
#include "app/manual/completion.hpp"
#include "app/manual/man_page.hpp"
#include "config/defaults.hpp"
#include "config/explain.hpp"
#include "config/toml_input.hpp"
#include "core/error.hpp"
#include "core/folded.hpp"
#include "core/levenshtein.hpp"
#include "core/plan.hpp"
#include "t3d_version.hpp"

namespace t3d {
namespace {

using Action = CommandLine::Action;

constexpr const char* kHere = "here";  // no number of ranks is said
constexpr const char* kTryHelp = "transformer3d --help shows how to call it";

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names{"tokenize", "eval",  "generate",  "inspect", "export",
                                              "import",   "plan",  "simulate",  "status",  "watch",
                                              "report",   "probe", "calibrate", "scaling"};
  return names;
}

bool is_count(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

index_t ranks_of(const std::string& option, const std::string& word) {
  index_t ranks = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), ranks);
  if (reason != std::errc{} || ranks < 1 || ranks > kMostRanks)
    throw_error(ExitCode::usage, "{} needs a number of ranks from 1 to {}, not {}", option,
                kMostRanks, word);
  return ranks;
}

std::string exit_text() {
  std::string text = "Exit codes (what to do: docs/exit-codes.md):\n";
  for (const ExitMeaning& meaning : exit_meanings())
    text +=
        folded(fmt::format("  {:>2}  {}", static_cast<int>(meaning.code), meaning.text), 6) + "\n";
  return text;
}

/// The input stands elsewhere, so that this word can only be meant as the option's number.
bool is_no_number(const std::vector<std::string>& words, std::size_t at) {
  const std::string& word = words[at];
  if (word.empty() || word.starts_with("-") || word.ends_with(".toml")) return false;
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& other) { return other.ends_with(".toml"); });
}

/// -n and --write-sbatch may stand alone or before a number of ranks: written out, so that they
/// never take the input file for their number.
std::vector<std::string> with_plain_numbers(std::vector<std::string> words) {
  const auto& commands = command_names();  // which have no such options
  if (!words.empty() && std::find(commands.begin(), commands.end(), words[0]) != commands.end())
    return words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-n") words[i] = "--dry-run";
    if (words[i] != "--dry-run" && words[i] != "--write-sbatch") continue;
    const bool number = i + 1 < words.size() && is_count(words[i + 1]);
    if (!number && i + 1 < words.size() && is_no_number(words, i + 1))
      (void)ranks_of(words[i], words[i + 1]);  // says what it needs
    words[i] += "=" + (number ? words[i + 1] : std::string(kHere));
    if (number) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return words;
}

/// Words of the user, before they become a CommandLine.
struct Parsed {
  CommandLine line;
  std::string restart, dir, dry_run, sbatch, explain, completion;
  bool defaults = false, reference = false, man_page = false;
};

void add_main_job(CLI::App& app, Parsed& p) {
  app.add_option("input", p.line.input, "input file of a training")->type_name("input.toml");
  app.add_option("-r,--restart", p.restart,
                 "auto, never, or a checkpoint, or a run folder whose newest one is taken")
      ->type_name("auto|never|DIR");
  app.add_option("-d,--dir", p.dir, "folder of the run (run.dir)")->type_name("DIR");
  add_overrides(app, p.line);
  app.add_option("-n,--dry-run", p.dry_run,
                 fmt::format("show what a run on so many ranks would do and need, without training "
                             "(at most {}; by default those that were started)",
                             kMostRanks))
      ->type_name("[RANKS]");
  app.add_option("--write-sbatch", p.sbatch,
                 "print a job script of this input for so many ranks (by default one on each node)")
      ->type_name("[RANKS]");
  CLI::Option* const quiet =
      app.add_flag("-q", p.line.quiet, "show only warnings and errors; the files are the same");
  app.add_flag("-v", p.line.verbose, "show all plans that the planner compared")->excludes(quiet);
  app.add_flag("--defaults", p.defaults, "print a complete input with comments");
  app.add_option("--explain", p.explain, "print the help of an input key or table")
      ->type_name("KEY");
  app.add_flag("--input-reference", p.reference, "print the reference of the input as Markdown");
  // Hidden: what an installation prints into files (cmake/T3dInstall.cmake).
  app.add_flag("--man-page", p.man_page)->group("");
  app.add_option("--completion", p.completion)->check(CLI::IsMember({"bash", "zsh"}))->group("");
  app.set_version_flag("--version", fmt::format("transformer3d {} ({}, {}, {})", kVersion, kGit,
                                                kCompiler, kBuildType));
}

/// A first word that is neither a command nor an input file is most likely a slip in a command.
void check_first_word(const std::string& word) {
  std::error_code unreachable;
  if (word.ends_with(".toml") || std::filesystem::exists(word, unreachable)) return;
  if (unreachable)
    throw_error(ExitCode::no_input, "cannot reach the input file {}: {}", word,
                unreachable.message());
  if (word.find('=') != std::string::npos)
    throw_error(ExitCode::usage, "'{}' needs a --set of its own; {}", word, kTryHelp);
  const auto near = nearest_word(word, command_names());
  throw_error(ExitCode::usage, "'{}' is neither an input file nor a command; {}", word,
              near ? fmt::format("did you mean {}?", *near) : std::string(kTryHelp));
}

Action chosen_action(const CLI::App& app, const Parsed& parsed) {
  if (app.got_subcommand("tokenize")) return Action::tokenize;
  if (app.got_subcommand("eval")) return Action::eval;
  if (app.got_subcommand("generate")) return Action::generate;
  if (app.got_subcommand("inspect")) return Action::inspect;
  if (app.got_subcommand("export")) return Action::exports;
  if (app.got_subcommand("import")) return Action::imports;
  if (app.got_subcommand("plan")) return Action::plan;
  if (app.got_subcommand("simulate")) return Action::simulate;
  if (app.got_subcommand("status")) return Action::status;
  if (app.got_subcommand("report")) return Action::report;
  if (app.got_subcommand("watch")) return Action::watch;
  if (app.got_subcommand("probe")) return Action::probe;
  if (app.got_subcommand("calibrate")) return Action::calibrate;
  if (app.got_subcommand("scaling")) return Action::scaling;
  if (!parsed.sbatch.empty()) return Action::sbatch;
  return parsed.dry_run.empty() ? Action::train : Action::dry_run;
}

/// CLI11 puts each description on one line.
std::string folded_help(const std::string& help) {
  constexpr std::size_t kDescriptions = 30;  // columns before them
  std::string text;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    text += folded(help.substr(at, end - at), kDescriptions) + "\n";
    at = end + 1;
  }
  return text;
}

CommandLine finished(const CLI::App& app, Parsed parsed) {
  CommandLine& line = parsed.line;
  line.action = Action::print;
  if (parsed.defaults)
    line.text = defaults_text();
  else if (parsed.reference)
    line.text = input_reference();
  else if (!parsed.explain.empty())
    line.text = explain(parsed.explain);
  else if (parsed.man_page)
    line.text = man_page(command_facts(app), kVersion);
  else if (parsed.completion == "bash")
    line.text = bash_completion(command_facts(app));
  else if (parsed.completion == "zsh")
    line.text = zsh_completion(command_facts(app));
  else
    line.action = chosen_action(app, parsed);

  const bool main_job = line.action == Action::train || line.action == Action::dry_run ||
                        line.action == Action::sbatch;
  if (main_job && line.input.empty()) {
    throw_error(ExitCode::usage, "the input file is missing; {}", kTryHelp);
  }
  if (main_job) check_first_word(line.input);
  if (!main_job && line.action != Action::print && line.action != Action::probe &&
      !line.input.empty()) {
    throw_error(ExitCode::usage, "'{}' stands before a command; {}", line.input, kTryHelp);
  }
  if (line.action == Action::tokenize && line.tokenize.options.valid_fraction >= 1) {
    throw_error(ExitCode::usage, "--valid must be below 1: nothing would be left to train on");
  }
  if (line.action == Action::scaling && line.scaling.collect.empty() &&
      (line.scaling.input.empty() || line.scaling.ranks.empty()))
    throw_error(
        ExitCode::usage,
        "scaling needs an input file and --ranks, or --collect DIR of a study that was run");
  if (!parsed.dry_run.empty() && parsed.dry_run != kHere)
    line.dry_run_ranks = ranks_of("--dry-run", parsed.dry_run);
  if (!parsed.sbatch.empty() && parsed.sbatch != kHere)
    line.sbatch_ranks = ranks_of("--write-sbatch", parsed.sbatch);
  if (!parsed.dir.empty()) line.overrides.push_back(text_override("run.dir", parsed.dir));
  if (!parsed.restart.empty())
    line.overrides.push_back(text_override("checkpoint.restart", parsed.restart));
  return std::move(line);
}

}  // namespace

bool needs_no_ranks(int argc, const char* const* argv) {
  if (argc < 2) return false;
  const std::string_view word = argv[1];
  return word == "status" || word == "watch" || word == "report" || word == "simulate" ||
         word == "plan" || word == "scaling";
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + std::max(argc, 1));
  words = with_plain_numbers(std::move(words));

  Parsed parsed;
  CLI::App app("Trains transformer language models on p x q x r ranks.", "transformer3d");
  app.require_subcommand(0, 1);
  add_main_job(app, parsed);
  add_tokenize(app, parsed.line.tokenize);
  add_eval(app, parsed.line);
  add_generate(app, parsed.line);
  add_inspect(app, parsed.line.inspect);
  add_export(app, parsed.line);
  add_import(app, parsed.line.imports);
  add_plan(app, parsed.line);
  add_simulate(app, parsed.line.simulate);
  add_status(app, parsed.line.status);
  add_report(app, parsed.line.report);
  add_watch(app, parsed.line.watch);
  add_probe(app, parsed.line);
  add_calibrate(app, parsed.line.calibrate);
  add_scaling(app, parsed.line);
  app.footer(exit_text());
  check_values(app, words);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    const auto commands = app.get_subcommands();
    parsed.line.action = Action::print;
    parsed.line.text =
        folded_help(commands.empty() ? app.help() : commands.front()->help(app.get_name()));
    return std::move(parsed.line);
  } catch (const CLI::CallForVersion& version) {
    parsed.line.action = Action::print;
    parsed.line.text = std::string(version.what()) + "\n";
    return std::move(parsed.line);
  } catch (const CLI::ParseError& error) {
    // A slip in a command's name makes its arguments look superfluous: tell the slip.
    if (!parsed.line.input.empty()) check_first_word(parsed.line.input);
    for (const std::string& word : app.remaining())
      if (word.find('=') != std::string::npos) check_first_word(word);
    throw_error(ExitCode::usage, "{}; {}", error.what(), kTryHelp);
  }
  return finished(app, std::move(parsed));
}

}  // namespace t3d
