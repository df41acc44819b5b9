// The input meets the ranks: does the mesh fit, and which shape when the input leaves it open.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "config/config_check.hpp"
#include "core/error.hpp"
#include "core/slowdown.hpp"

namespace t3d {
namespace {

using Shape = std::array<index_t, 3>;

std::string text_of(const Shape& shape) {
  return fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2]);
}

/// In ascending order.
std::vector<index_t> divisors(index_t number) {
  std::vector<index_t> low, high;
  for (index_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d * d != number) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

Where place_of(const Origins& origins, const std::string& key) {
  const auto found = origins.find(key);
  return found == origins.end() ? Where{key, 0, 0} : found->second;
}

constexpr index_t kLimit = index_t{1} << 40;

/// factor * p * q * r, or one more than kLimit when it is larger (no overflow).
index_t product_of(index_t factor, const Shape& cuboid) {
  index_t product = factor;
  for (const index_t extent : cuboid) {
    if (product > kLimit / extent) return kLimit + 1;
    product *= extent;
  }
  return product;
}

index_t ranks_needed(const MeshConfig& mesh) {
  if (mesh.cuboids.empty()) return product_of(mesh.replicas, mesh.cuboid);
  index_t sum = 0;
  for (std::size_t at = 0; at + 3 <= mesh.cuboids.size(); at += 3)
    sum = std::min(kLimit + 1, sum + product_of(1, {mesh.cuboids[at], mesh.cuboids[at + 1],
                                                    mesh.cuboids[at + 2]}));
  return sum;
}

std::string needed_text(index_t needed) {
  return needed > kLimit ? "far too many" : std::to_string(needed);
}

/// "1 rank", "2 ranks".
std::string count_text(index_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string there_text(index_t ranks) {
  return fmt::format("there {} {}", ranks == 1 ? "is" : "are", ranks);
}

/// "start 8 ranks, or ", where the number is one.
std::string start_text(index_t needed) {
  return needed > kLimit ? "" : fmt::format("start {}, or ", count_text(needed, "rank"));
}

/// A shape of the same kind that does fit, for the hint: keep the replicas if they divide.
std::string nearby_text(const Config& config, index_t ranks) {
  const index_t replicas = ranks % config.mesh.replicas == 0 ? config.mesh.replicas : 1;
  return fmt::format("replicas = {} with cuboid = {} fits {}", replicas,
                     text_of(choose_cuboid(config, ranks / replicas)), count_text(ranks, "rank"));
}

std::optional<Fault> shape_fault(const Config& config, index_t ranks, const Origins& origins) {
  const MeshConfig& mesh = config.mesh;
  if (!mesh.cuboids.empty()) {
    const index_t needed = ranks_needed(mesh);
    if (needed == ranks) return std::nullopt;
    return Fault{
        place_of(origins, "mesh.cuboids"),
        fmt::format("mesh.cuboids need {} ranks, and {}", needed_text(needed), there_text(ranks)),
        start_text(needed) + nearby_text(config, ranks) + ", all replicas alike"};
  }
  if (mesh.cuboid_auto) {
    if (ranks >= mesh.replicas) return std::nullopt;  // those that are left over are idle
    return Fault{place_of(origins, "mesh.replicas"),
                 fmt::format("mesh.replicas = {} needs as many ranks, and {}", mesh.replicas,
                             there_text(ranks)),
                 fmt::format("{}write at most {}, or \"auto\", which follows the ranks",
                             start_text(mesh.replicas), ranks)};
  }
  const index_t needed = ranks_needed(mesh);
  if (needed == ranks) return std::nullopt;
  return Fault{place_of(origins, "mesh.cuboid"),
               fmt::format("mesh: {} of {} x {} x {} need{} {} ranks, and {}",
                           count_text(mesh.replicas, "replica"), mesh.cuboid[0], mesh.cuboid[1],
                           mesh.cuboid[2], mesh.replicas == 1 ? "s" : "", needed_text(needed),
                           there_text(ranks)),
               start_text(needed) + nearby_text(config, ranks) +
                   ", or write mesh.cuboid = \"auto\", which follows the ranks"};
}

/// Of ranks that are left over, mesh.place says by leaving them out which ones are idle.
std::optional<Fault> place_fault(const MeshConfig& mesh, index_t ranks, const Origins& origins) {
  if (mesh.place.empty()) return std::nullopt;
  const bool open = mesh.cuboid_auto && mesh.cuboids.empty();
  const index_t needed = open ? ranks / mesh.replicas * mesh.replicas : ranks;
  std::vector<int> sorted = mesh.place;
  std::sort(sorted.begin(), sorted.end());
  const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (std::ssize(sorted) == needed && once && sorted.front() >= 0 && sorted.back() < ranks)
    return std::nullopt;
  if (needed == ranks)
    return Fault{place_of(origins, "mesh.place"), "mesh.place does not name every rank once",
                 fmt::format("write each of 0 to {} exactly once, or leave it out", ranks - 1)};
  return Fault{
      place_of(origins, "mesh.place"),
      fmt::format("mesh.place does not name {} ranks once", needed),
      fmt::format("write {} different ones of 0 to {}; the others are idle", needed, ranks - 1)};
}

std::optional<Fault> emulation_fault(const EmulateConfig& emulate, index_t ranks,
                                     const Origins& origins) {
  if (!emulate.memory_mib.empty() && std::ssize(emulate.memory_mib) != ranks)
    return Fault{
        place_of(origins, "emulate.memory_mib"),
        fmt::format("emulate.memory_mib has {} numbers, and there {} {}", emulate.memory_mib.size(),
                    ranks == 1 ? "is" : "are", count_text(ranks, "rank")),
        "one for each rank"};
  try {
    (void)SlowdownSchedule(emulate.slowdown, emulate.schedule, static_cast<int>(ranks));
  } catch (const Error& error) {
    const bool schedule = std::string_view(error.what()).starts_with("emulate.schedule");
    return Fault{place_of(origins, schedule ? "emulate.schedule" : "emulate.slowdown"),
                 error.what(), schedule ? "" : "one factor for each rank, 1 = as fast as it is"};
  }
  return std::nullopt;
}

std::optional<Fault> speeds_fault(const HeteroConfig& hetero, const Origins& origins) {
  if (hetero.file.empty() || hetero.speeds == SpeedSource::file ||
      !origins.contains("hetero.speeds"))
    return std::nullopt;
  return Fault{place_of(origins, "hetero.file"),
               fmt::format("hetero.file is given, and hetero.speeds is \"{}\"", hetero.speeds),
               "speeds = \"file\", or leave file out"};
}

}  // namespace

Shape choose_cuboid(const Config& config, index_t ranks) {
  const index_t share = (config.batch.sequences + config.mesh.replicas - 1) / config.mesh.replicas;
  const index_t sequences = config.batch.micro > 0 ? config.batch.micro : share;
  const auto hidden = static_cast<double>(config.model.hidden);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(config.model.context);

  using Rank = std::tuple<bool, double, index_t, index_t>;  // leaves parts empty, V, r, q
  std::optional<std::pair<Rank, Shape>> best;
  for (const index_t p : divisors(ranks)) {
    for (const index_t q : divisors(ranks / p)) {
      const index_t r = ranks / p / q;
      const double volume = 12 * hidden * hidden * static_cast<double>(p - 1) +
                            4 * tokens * hidden * static_cast<double>(q - 1) +
                            12 * tokens * hidden * static_cast<double>(r - 1);
      const bool empty_parts = p > sequences || q > config.model.kv_heads;
      const std::pair<Rank, Shape> candidate{{empty_parts, volume, r, q}, {p, q, r}};
      if (!best || candidate.first < best->first) best = candidate;
    }
  }
  T3D_CHECK(best.has_value(), "no shape for {} ranks", ranks);
  return best->second;
}

void check_against_ranks(Config& config, int ranks, const Origins& origins) {
  std::vector<Fault> faults;
  if (auto fault = shape_fault(config, ranks, origins)) faults.push_back(std::move(*fault));
  if (faults.empty())
    if (auto fault = place_fault(config.mesh, ranks, origins)) faults.push_back(std::move(*fault));
  if (auto fault = emulation_fault(config.emulate, ranks, origins))
    faults.push_back(std::move(*fault));
  if (auto fault = speeds_fault(config.hetero, origins)) faults.push_back(std::move(*fault));
  if (!faults.empty()) throw ConfigErrors(std::move(faults));
  if (config.mesh.cuboid_auto && config.mesh.cuboids.empty()) {
    config.mesh.cuboid = choose_cuboid(config, ranks / config.mesh.replicas);
  }
}

}  // namespace t3d
