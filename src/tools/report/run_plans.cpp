// The plans that a run has kept, by the step after which each holds, and what every rank has of
// them.
#include <algorithm>
#include <charconv>
#include <map>

#include "core/plan.hpp"
#include "io/lives/life_record.hpp"
#include "io/posix_file.hpp"
#include "tools/report/run_facts.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostPlans = 400;
constexpr double kClockSeconds = 2;  // file systems and hosts may differ by this

struct PlanFile {
  index_t after = 0;
  std::string path;
};

/// By step; those that a later life made obsolete are left out.
std::vector<PlanFile> plan_files(const std::string& dir, const std::vector<LifeRecord>& lives) {
  std::vector<PlanFile> files;
  for (const std::string& name : list_folder(dir + "/plans")) {
    PlanFile file{0, dir + "/plans/" + name};
    const auto [end, reason] = std::from_chars(name.data(), name.data() + name.size(), file.after);
    if (reason != std::errc{} || std::string_view(end) != ".toml") continue;
    const auto written = file_time(file.path);
    const bool obsolete = std::any_of(lives.begin(), lives.end(), [&](const LifeRecord& life) {
      return written && life.from_step && *life.from_step < file.after &&
             life.started > *written + kClockSeconds;
    });
    if (!obsolete) files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const PlanFile& a, const PlanFile& b) { return a.after < b.after; });
  return files;
}

/// Of each rank: where it is, as slab_sequences counts slabs; -1 = idle.
std::vector<index_t> slabs_of(const Plan& plan) {
  std::vector<index_t> first;  // slab of each replica
  index_t slabs = 0;
  for (const ReplicaPlan& replica : plan.replicas) {
    first.push_back(slabs);
    slabs += replica.cuboid[0];
  }
  const MeshShape mesh = plan.mesh();
  std::vector<index_t> of_rank(static_cast<std::size_t>(plan.ranks), -1);
  for (int rank = 0; rank < plan.ranks; ++rank)
    if (const auto active = plan.active_rank(rank)) {
      const Coord at = mesh.coord_of(*active);
      of_rank[static_cast<std::size_t>(rank)] = first[static_cast<std::size_t>(at.d)] + at.i;
    }
  return of_rank;
}

std::map<std::string, std::vector<index_t>> widths_of(const Plan& plan) {
  std::map<std::string, std::vector<index_t>> widths;
  const MeshShape mesh = plan.mesh();
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto active = plan.active_rank(rank);
    const Coord at = active ? mesh.coord_of(*active) : Coord{};
    const ReplicaPlan& replica = plan.replica(at.d);
    const auto add = [&](const char* name, const Partition& cut, index_t part) {
      widths[name].push_back(active ? cut.size(part) : 0);
    };
    add("hidden", replica.hidden, at.k);
    add("groups", replica.groups, at.j);
    add("ffn", replica.ffn, at.j);
    add("vocab", replica.vocab, at.j);
  }
  return widths;
}

}  // namespace

ReportJson read_run_plans(const std::string& dir, const std::vector<LifeRecord>& lives,
                          std::vector<std::string>& notes) {
  std::vector<PlanFile> files = plan_files(dir, lives);
  if (files.size() > kMostPlans) {
    notes.push_back(fmt::format("of {} plans the last {} are shown", files.size(), kMostPlans));
    files.erase(files.begin(), files.end() - kMostPlans);
  }
  ReportJson plans = ReportJson::array(), slabs, widths;
  for (const PlanFile& file : files) {
    const Plan plan = parse_plan(read_text_file(file.path), file.path);
    ReportJson json{{"after", file.after},
                    {"hash", plan.hash()},
                    {"mesh", plan.mesh().describe()},
                    {"ranks", plan.ranks},
                    {"sequences", slab_sequences(plan)}};
    const ReportJson its_slabs = slabs_of(plan), its_widths = widths_of(plan);
    if (its_slabs != slabs) json["slabs"] = slabs = its_slabs;
    if (its_widths != widths) json["widths"] = widths = its_widths;
    plans.push_back(std::move(json));
  }
  return plans;
}

}  // namespace t3d
