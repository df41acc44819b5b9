// How long planning takes on one core, and how near plans come to the bound of all ranks' speed,
// over numbers of ranks and kinds of speeds. Messages are free here unless "links" is said; links:
// 5 us and 100 GB/s in nodes of 8 ranks, 10 us and 12.5 GB/s between them.
//
//   build/cpu/bench/t3d_bench_planner [--memory [RANKS [SEEDS]]]
#include "hetero/planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/error.hpp"
#include "core/random.hpp"
#include "hetero/cost/memory.hpp"
#include "support/planner_case.hpp"

using namespace t3d;

namespace {

enum class Kind { continuous, classes };

PlanRequest request_of(int ranks, index_t sequences_per_rank) {
  PlanRequest request;
  request.recipe = test::small_recipe(ranks, sequences_per_rank * ranks);
  ModelConfig& m = request.recipe.base.model;
  m.layers = 32;
  m.hidden = 4096;
  m.heads = m.kv_heads = 32;
  m.ffn = 11008;
  m.vocab = 32000;
  m.context = 2048;
  return request;
}

/// Nodes of 8 ranks. Continuous: each rank for itself; three classes 1 : 2.2 : 3.2 by node, with 1
/// % of noise.
Speeds speeds_of(int ranks, Kind kind, bool links, std::uint64_t seed) {
  constexpr int kNode = 8;
  Speeds speeds;
  for (int rank = 0; rank < ranks; ++rank) {
    const double own = double(random_uniform({seed, 0}, rank));
    const double node = double(random_uniform({seed, 1}, rank / kNode));
    const double of_class = node < 1.0 / 3 ? 1 : node < 2.0 / 3 ? 2.2 : 3.2;
    speeds.ranks.push_back(test::rank_speed(
        1000 * (kind == Kind::continuous ? 1 + 3 * own : of_class * (1 + 0.01 * own)),
        fmt::format("n{}", rank / kNode)));
  }
  if (links) {
    speeds.inside = {5e-6, 1e-11};
    speeds.between = {1e-5, 8e-11};
  }
  return speeds;
}

/// Memory that binds: `tight` times what the ranks need on average under the plan that memory does
/// not limit, divided unevenly.
enum class Rooms { unlimited, random, against_speed, few };
constexpr const char* kRoomNames[]{"", "random", "fast ranks small", "few small"};

void set_rooms(Speeds& speeds, Rooms rooms, double tight, const Plan& unlimited,
               std::uint64_t seed) {
  double needed = 0, all = 0;
  const MeshShape mesh = unlimited.mesh();
  for (int number = 0; number < mesh.ranks(); ++number)
    needed += double(needed_bytes(memory_cost(unlimited, mesh.coord_of(number)), false));
  std::vector<double> parts;
  for (std::size_t rank = 0; rank < speeds.ranks.size(); ++rank) {
    const double own = double(random_uniform({seed, 2}, index_t(rank)));
    const double seconds = speeds.ranks[rank].curve(WorkClass::matmul).seconds(1e12);
    parts.push_back(rooms == Rooms::random          ? 0.25 + 1.5 * own
                    : rooms == Rooms::against_speed ? seconds
                    : own < 1.0 / 16                ? 0.2
                                                    : 1.0);
    all += parts.back();
  }
  for (std::size_t rank = 0; rank < speeds.ranks.size(); ++rank)
    speeds.ranks[rank].free_bytes = index_t(tight * needed * parts[rank] / all);
}

struct Case {
  int ranks = 0;
  Kind kind = Kind::continuous;
  bool links = false;
  index_t sequences = 4;
  Rooms rooms = Rooms::unlimited;
  double tight = 0;
  int seeds = 7;
};

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}

double measure(const Case& of) {
  std::vector<double> ms;
  double worst_efficiency = 1, efficiencies = 0;
  int refused = 0;
  std::string mesh = "refused";
  for (int seed = 0; seed < of.seeds; ++seed) {
    const PlanRequest request = request_of(of.ranks, of.sequences);
    Speeds speeds = speeds_of(of.ranks, of.kind, of.links, std::uint64_t(seed));
    if (of.rooms != Rooms::unlimited)
      set_rooms(speeds, of.rooms, of.tight, plan_job(request, speeds).plan, std::uint64_t(seed));
    const double start = processor_ms();
    try {
      const PlanChoice choice = plan_job(request, speeds);
      ms.push_back(processor_ms() - start);
      efficiencies += choice.predicted.efficiency();
      worst_efficiency = std::min(worst_efficiency, choice.predicted.efficiency());
      mesh = choice.plan.mesh().describe();
    } catch (const Error&) {
      ms.push_back(processor_ms() - start);
      ++refused;
    }
  }
  std::sort(ms.begin(), ms.end());
  const int planned = of.seeds - refused;
  fmt::print(
      "{:>6} {:<10} {:<6} {:<17} {:>5.3g} {:>5} {:>9.1f} {:>9.1f} {:>7.4f} {:>7.4f} {:>7}  {}\n",
      of.ranks, of.kind == Kind::classes ? "3 classes" : "continuous", of.links ? "links" : "",
      kRoomNames[int(of.rooms)], of.tight, of.sequences, ms[ms.size() / 2], ms.back(),
      planned > 0 ? efficiencies / planned : 0, planned > 0 ? worst_efficiency : 0, refused, mesh);
  std::fflush(stdout);
  return ms.back();
}

void measure_usual() {
  for (const int ranks : {8, 64, 512, 4096})
    for (const Kind kind : {Kind::continuous, Kind::classes})
      for (const bool links : {false, true}) measure({ranks, kind, links});
  for (const index_t sequences : {1, 16}) measure({4096, Kind::continuous, true, sequences});
  for (const bool links : {false, true})
    measure({65536, Kind::classes, links, 4, Rooms::unlimited, 0, 3});
}

void measure_memory(int ranks, int seeds) {
  double worst = 0;
  for (const Kind kind : {Kind::continuous, Kind::classes})
    for (const bool links : {false, true})
      for (const index_t sequences : {4, 16})
        for (const Rooms rooms : {Rooms::random, Rooms::against_speed, Rooms::few})
          for (const double tight : {0.7, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0})
            worst = std::max(worst, measure({ranks, kind, links, sequences, rooms, tight, seeds}));
  fmt::print("worst of all with memory, {} ranks: {:.1f} ms\n", ranks, worst);
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:>6} {:<10} {:<6} {:<17} {:>5} {:>5} {:>9} {:>9} {:>7} {:>7} {:>7}  {}\n", "ranks",
             "speeds", "", "memory", "tight", "seqs", "median ms", "worst ms", "eff.", "worst",
             "refused", "mesh of the last");
  if (argc > 1 && std::strcmp(argv[1], "--memory") == 0) {
    measure_memory(argc > 2 ? std::atoi(argv[2]) : 4096, argc > 3 ? std::atoi(argv[3]) : 3);
    return 0;
  }
  measure_usual();
}
