#include "tools/scaling/study_plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "config/config_load.hpp"
#include "config/defaults.hpp"
#include "core/error.hpp"
#include "core/plan.hpp"
#include "core/utf8.hpp"
#include "io/lives/exit_record.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr const char *kInputName = "/input.toml", *kOperatorsName = "/operators.json";

struct StudyShape {
  index_t replicas = 1, p = 1, q = 1, r = 1;
  [[nodiscard]] index_t ranks() const { return replicas * p * q * r; }
  [[nodiscard]] std::string name() const {
    return fmt::format("{}{}x{}x{}", replicas > 1 ? fmt::format("{}-", replicas) : "", p, q, r);
  }
};

/// "1x2x2" or "2*1x2x1".
StudyShape parse_shape(const std::string& word) {
  StudyShape shape;
  std::istringstream text(word);
  char star = '*', x = 'x', y = 'x', rest = 0;
  if (word.find('*') != std::string::npos) text >> shape.replicas >> star;
  text >> shape.p >> x >> shape.q >> y >> shape.r;
  const bool whole = text && star == '*' && x == 'x' && y == 'x' && !(text >> rest);
  const index_t least = std::min({shape.replicas, shape.p, shape.q, shape.r});
  const index_t most = std::max({shape.replicas, shape.p, shape.q, shape.r});
  if (!whole || least < 1 || most > kMostRanks)
    throw_error(ExitCode::usage,
                "--shapes: '{}' is no shape; write PxQxR, or D*PxQxR with D replicas, or auto",
                printable(word, 40));
  return shape;
}

/// Keys whose value is of one number of ranks.
void check_free_shape(const Origins& origins, bool shapes) {
  constexpr std::array kOfRanks{"mesh.cuboids", "mesh.place",        "mesh.plan",    "mesh.tokens",
                                "mesh.outputs", "mesh.contractions", "batch.shares", "hetero.file"};
  std::vector<std::string> keys{kOfRanks.begin(), kOfRanks.end()};
  if (shapes) keys.emplace_back("mesh.replicas");
  for (const std::string& key : keys)
    if (const auto found = origins.find(key); found != origins.end())
      throw_error(ExitCode::config,
                  "{}: {} is of one number of ranks; leave it out of the input of a scaling study",
                  found->second.text(), key);
}

/// What a measuring run is beside the user's input: short, without validation, and without
/// checkpoints on the way.
std::vector<std::string> study_words(const ScalingCommand& command) {
  return {fmt::format("run.steps={}", command.steps),
          "run.tokens=0",
          "run.hours=0",
          "run.requeue=false",
          "run.pause_at=0",
          "debug.trace=[]",
          "schedule.warmup_steps=0",
          "checkpoint.every_steps=0",
          "checkpoint.every_minutes=0",
          "checkpoint.restart=never",
          "checkpoint.dir=''",
          "eval.every_steps=0",
          "data.valid=[]",
          "log.json=true",
          "log.progress=false"};
}

class Planner {
 public:
  Planner(const ScalingCommand& command, const std::vector<std::string>& overrides, index_t threads)
      : command_(command), words_(overrides), text_(read_input(command.input)) {
    const Config given = parse_config(text_, command.input, overrides, &origins_);
    title_ = given.run.name;
    sequences_ = given.batch.sequences;
    check_free_shape(origins_, command.shapes != std::vector<std::string>{"auto"});
    const std::vector<std::string> more = study_words(command);
    words_.insert(words_.end(), more.begin(), more.end());
    words_.push_back("run.name=" + title_);
    if (threads > 0 && !origins_.contains("debug.threads"))
      words_.push_back(fmt::format("debug.threads={}", threads));
  }

  StudyPlan plan() const {
    StudyPlan study;
    study.title = title_;
    study.weak = command_.weak;
    study.repeats = command_.repeats;
    study.spread = command_.spread;
    study.roofline = command_.roofline;
    if (command_.shapes == std::vector<std::string>{"auto"}) {
      for (const index_t ranks : command_.ranks)
        study.points.push_back(point(fmt::format("ranks-{}", ranks), ranks, {"mesh.cuboid=auto"}));
      return study;
    }
    std::set<index_t> without(command_.ranks.begin(), command_.ranks.end());
    for (const std::string& word : command_.shapes) {
      const StudyShape shape = parse_shape(word);
      if (std::find(command_.ranks.begin(), command_.ranks.end(), shape.ranks()) ==
          command_.ranks.end())
        throw_error(ExitCode::usage, "--shapes: {} has {} ranks, which --ranks does not name", word,
                    shape.ranks());
      without.erase(shape.ranks());
      study.points.push_back(
          point(fmt::format("ranks-{}-{}", shape.ranks(), shape.name()), shape.ranks(),
                {fmt::format("mesh.cuboid=[{}, {}, {}]", shape.p, shape.q, shape.r),
                 fmt::format("mesh.replicas={}", shape.replicas)}));
    }
    if (!without.empty())
      throw_error(ExitCode::usage, "--shapes: no shape has {} ranks", fmt::join(without, " or "));
    return study;
  }

 private:
  [[nodiscard]] index_t sequences_on(index_t ranks) const {
    const index_t least = *std::min_element(command_.ranks.begin(), command_.ranks.end());
    if (!command_.weak) return sequences_;
    if (sequences_ * ranks % least != 0)
      throw_error(ExitCode::usage,
                  "--weak: batch.sequences = {} on {} ranks is no whole number on {}", sequences_,
                  least, ranks);
    return sequences_ * ranks / least;
  }

  [[nodiscard]] PlannedPoint point(const std::string& name, index_t ranks,
                                   const std::vector<std::string>& shape) const {
    std::vector<std::string> words = words_;
    words.insert(words.end(), shape.begin(), shape.end());
    words.push_back(fmt::format("batch.sequences={}", sequences_on(ranks)));
    Origins origins;
    Config config = parse_config(text_, command_.input, words, &origins);
    config.data.validations.clear();
    try {
      Config checked = config;
      check_against_ranks(checked, static_cast<int>(ranks), origins);
    } catch (const Error& error) {
      throw_error(error.code(), "point {}: {}", name, error.what());
    }
    if (!origins_.contains("run.dir")) config.run.dir.clear();  // -d says it
    config.checkpoint.dir.clear();
    return {name, ranks, written_text(config, origins)};
  }

  const ScalingCommand& command_;
  std::vector<std::string> words_;
  std::string text_, title_;
  Origins origins_;
  index_t sequences_ = 0;
};

std::string study_file(const std::string& dir) { return dir + "/study.json"; }

/// As study_text() writes them; a study without points would replace tables by empty ones.
bool is_study(const StudyPlan& study) {
  std::set<std::string> names;
  const auto is_point = [&](const PlannedPoint& one) {
    return !one.name.empty() && one.name.find('/') == std::string::npos && one.ranks >= 1 &&
           names.insert(one.name).second;
  };
  return printable(study.title) == study.title && study.repeats >= 1 && study.spread >= 0 &&
         !study.points.empty() && std::all_of(study.points.begin(), study.points.end(), is_point);
}

/// Nothing where it is none.
std::optional<StudyPlan> parse_study(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    StudyPlan study;
    study.title = json.at("title");
    study.weak = json.at("weak");
    study.repeats = json.at("repeats");
    study.spread = json.at("spread");
    for (const auto& point : json.at("points"))
      study.points.push_back({point.at("name"), point.at("ranks"), ""});
    return json.at("format") == 1 && is_study(study) ? std::optional(study) : std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string study_text(const StudyPlan& study) {
  nlohmann::ordered_json json;
  json["format"] = 1;
  json["title"] = study.title;
  json["weak"] = study.weak;
  json["repeats"] = study.repeats;
  json["spread"] = study.spread;
  json["points"] = nlohmann::ordered_json::array();
  for (const PlannedPoint& point : study.points)
    json["points"].push_back({{"name", point.name}, {"ranks", point.ranks}});
  return json.dump(1) + "\n";
}

}  // namespace

StudyPlan plan_study(const ScalingCommand& command, const std::vector<std::string>& overrides,
                     index_t threads) {
  return Planner(command, overrides, threads).plan();
}

StudyPlan read_study(const std::string& dir) {
  const std::string path = study_file(dir);
  const std::optional<StudyPlan> study = parse_study(read_record_file(path));
  if (!study)
    throw_error(ExitCode::io,
                "{} is damaged: it is no record of a study. Remove it and call scaling with the "
                "input and options of before: runs that have ended stay and count, and the file is "
                "written anew",
                path);
  return *study;
}

StudyPlan keep_study(const std::string& dir, StudyPlan plan) {
  if (path_exists(study_file(dir))) {
    const StudyPlan before = read_study(dir);
    if (before.weak != plan.weak)
      throw_error(ExitCode::config, "{} holds a study of {} scaling; give another --output", dir,
                  before.weak ? "weak" : "strong");
    for (const PlannedPoint& point : before.points) {
      const auto same = [&](const PlannedPoint& other) { return other.name == point.name; };
      if (std::none_of(plan.points.begin(), plan.points.end(), same)) plan.points.push_back(point);
    }
  }
  std::stable_sort(plan.points.begin(), plan.points.end(),
                   [](const PlannedPoint& a, const PlannedPoint& b) { return a.ranks < b.ranks; });
  for (PlannedPoint& point : plan.points) {
    const std::string path = input_file(dir, point);
    const std::string there = path_exists(path) ? read_text_file(path) : "";
    if (point.input.empty()) point.input = there;
    if (!there.empty() && there != point.input)
      throw_error(ExitCode::config,
                  "{} is of another input, or of other options; give another --output", path);
    make_folder(dir + "/" + point.name);
    if (there.empty()) write_text_durably(path, point.input);
  }
  write_text_durably(study_file(dir), study_text(plan));
  return plan;
}

std::string input_file(const std::string& dir, const PlannedPoint& point) {
  return dir + "/" + point.name + kInputName;
}

std::string repeat_folder(const std::string& dir, const PlannedPoint& point, index_t repeat) {
  return fmt::format("{}/{}/repeat-{}", dir, point.name, repeat);
}

std::string operators_file(const std::string& dir, const PlannedPoint& point) {
  return dir + "/" + point.name + kOperatorsName;
}

std::vector<std::string> operators_words(const std::string& point, const std::string& run) {
  return {"probe",       point + kInputName,
          "--operators", point + kOperatorsName,
          "--set",       fmt::format("mesh.plan={}/plan.toml", run)};
}

bool is_finished(const std::string& dir, const PlannedPoint& point, index_t repeat) {
  try {
    const auto record = read_exit_record(repeat_folder(dir, point, repeat));
    return record && record->code == ExitCode::done;
  } catch (const Error&) {  // no record of an end
    return false;
  }
}

}  // namespace t3d
