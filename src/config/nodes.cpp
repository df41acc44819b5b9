#include "config/nodes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <string_view>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/levenshtein.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

constexpr double kMost = 1e8, kLeastSpeed = 1e-6;

template <class Field>
Key node_key(const char* name, Field NodeKind::*field, const char* help, const char* fallback,
             Range range = {}) {
  Key key;
  key.table = "nodes";
  key.name = name;
  key.help = help;
  key.range = range;
  key.fallback = fallback;
  if constexpr (Worded<Field>) {
    key.words.assign(Words<Field>::all.begin(), Words<Field>::all.end());
    key.slot = [field](Config& config) -> Slot {
      Field& value = config.nodes.back().*field;
      return WordSlot{[&value](std::string_view word) { value = *choice_of<Field>(word); },
                      [&value] { return word_of(value); }};
    };
  } else {
    key.slot = [field](Config& config) -> Slot { return &(config.nodes.back().*field); };
  }
  return key;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

TableList node_list() {
  TableList list;
  list.name = "nodes";
  list.help =
      "What is known of kinds of nodes: one [[nodes]] for each kind. A node belongs to the first "
      "kind whose name, feature and partition (those that are given) all fit.";
  list.each = "for each kind of node";
  list.keys = {
      node_key("name", &NodeKind::name, "Pattern of the node's name: * is any text, ? one letter.",
               "any"),
      node_key("feature", &NodeKind::feature,
               "A word of T3D_NODE_FEATURES or SLURM_JOB_CONSTRAINTS in the ranks' environment.",
               "any"),
      node_key("partition", &NodeKind::partition, "The Slurm partition (SLURM_JOB_PARTITION).",
               "any"),
      node_key("ranks", &NodeKind::ranks,
               "Ranks of the job on each such node; another number is an error.", "any number",
               {1, kMost, false, false}),
      node_key("threads", &NodeKind::threads, "Threads of a CPU rank.", "debug.threads",
               {1, kMostThreads, false, false}),
      node_key("device", &NodeKind::device,
               "cpu = ranks there use no GPU (with mesh.device = \"mixed\").", "auto"),
      node_key(
          "speed", &NodeKind::speed,
          "Relative speed of a rank there, instead of what the probe measures: at least 1e-6. 0 = "
          "nothing is placed there.",
          "as measured; with hetero.speeds = \"equal\" 1", {0, kMost, false, false}),
  };
  list.size = [](const Config& config) { return config.nodes.size(); };
  list.append = [](Config& config) { config.nodes.emplace_back(); };
  list.only = [](const Config& config, std::size_t at) {
    Config one;
    one.nodes = {config.nodes[at]};
    return one;
  };
  list.check = [](const Config& config, std::string& at) -> std::optional<Problem> {
    const NodeKind& kind = config.nodes.back();
    if (kind.speed > 0 && kind.speed < kLeastSpeed) at = "speed";
    if (!at.empty())
      return Problem{fmt::format("nodes.speed cannot be {}", kind.speed),
                     fmt::format("0, or at least {}", kLeastSpeed)};
    if (kind.name.empty() && kind.feature.empty() && kind.partition.empty())
      return Problem{"this [[nodes]] does not say which nodes it means",
                     "give name, feature or partition; name = \"*\" fits all"};
    return std::nullopt;
  };
  return list;
}

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBetween = ",&|[]() ";
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(kBetween), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

NodeFacts facts_here(const std::string& name, index_t ranks) {
  NodeFacts facts;
  facts.name = name;
  facts.ranks = ranks;
  facts.partition = environment("SLURM_JOB_PARTITION");
  facts.features =
      words_of(environment("T3D_NODE_FEATURES") + "," + environment("SLURM_JOB_CONSTRAINTS"));
  return facts;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, of = 0, star = std::string_view::npos, tried = 0;
  while (of < text.size()) {
    if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[of])) {
      ++at;
      ++of;
    } else if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      tried = of;
    } else if (star != std::string_view::npos) {  // the last star takes one letter more
      at = star + 1;
      of = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

namespace {

bool fits(const NodeKind& kind, const NodeFacts& node) {
  const auto has = [&](const std::string& feature) {
    return std::find(node.features.begin(), node.features.end(), feature) != node.features.end();
  };
  return (kind.name.empty() || matches_pattern(kind.name, node.name)) &&
         (kind.partition.empty() || kind.partition == node.partition) &&
         (kind.feature.empty() || has(kind.feature));
}

/// "a, b, c", of many the first ones.
std::string names_of(const std::vector<NodeFacts>& nodes) {
  constexpr std::size_t kShown = 8;
  std::set<std::string> names;
  for (const NodeFacts& node : nodes) names.insert(printable(node.name, 100));
  const std::vector<std::string> all(names.begin(), names.end());
  const std::span<const std::string> first(all.data(), std::min(kShown, all.size()));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (all.size() > kShown) text += fmt::format(" and {} more", all.size() - kShown);
  return text;
}

}  // namespace

std::optional<NodeKind> kind_of(const Config& config, const NodeFacts& node) {
  const auto found = std::find_if(config.nodes.begin(), config.nodes.end(),
                                  [&](const NodeKind& kind) { return fits(kind, node); });
  return found == config.nodes.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> unused_kinds(const Config& config, const std::vector<NodeFacts>& nodes) {
  std::vector<std::string> notes;
  std::set<std::size_t> used;
  for (const NodeFacts& node : nodes) {
    std::size_t at = 0;
    while (at < config.nodes.size() && !fits(config.nodes[at], node)) ++at;
    used.insert(at);
  }
  for (std::size_t at = 0; at < config.nodes.size(); ++at) {
    if (used.contains(at)) continue;
    const NodeKind& kind = config.nodes[at];
    const bool earlier = std::any_of(nodes.begin(), nodes.end(),
                                     [&](const NodeFacts& node) { return fits(kind, node); });
    notes.push_back(
        fmt::format("[[nodes]] {} ({}) {}", at + 1,
                    fmt::join(element_lines(*find_list("nodes"), config, at), ", "),
                    earlier ? "fits only nodes that one before it fits"
                            : fmt::format("fits no node; the nodes are {}", names_of(nodes))));
  }
  return notes;
}

void check_node_kinds(const std::vector<NodeFacts>& nodes,
                      const std::vector<std::optional<NodeKind>>& kinds) {
  std::vector<std::string> wrong;
  bool some_speed = false;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    const auto& kind = kinds[rank];
    some_speed = some_speed || !kind || kind->speed != 0;
    if (!kind || kind->ranks == 0 || kind->ranks == nodes[rank].ranks) continue;
    const std::string text =
        fmt::format("node {} has {}, and its [[nodes]] says {}", nodes[rank].name,
                    counted(nodes[rank].ranks, "rank"), kind->ranks);
    if (std::find(wrong.begin(), wrong.end(), text) == wrong.end()) wrong.push_back(text);
  }
  if (!some_speed)
    wrong.emplace_back("every rank is on a node of speed 0 ([[nodes]]): nobody could compute");
  if (!wrong.empty()) throw_error(ExitCode::config, "{}", fmt::join(wrong, "\n"));
}

void state_speeds(const std::vector<std::optional<NodeKind>>& kinds, bool measured,
                  const StepWork& work, Speeds& speeds) {
  const auto speed_of = [&](std::size_t rank) { return kinds[rank] ? kinds[rank]->speed : -1; };
  std::vector<std::pair<double, std::size_t>> levels;  // seconds at speed 1, rank
  for (std::size_t rank = 0; measured && rank < kinds.size(); ++rank)
    if (speed_of(rank) > 0)
      levels.emplace_back(speed_of(rank) * speeds.ranks[rank].seconds(work), rank);
  std::sort(levels.begin(), levels.end());
  const std::size_t model = levels.empty() ? 0 : levels[levels.size() / 2].second;
  const RankSpeed median_rank = speeds.ranks[model];
  for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
    const double stated = speed_of(rank);
    if (stated < 0) continue;
    RankSpeed& speed = speeds.ranks[rank];
    speed.error = 0;
    if (measured) speed.curves = median_rank.curves;
    if (stated == 0) speed.curves = {};
    for (TimeCurve& curve : speed.curves)
      if (!curve.empty()) curve.scale((measured ? speed_of(model) : 1) / stated);
  }
}

}  // namespace t3d
