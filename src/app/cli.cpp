#include "app/cli.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "app/cluster/cluster_presets.hpp"
#include "app/config/defaults.hpp"
#include "app/config/explain.hpp"
#include "app/manual/command_facts.hpp"
#include "app/manual/completion.hpp"
#include "app/manual/man_page.hpp"
#include "core/error.hpp"
#include "core/levenshtein.hpp"
#include "core/plan.hpp"
#include "core/utf8.hpp"
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

/// CLI11 makes the nearest number of one that is too large; the user meant another.
std::string integer_fault(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (reason == std::errc{} && end == word.data() + word.size()) return "";
  return fmt::format("{} is not an integer from -2^63 to 2^63 - 1", word);
}

index_t ranks_of(const std::string& option, const std::string& word) {
  index_t ranks = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), ranks);
  if (reason != std::errc{} || ranks < 1 || ranks > kMostRanks)
    throw_error(ExitCode::usage, "{} needs a number of ranks from 1 to {}, not {}", option,
                kMostRanks, word);
  return ranks;
}

double seconds_of(const std::string& word) {
  double number = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string unit(end, word.data() + word.size());
  const std::map<std::string, double> units{{"", 1},     {"s", 1},    {"m", 60},
                                            {"min", 60}, {"h", 3600}, {"d", 86400}};
  const auto known = units.find(unit);
  if (reason != std::errc{} || known == units.end() || !(number > 0) || number > 1e9)
    throw_error(ExitCode::usage, "'{}' is no time such as 90m, 36h or 2d", printable(word, 40));
  return number * known->second;
}

PlanCommand::Noise noise_of(const std::string& word) {
  PlanCommand::Noise noise;
  const char* const last = word.data() + word.size();
  const auto [comma, reason] = std::from_chars(word.data(), last, noise.last);
  const bool first = reason == std::errc{} && noise.last > 0 && noise.last < 1e15;
  const auto [end, wrong] = comma == last || *comma != ',' || !first
                                ? std::from_chars_result{comma, std::errc::invalid_argument}
                                : std::from_chars(comma + 1, last, noise.exponent);
  if (wrong != std::errc{} || end != last || !(std::abs(noise.exponent) <= 4))
    throw_error(ExitCode::usage,
                "--noise needs the noise scale at the end of the run, in sequences, and the "
                "exponent of its growth, as in 500,0.5; not '{}'",
                printable(word, 40));
  return noise;
}

std::string exit_text() {
  std::string text = "Exit codes (what to do: docs/exit-codes.md):\n";
  for (const ExitMeaning& meaning : exit_meanings())
    text += fmt::format("  {:>2}  {}\n", static_cast<int>(meaning.code), meaning.text);
  return text;
}

/// -n and --write-sbatch may stand alone or before a number of ranks: written out, so that they
/// never take the input file for their number.
std::vector<std::string> with_plain_numbers(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-n") words[i] = "--dry-run";
    if (words[i] != "--dry-run" && words[i] != "--write-sbatch") continue;
    const bool number = i + 1 < words.size() && is_count(words[i + 1]);
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
  int more = 0, less = 0;
};

void add_overrides(CLI::App& app, CommandLine& line) {
  app.add_option("--set", line.overrides, "a key of the input, which wins; one for each --set")
      ->allow_extra_args(false)
      ->option_text("table.key=value");
}

void add_main_job(CLI::App& app, Parsed& p) {
  app.add_option("input", p.line.input, "input file: train as it says")->type_name("input.toml");
  app.add_option("-r,--restart", p.restart, "auto, never, or the path of a checkpoint")
      ->type_name("auto|never|DIR");
  app.add_option("-d,--dir", p.dir, "folder of the run (run.dir)")->type_name("DIR");
  add_overrides(app, p.line);
  app.add_option("-n,--dry-run", p.dry_run,
                 fmt::format("plan for so many ranks (at most {}; or those started), print, quit",
                             kMostRanks))
      ->type_name("[RANKS]");
  app.add_option("--write-sbatch", p.sbatch,
                 "print a job script of this input for so many ranks (or one on each node), quit")
      ->type_name("[RANKS]");
  app.add_flag("-v", p.more, "more log");
  app.add_flag("-q", p.less, "less log");
  app.add_flag("--defaults", p.defaults, "print a complete commented input, quit");
  app.add_option("--explain", p.explain, "print the help of an input key or table, quit")
      ->type_name("KEY");
  app.add_flag("--input-reference", p.reference,
               "print the reference of the input as Markdown, quit");
  // Hidden: what an installation prints into files (cmake/T3dInstall.cmake).
  app.add_flag("--man-page", p.man_page)->group("");
  app.add_option("--completion", p.completion)->check(CLI::IsMember({"bash", "zsh"}))->group("");
  app.set_version_flag("--version", fmt::format("transformer3d {} ({}, {}, {})", kVersion, kGit,
                                                kCompiler, kBuildType));
}

void add_tokenize_text(CLI::App& sub, TokenizeOptions& options) {
  sub.add_option("--field", options.fields.text, "JSONL: the field with the text")
      ->type_name("NAME");
  CLI::Option* prompt =
      sub.add_option("--prompt-field", options.fields.prompt,
                     "JSONL: the field with what comes before the text and counts in no loss")
          ->type_name("NAME");
  CLI::Option* completion =
      sub.add_option("--completion-field", options.fields.completion, "JSONL: the text behind it")
          ->type_name("NAME");
  prompt->needs(completion);
  completion->needs(prompt);
  sub.add_flag("--document-lines", options.document_lines,
               "text files: every line is a document, not every file");
  sub.add_flag("!--no-document-end", options.document_end,
               "no id behind a document, also where the tokenizer has one for that");
  sub.add_flag("--document-begin", options.document_begin,
               "the tokenizer's id for it before a document");
  sub.add_option_function<std::string>(
         "--on-bad-line",
         [&options](const std::string& word) { options.skip_bad_lines = word == "skip"; },
         "JSONL: stop (default) at a line that is broken, or skip it and count")
      ->check(CLI::IsMember({"stop", "skip"}));
}

void add_tokenize(CLI::App& app, TokenizeCommand& command) {
  TokenizeOptions& options = command.options;
  CLI::App* sub = app.add_subcommand("tokenize", "make token files from texts");
  sub->add_option("inputs", command.inputs,
                  "text and JSONL files (.zst too), patterns, folders with such files")
      ->required()
      ->type_name("INPUT...");
  sub->add_option("-o,--output", command.prefix, "writes PREFIX-train.h5 and PREFIX-valid.h5")
      ->required()
      ->type_name("PREFIX");
  sub->add_option("--kind", options.kind, "bytes, bpe or unigram (trained on the text)")
      ->check(CLI::IsMember({"bytes", "bpe", "unigram"}));
  sub->add_option("--vocab", options.vocab, "vocabulary of a trained tokenizer")
      ->check(CLI::Range(index_t{2}, index_t{10'000'000}));
  sub->add_option("--model", options.model_file, "use the tokenizer of this file")
      ->type_name("FILE");
  sub->add_option("--valid", options.valid_fraction, "share of the text kept for validation")
      ->check(CLI::Range(0.0, 1.0));
  add_tokenize_text(*sub, options);
  static const std::map<std::string, TokenOutput> outputs{{"hdf5", TokenOutput::hdf5},
                                                          {"megatron", TokenOutput::megatron},
                                                          {"llmc", TokenOutput::llmc}};
  sub->add_option_function<std::string>(
         "--format", [&options](const std::string& word) { options.output = outputs.at(word); },
         "of the output: hdf5 (ours), megatron (.bin, .idx) or llmc (.bin)")
      ->check(CLI::IsMember({"hdf5", "megatron", "llmc"}));
  sub->add_option("--threads", options.threads, "of each process; 0 = all cores, under mpirun one")
      ->check(CLI::Range(index_t{0}, index_t{4096}));
}

void add_eval(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("eval", "loss of a checkpoint on a token file");
  sub->add_option("checkpoint", line.eval.checkpoint, "checkpoint folder")
      ->required()
      ->type_name("DIR");
  sub->add_option("tokenfile", line.eval.token_file, "token file")->required()->type_name("FILE");
  sub->add_option("--sequences", line.eval.sequences, "how many; 0 = all")
      ->check(CLI::Range(index_t{0}, index_t{1'000'000'000'000}));
  add_overrides(*sub, line);
}

void add_generate(CLI::App& app, CommandLine& line) {
  GenerateCommand& command = line.generate;
  CLI::App* sub = app.add_subcommand("generate", "continue texts with a checkpoint");
  sub->add_option("checkpoint", command.checkpoint, "checkpoint folder")
      ->required()
      ->type_name("DIR");
  sub->add_option("--prompt", command.prompts, "text to continue; one for each --prompt")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_option("--prompts", command.prompt_file,
                  "one on each line, or JSON lines with the field \"prompt\"; - = standard input")
      ->type_name("FILE");
  sub->add_option("--tokens", command.tokens, "how many to add at most")
      ->check(CLI::Range(index_t{0}, index_t{1'000'000'000}));
  sub->add_option("--stop", command.stops, "end before this text; one for each --stop")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_flag("--ignore-eos", command.ignore_eos, "go on behind the end of a document");
  sub->add_option("--batch", command.batch, "texts at a time")
      ->check(CLI::Range(index_t{1}, index_t{1'000'000}));
  sub->add_option("--temperature", command.temperature, "above 1 wilder, below 1 tamer")
      ->check(CLI::Range(1e-6, 1e6));
  sub->add_option("--top-k", command.top_k, "only the k likeliest; 0 = off")
      ->check(CLI::Range(index_t{0}, index_t{1'000'000'000}));
  sub->add_option("--top-p", command.top_p, "only the likeliest that make up p; 1 = off")
      ->check(CLI::Range(1e-9, 1.0));
  sub->add_flag("--greedy", command.greedy, "always the likeliest");
  sub->add_option("--seed", command.seed, "of the random choice")->check(integer_fault);
  sub->add_flag("--json", command.json, "one JSON object for each text, in one line");
  sub->add_flag("--no-stream", command.no_stream, "print a text when it is complete");
  add_overrides(*sub, line);
}

void add_inspect(CLI::App& app, InspectCommand& command) {
  CLI::App* sub = app.add_subcommand("inspect", "what is in a checkpoint or token file");
  sub->add_option("path", command.path, "checkpoint folder or token file")
      ->required()
      ->type_name("PATH");
  sub->add_flag("--verify", command.verify, "read everything and compare checksums");
}

void add_export(CLI::App& app, CommandLine& line) {
  ExportCommand& command = line.exports;
  CLI::App* sub = app.add_subcommand("export", "write a checkpoint as a Hugging Face model");
  sub->add_option("checkpoint", command.checkpoint, "checkpoint, or run folder")
      ->required()
      ->type_name("DIR");
  sub->add_option("-o,--output", command.folder, "new folder for the model")
      ->required()
      ->type_name("DIR");
  sub->add_option("--format", command.format,
                  "hf: a whole model, adapters added; peft: the adapters alone")
      ->check(CLI::IsMember({"hf", "peft"}));
  sub->add_option("--dtype", command.dtype, "of the weights")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "fp64"}));
  add_overrides(*sub, line);
}

void add_import(CLI::App& app, ImportCommand& command) {
  CLI::App* sub = app.add_subcommand("import", "make a checkpoint of a Hugging Face model");
  sub->add_option("folder", command.folder, "folder with config.json and safetensors")
      ->required()
      ->type_name("DIR");
  sub->add_option("-o,--output", command.dir, "folder for the checkpoint")
      ->required()
      ->type_name("DIR");
  sub->add_option("--context", command.context, "model.context of the checkpoint")
      ->check(CLI::Range(index_t{1}, index_t{100'000'000}));
  sub->add_option("--vocab", command.vocab, "more tokens than the model has: their rows are fresh")
      ->check(CLI::Range(index_t{1}, index_t{100'000'000}));
  sub->add_flag("--no-tokenizer", command.no_tokenizer, "take the weights alone");
}

void add_status(CLI::App& app, StatusCommand& command) {
  CLI::App* sub = app.add_subcommand("status", "how a run is doing, by what is in its folder");
  sub->add_option("dir", command.dirs, "run folders")->required()->type_name("DIR...");
  sub->add_flag("--json", command.json, "one JSON object for each, in one line");
}

void add_watch(CLI::App& app, WatchCommand& command) {
  CLI::App* sub = app.add_subcommand("watch", "a screen of how a run is doing, as it goes on");
  sub->add_option("dir", command.dir, "run folder")->required()->type_name("DIR");
  sub->add_option("--interval", command.interval, "seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0));
  sub->add_flag("--once", command.once, "print the screen once, and quit");
}

void add_elastic(CLI::App& sub, PlanCommand& command) {
  CLI::Option* const elastic = sub.add_flag(
      "--elastic", command.elastic, "sizes over the run: more nodes as the useful batch grows");
  CLI::Option* const from =
      sub.add_option("--noise-from", command.noise_from,
                     "with --elastic: the noise scale that a run has measured, by its folder")
          ->type_name("RUN")
          ->needs(elastic);
  sub.add_option_function<std::string>(
         "--noise", [&command](const std::string& word) { command.noise = noise_of(word); },
         "the same by hand: sequences at the end, and the exponent of the part of the run")
      ->type_name("B,EXPONENT")
      ->needs(elastic)
      ->excludes(from);
  sub.add_option("--most-batch", command.most_batch,
                 "with --elastic: the batch may grow to so many sequences")
      ->check(CLI::Range(index_t{1}, index_t{100000000}))
      ->needs(elastic);
}

void add_plan(CLI::App& app, CommandLine& line) {
  PlanCommand& command = line.plan;
  CLI::App* sub = app.add_subcommand("plan", "which nodes to ask for, which shape, how long");
  sub->add_option("input", command.input, "input file")->required()->type_name("INPUT.toml");
  sub->add_option("--cluster", command.cluster, "what calibrate wrote")
      ->required()
      ->type_name("CLUSTER.toml");
  sub->add_option_function<std::string>(
         "--deadline",
         [&command](const std::string& word) { command.deadline_seconds = seconds_of(word); },
         "be done in this time: 90m, 36h, 2d")
      ->type_name("TIME");
  sub->add_option_function<double>(
         "--budget", [&command](double most) { command.budget = most; },
         "cost at most so much, in the classes' currency; node-hours where they have no price")
      ->check(CLI::Range(1e-9, 1e15));
  sub->add_option("--objective", command.objective,
                  "what counts among those that keep to both; by default cost with a deadline, "
                  "else time; pareto = the least product of both, and only the front is listed")
      ->check(CLI::IsMember({"time", "cost", "pareto"}));
  sub->add_option("--risk", command.risk, "part of all lives that must meet the deadline")
      ->check(CLI::Range(0.5, 0.999));
  sub->add_option("--nodes", command.nodes, "exactly so many nodes")
      ->check(CLI::Range(index_t{1}, index_t{1} << 24));
  sub->add_option("--most-nodes", command.most_nodes, "no more than these")
      ->check(CLI::Range(index_t{1}, index_t{1} << 24));
  sub->add_option("--from", command.from,
                  "plan what remains after this checkpoint, or the newest of this run folder; by "
                  "default what a run with this input would go on from")
      ->type_name("PATH");
  sub->add_option("--top", command.top, "so many lines")
      ->check(CLI::Range(index_t{1}, index_t{1000}));
  sub->add_option("-o,--output", command.output,
                  "folder for the run's input, job script, job plan, table and plot")
      ->type_name("DIR");
  sub->add_flag("--json", command.json, "one JSON object");
  add_elastic(*sub, command);
  add_overrides(*sub, line);
}

void add_simulate(CLI::App& app, SimulateCommand& command) {
  CLI::App* sub = app.add_subcommand("simulate", "when a job will be done, and for how much");
  sub->add_option("plan", command.plan, "job plan")->required()->type_name("PLAN.json");
  sub->add_option("--trace", command.trace,
                  "replay who came and went: output of sacct --parsable2, or time_s,change,node; "
                  "weibull = draw it from the plan's hazards")
      ->type_name("FILE|weibull");
  sub->add_option("--history", command.history,
                  "correct each class's hazard by a trace or an output of sacct")
      ->type_name("FILE");
  sub->add_option("--runs", command.runs, "how many lives of the job")
      ->check(CLI::Range(index_t{1}, index_t{1'000'000}));
  sub->add_option("--seed", command.seed, "of chance")->check(integer_fault);
  sub->add_option(
         "--policy", command.policies,
         "compare the plan's policy with this one: recovery=, copies=, interval=, spares=, "
         "sizing=, divided by commas; one for each --policy")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_option_function<std::string>(
         "--deadline",
         [&command](const std::string& word) { command.deadline_seconds = seconds_of(word); },
         "how likely is it to be done in this time: 90m, 36h, 2d")
      ->type_name("TIME");
  sub->add_option("-o,--output", command.output, "folder for timeline.svg, runs.csv, result.json")
      ->type_name("DIR");
  sub->add_flag("--json", command.json, "one JSON object");
}

void add_report(CLI::App& app, ReportCommand& command) {
  CLI::App* sub = app.add_subcommand("report", "one page with all figures of runs, for a browser");
  sub->add_option("runs", command.dirs, "run folders; several are drawn over each other")
      ->required()
      ->type_name("RUN...");
  sub->add_option("-o,--output", command.output, "the page (report.html)")->type_name("FILE");
}

void add_probe(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("probe", "measure the ranks that were started, and quit");
  sub->add_option("input", line.input, "input file")->required()->type_name("input.toml");
  sub->add_option("-o,--output", line.probe_output, "save the speeds (hetero.file replays them)")
      ->type_name("FILE");
  add_overrides(*sub, line);
}

template <Worded Choice>
std::vector<std::string> words_of() {
  return {Words<Choice>::all.begin(), Words<Choice>::all.end()};
}

void add_calibrate(CLI::App& app, CalibrateCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "calibrate", "measure what the ranks that were started can do, for plan and simulate");
  sub->add_option("-o,--output", command.output,
                  "the file; by default cluster.toml, with --from-run that of --add")
      ->type_name("FILE");
  sub->add_option("--add", command.add, "take over what this file knows of other classes")
      ->type_name("FILE");
  sub->add_option("--seconds", command.seconds, "how long it may measure, about")
      ->check(CLI::Range(1.0, 3600.0));
  sub->add_option("--class", command.class_name, "name of the nodes' class, if they are all alike")
      ->type_name("NAME");
  sub->add_option("--formats", command.formats, "number formats, fp32,bf16 and others")
      ->delimiter(',')
      ->check(CLI::IsMember(words_of<ComputeType>()));
  sub->add_option("--folder", command.folder, "folder whose file system is measured")
      ->type_name("DIR");
  sub->add_option("--device", command.device, "auto, cpu, cuda or mixed")
      ->check(CLI::IsMember(words_of<DeviceRule>()));
  sub->add_flag("--from-slurm", command.from_slurm,
                "measure nothing: classes, partitions and switches as Slurm has them");
  sub->add_option(
         "--preset", command.presets,
         fmt::format("measure nothing: data sheets of {}", fmt::join(cluster_presets(), ", ")))
      ->delimiter(',')
      ->type_name("NAME,...");
  sub->add_option("--threads", command.threads, "of a CPU rank; 0 = its part of the cores")
      ->check(CLI::Range(index_t{0}, index_t{4096}));
  sub->add_option("--from-run", command.from_run,
                  "measure nothing: what the steps of this run (with hetero.cluster) took over "
                  "what the file of --add says")
      ->needs("--add")
      ->excludes("--from-slurm")
      ->excludes("--preset")
      ->type_name("DIR");
  sub->callback([&command] {
    if (command.output.empty())
      command.output = command.from_run.empty() ? "cluster.toml" : command.add;
  });
}

void add_scaling(CLI::App& app, CommandLine& line) {
  ScalingCommand& command = line.scaling;
  CLI::App* sub = app.add_subcommand(
      "scaling", "run an input on several numbers of ranks, and say how well it scales");
  CLI::Option* input =
      sub->add_option("input", command.input, "input file")->type_name("INPUT.toml");
  sub->add_option("--ranks", command.ranks, "numbers of ranks: 1,2,4,8")
      ->delimiter(',')
      ->check(CLI::Range(index_t{1}, kMostRanks))
      ->needs(input);
  sub->add_flag("--weak", command.weak,
                "batch.sequences grows with the ranks; the input's is that of the fewest");
  sub->add_option("--repeat", command.repeats, "runs of every point")
      ->check(CLI::Range(index_t{1}, index_t{1000}));
  sub->add_option("--spread", command.spread,
                  "from the third run on, a point whose slowest and fastest run differ by no more "
                  "than this is not run again; 0 = all repeats")
      ->check(CLI::Range(0.0, 1.0));
  sub->add_option("--steps", command.steps, "of each run; the first fifth is warm-up")
      ->check(CLI::Range(index_t{3}, index_t{1'000'000}));
  sub->add_option("--shapes", command.shapes,
                  "auto, or the shapes to compare: PxQxR or, with D replicas, D*PxQxR")
      ->delimiter(',')
      ->type_name("auto|SHAPE,...");
  sub->add_option("-o,--output,--out", command.output, "folder of the study (scaling-NAME)")
      ->type_name("DIR");
  sub->add_option("--launcher", command.launcher, "what starts a run; words are cut at spaces")
      ->type_name("\"WORDS {ranks}\"");
  CLI::Option* slurm =
      sub->add_flag("--slurm", command.slurm, "run nothing: write DIR/study.sbatch, one array job");
  sub->add_option("--ranks-per-node", command.ranks_per_node, "in that job")
      ->check(CLI::Range(index_t{1}, index_t{4096}))
      ->needs(slurm);
  sub->add_option("--threads", command.threads,
                  "of each rank (debug.threads); 0 = cores / ranks of the largest point that has "
                  "a core for each")
      ->check(CLI::Range(index_t{0}, index_t{4096}));
  sub->add_option("--collect", command.collect,
                  "run nothing: read the study, or the runs, in this folder")
      ->type_name("DIR")
      ->excludes(input);
  add_overrides(*sub, line);
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
  line.verbosity = parsed.more - parsed.less;
  if (!parsed.dry_run.empty() && parsed.dry_run != kHere)
    line.dry_run_ranks = ranks_of("--dry-run", parsed.dry_run);
  if (!parsed.sbatch.empty() && parsed.sbatch != kHere)
    line.sbatch_ranks = ranks_of("--write-sbatch", parsed.sbatch);
  if (!parsed.dir.empty()) line.overrides.push_back("run.dir=" + parsed.dir);
  if (!parsed.restart.empty()) line.overrides.push_back("checkpoint.restart=" + parsed.restart);
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
  std::reverse(words.begin(), words.end());  // as CLI11 takes them

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
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    const auto commands = app.get_subcommands();
    parsed.line.action = Action::print;
    parsed.line.text = commands.empty() ? app.help() : commands.front()->help();
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
