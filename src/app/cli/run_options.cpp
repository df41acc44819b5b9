// The words of the commands about runs: status, watch, report, scaling.
#include "app/cli/command_options.hpp"
#include "core/plan.hpp"

namespace t3d {

void add_status(CLI::App& app, StatusCommand& command) {
  CLI::App* sub = app.add_subcommand("status", "show how runs are doing, from their folders");
  sub->add_option("dir", command.dirs, "run folders")->required()->type_name("DIR...");
  sub->add_flag("--json", command.json, "one JSON object for each run, in one line");
}

void add_watch(CLI::App& app, WatchCommand& command) {
  CLI::App* sub =
      app.add_subcommand("watch", "show how a run is doing on a screen that is renewed");
  sub->add_option("dir", command.dir, "run folder")->required()->type_name("DIR");
  sub->add_option("--interval", command.interval, "seconds between two looks; default 1")
      ->check(number_range(0.1, 3600.0));
  sub->add_flag("--once", command.once, "print the screen once");
}

void add_report(CLI::App& app, ReportCommand& command) {
  CLI::App* sub =
      app.add_subcommand("report", "write one page with all figures of runs, for a browser");
  sub->add_option("runs", command.dirs, "run folders; several are drawn over each other")
      ->required()
      ->type_name("RUN...");
  sub->add_option("-o,--output", command.output, "the page; by default report.html")
      ->type_name("FILE");
}

void add_scaling(CLI::App& app, CommandLine& line) {
  ScalingCommand& command = line.scaling;
  CLI::App* sub = app.add_subcommand(
      "scaling", "measure how well an input scales, on several numbers of ranks");
  CLI::Option* input =
      sub->add_option("input", command.input, "input file")->type_name("INPUT.toml");
  sub->add_option("--ranks", command.ranks, "numbers of ranks: 1,2,4,8")
      ->delimiter(',')
      ->check(number_range(index_t{1}, kMostRanks))
      ->needs(input);
  sub->add_flag("--weak", command.weak,
                "batch.sequences grows with the ranks; the input's is that of the fewest");
  sub->add_option("--repeat", command.repeats, "most runs of every point; default 5")
      ->check(number_range(index_t{1}, index_t{1000}));
  sub->add_option("--spread", command.spread,
                  "from the third run on, a point whose slowest and fastest run differ by no more "
                  "than this is not run again; default 0.02; 0 = all repeats")
      ->check(number_range(0.0, 1.0));
  sub->add_option("--steps", command.steps,
                  "steps of each run, of which the first fifth is warm-up; default 30")
      ->check(number_range(index_t{3}, index_t{1'000'000}));
  sub->add_option("--shapes", command.shapes,
                  "auto, or the shapes to compare: PxQxR or, with D replicas, D*PxQxR")
      ->delimiter(',')
      ->type_name("auto|SHAPE,...");
  sub->add_option("-o,--output,--out", command.output,
                  "folder of the study; by default scaling-NAME")
      ->type_name("DIR");
  sub->add_option("--launcher", command.launcher,
                  "what starts a run; words are separated at spaces")
      ->type_name("\"WORDS {ranks}\"");
  CLI::Option* slurm =
      sub->add_flag("--slurm", command.slurm, "run nothing: write DIR/study.sbatch, one array job");
  sub->add_option("--ranks-per-node", command.ranks_per_node, "ranks on each node of that job")
      ->check(number_range(index_t{1}, index_t{4096}))
      ->needs(slurm);
  sub->add_option(
         "--threads", command.threads,
         "threads of each rank (debug.threads); 0 = cores / ranks of the largest point that "
         "has a core for each rank")
      ->check(number_range(index_t{0}, index_t{4096}));
  sub->add_flag("!--no-roofline", command.roofline, "do not measure the operators of the points");
  sub->add_option("--collect", command.collect,
                  "run nothing: read the study, or the runs, in this folder")
      ->type_name("DIR")
      ->excludes(input);
  add_overrides(*sub, line);
}

}  // namespace t3d
