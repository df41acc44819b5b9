// transformer3d calibrate: what this cluster can do, into cluster.toml. On the ranks that were
// started it measures; --from-slurm and --preset fill in what can be known without.
#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "core/counted.hpp"
#include "core/utf8.hpp"
#include "device/process_status.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/cluster_presets.hpp"
#include "io/output.hpp"
#include "io/output_folder.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"
#include "run/setup.hpp"
#include "sched/stop_signal.hpp"
#include "t3d_version.hpp"
#include "tools/calibrate/calibrate_report.hpp"
#include "tools/calibrate/cluster_update.hpp"
#include "tools/calibrate/measure.hpp"
#include "tools/calibrate/slurm_cluster.hpp"
#include "tools/commands.hpp"

namespace t3d {
namespace {

/// Of the time: operators, meetings, collectives, files.
constexpr double kOperators = 0.62, kMeetings = 0.04, kCollectives = 0.22, kFiles = 0.1;

Calibration calibration_now(bool emulated) {
  const std::time_t now = std::time(nullptr);
  return {Calibrated::measured, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)),
          fmt::format("transformer3d {} ({}){}", kVersion, kGit, emulated ? ", emulated" : "")};
}

/// What stands in --add, on all ranks; empty where there is none.
struct KnownFile {
  std::string text;
  Cluster cluster;
};
KnownFile known_file(Communicator& world, const CalibrateCommand& wish,
                     std::vector<std::string>& notes) {
  KnownFile known;
  if (wish.add.empty()) return known;
  all_or_none(world, [&] {
    if (world.rank() == 0) known.text = read_text_file(wish.add);
  });
  known.text = broadcast_text(world, known.text);
  all_or_none(world, [&] { known.cluster = parse_cluster(known.text, wish.add, &notes); });
  return known;
}

std::vector<ComputeType> formats_of(const CalibrateCommand& wish, bool gpus) {
  std::vector<ComputeType> formats;
  for (const std::string& word : wish.formats) formats.push_back(*choice_of<ComputeType>(word));
  if (!formats.empty()) return formats;
  // Ranks on CPUs know no tf32.
  if (gpus && wish.device != "mixed")
    return {ComputeType::bf16, ComputeType::tf32, ComputeType::fp32};
  return {ComputeType::fp32, ComputeType::bf16};
}

/// From the processes' start until the last rank could compute.
StartTime start_time(Communicator& world, double own) {
  const std::vector<double> all = all_gather_numbers(world, own);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return {world.size(), *most, *most - *least};
}

/// Everybody's part on rank 0, by way of the text that the file has.
std::vector<Cluster> gathered(Communicator& world, const Cluster& own) {
  std::vector<Cluster> ranks;
  const std::vector<std::string> texts = gather_texts(world, cluster_text(own));
  all_or_none(world, [&] {
    for (const std::string& text : texts)
      ranks.push_back(parse_cluster(text, "what a rank measured"));
  });
  return ranks;
}

class Calibration3d {
 public:
  Calibration3d(Communicator& world, const CalibrateCommand& wish)
      : world_(world), wish_(wish), begin_(PhaseClock::now()) {}

  /// On rank 0 what was measured; elsewhere nothing.
  Cluster measure(const Cluster& known) {
    std::optional<Machine> machine;
    machine.emplace(world_, options(ComputeType::fp32));
    const StartTime start = start_time(world_, process_age_seconds());
    const JobClasses job = find_classes(*machine, known, wish_.class_name, wish_.slowdown);
    const auto rank = static_cast<std::size_t>(world_.rank());
    if (crowded_ranks(world_)[rank] && wish_.slowdown.empty())
      notes_.push_back(
          "what sharing cores costs: there are more ranks than cores, and the times are those on a "
          "core; such a job takes longer than plan expects");
    Cluster own;
    own.classes = {job.classes[static_cast<std::size_t>(job.class_of_ranks[rank])]};
    const std::vector<ComputeType> formats = formats_of(wish_, machine->has_gpus());
    for (const ComputeType format : formats) {
      say(fmt::format("operators, {}", format));
      // A format that its operators do not know ends the command: the user asked for it.
      if (format != ComputeType::fp32) machine.emplace(world_, options(format));
      measure_format(*machine, format, job,
                     kOperators * wish_.seconds / static_cast<double>(formats.size()),
                     own.classes.front(), notes_);
      if (format != ComputeType::fp32) machine.emplace(world_, options(ComputeType::fp32));
    }
    say("meetings");
    measure_meetings(*machine, job, kMeetings * wish_.seconds, own.classes.front());
    say("collectives");
    measure_levels(*machine, job, kCollectives * wish_.seconds, own.levels, notes_);
    say("files");
    const Storage storage = measure_storage(world_, folder(), kFiles * wish_.seconds, notes_);
    Cluster all;
    const std::vector<Cluster> ranks = gathered(world_, own);
    all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      const Calibration now = calibration_now(!wish_.slowdown.empty());
      all = combined(ranks, now);
      all.storage = storage;
      if (!storage.writes.empty()) all.storage.calibration = now;
      all.startup.starts = {start};
    });
    return all;
  }

  /// Of all ranks, on rank 0, each once.
  std::vector<std::string> notes() {
    std::vector<std::string> all;
    for (const std::string& text :
         gather_texts(world_, fmt::format("{}", fmt::join(notes_, "\n")))) {
      std::string_view rest = text;
      while (!rest.empty()) {
        const std::string line(rest.substr(0, rest.find('\n')));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
      }
    }
    return all;
  }
  [[nodiscard]] double seconds() const { return PhaseClock::now() - begin_; }

 private:
  [[nodiscard]] MachineOptions options(ComputeType compute) const {
    MachineOptions options;
    options.device = *choice_of<DeviceRule>(wish_.device);
    options.precision.compute = compute;
    options.threads = wish_.slowdown.empty() ? static_cast<int>(wish_.threads) : 1;
    if (!wish_.slowdown.empty()) options.device = DeviceRule::cpu;
    return options;
  }
  [[nodiscard]] std::string folder() const {
    if (!wish_.folder.empty()) return wish_.folder;
    return std::filesystem::absolute(folder_of(wish_.output)).lexically_normal().string();
  }
  void say(const std::string& part) const {
    if (world_.rank() == 0)
      fmt::print(stderr, "transformer3d: calibrate: {} ({:.0f} s)\n", part, seconds());
  }

  Communicator& world_;
  const CalibrateCommand& wish_;
  double begin_;
  std::vector<std::string> notes_;
};

}  // namespace

namespace {

/// Nothing is measured: what Slurm and data sheets tell. On all ranks.
Cluster told(Communicator& world, const CalibrateCommand& wish, std::vector<std::string>& notes) {
  Cluster cluster;
  all_or_none(world, [&] { cluster = cluster_of_presets(wish.presets); });
  if (!wish.from_slurm) return cluster;
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    const std::optional<SlurmTexts> texts = ask_slurm_for_cluster();
    if (!texts)
      throw_error(ExitCode::unavailable, "--from-slurm: sinfo is missing here or does not answer");
    cluster = joined(cluster, slurm_cluster_of(*texts, notes));
  });
  return cluster;
}

std::string told_report(const Cluster& cluster, const std::vector<std::string>& notes) {
  std::string text;
  for (const NodeClass& one : cluster.classes)
    text +=
        fmt::format("class {}: {} node{} of {} rank{}, {}, {}\n", one.name, one.nodes,
                    one.nodes == 1 ? "" : "s", one.ranks_per_node,
                    one.ranks_per_node == 1 ? "" : "s", one.device, word_of(one.calibration.state));
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

/// What is written. `report`: of a run's factors, which are known only now.
Cluster changed(const CalibrateCommand& wish, const Cluster& now, const Cluster& more,
                std::string& report) {
  if (!wish.from_run.empty()) {
    Cluster all = with_factors_of_run(now, wish.from_run, wish.add);
    for (std::size_t at = 0; at < all.classes.size(); ++at)
      if (const NodeClass& own = all.classes[at]; own.factors != now.classes[at].factors)
        report += fmt::format("class {}: {}\n", own.name, factors_text(own.factors));
    return all;
  }
  for (const std::string& note : kept_notes(now, more)) report += "note: " + note + "\n";
  Cluster all = joined(now, more);
  if (all.classes.empty())
    throw_error(ExitCode::usage,
                "--preset: name a kind of node, too, or --add a file that has one");
  return all;
}

/// Before minutes of measuring: the file can be written as it shall be. One that was measured,
/// priced and edited is not lost for a measurement of another class.
void check_output(const CalibrateCommand& wish) {
  if (printable(wish.class_name) != wish.class_name)
    throw_error(ExitCode::usage, "--class: '{}' is not one line of UTF-8",
                printable(wish.class_name, 40));
  check_output_file(wish.output);
  std::error_code none;
  if (file_size(wish.output) <= 0 ||
      (!wish.add.empty() && std::filesystem::equivalent(wish.output, wish.add, none)))
    return;
  throw_error(
      ExitCode::usage,
      "{} is there already: --add {} keeps what it knows, -o names another file, or remove it",
      wish.output, wish.output);
}

}  // namespace

int run_calibrate(Communicator& world, const CommandLine& command) {
  die_of_stop_signals(remove_partial_files);
  const CalibrateCommand& wish = command.calibrate;
  all_or_none(world, [&] {  // before anything is measured
    if (!wish.slowdown.empty() && std::ssize(wish.slowdown) != world.size())
      throw_error(ExitCode::usage, "--slowdown has {}, and there {} {}",
                  counted(wish.slowdown.size(), "factor"), world.size() == 1 ? "is" : "are",
                  counted(world.size(), "rank"));
    if (world.rank() == 0) check_output(wish);
  });
  std::string report;
  std::vector<std::string> notes;
  const KnownFile known = known_file(world, wish, notes);
  Cluster more;
  if (!wish.from_run.empty()) {
    // Nothing is measured, and what the run has measured is read under the file's lock.
  } else if (!wish.measures()) {
    more = told(world, wish, notes);
    report = told_report(more, notes);
  } else {
    all_or_none(world, [&] {  // its file system is measured
      if (world.rank() == 0) make_folder(folder_of(wish.output));
    });
    Calibration3d calibration(world, wish);
    more = calibration.measure(known.cluster);
    for (std::string& note : calibration.notes()) notes.push_back(std::move(note));
    if (world.rank() == 0)
      report = calibrate_report(more, notes, wish.seconds) +
               fmt::format("{:.0f} s; ", calibration.seconds());
  }
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    std::vector<std::string> since;
    update_cluster_file(
        wish, known.text, more,
        [&](const Cluster& now) { return changed(wish, now, more, report); }, since);
    for (const std::string& note : since) report += "note: " + note + "\n";
    write_output(fmt::format("{}saved in {}\n", report, wish.output));
    flush_output();
  });
  return 0;
}

}  // namespace t3d
