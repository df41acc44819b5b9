#include "run/memory_room.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/agree.hpp"
#include "device/host_limits.hpp"
#include "record/log/step_record.hpp"
#include "run/resident.hpp"
#include "run/setup.hpp"

namespace t3d {
namespace {

std::string text_of(index_t bytes) { return short_bytes(static_cast<double>(bytes)); }

std::string tables_text(index_t bytes) {
  return bytes > 0 ? " + tables of other ranks' shards " + text_of(bytes) : "";
}

std::string for_ranks(std::size_t ranks) {
  return ranks > 1 ? fmt::format(", for {} ranks", ranks) : "";
}

/// What all ranks' processes have and take beside tensors and messages, and where.
class HostUse {
 public:
  HostUse(Communicator& world, const Config& config, const Plan& plan) {
    const ResidentMemory now = resident_memory();
    std::string names;
    for (const MemoryLimit& limit : memory_limits()) names += name_of(limit) + "\n";
    names_ = all_gather_texts(world, names);
    const index_t file = config.checkpoint.ranks_per_file;
    const int rank = world.rank();
    const auto on_host = [here = name_of({}) + "\n"](const std::string& other) {
      return other.starts_with(here);
    };
    const auto of_host = std::find_if(names_.begin(), names_.end(), on_host);
    const bool writes = file > 0 ? rank % file == 0 : of_host == names_.begin() + rank;
    const index_t of_file = file > 0 ? file : std::count_if(names_.begin(), names_.end(), on_host);
    const index_t to_come = std::max<index_t>(0, program_bytes(world.size()).all() - now.all) +
                            checkpoint_bound(plan, writes, of_file);
    kept_ = all_gather_numbers(world, static_cast<double>(now.kept));
    to_come_ = all_gather_numbers(world, static_cast<double>(to_come));
  }
  /// Everywhere the same for the same host or group.
  [[nodiscard]] static std::string name_of(const MemoryLimit& limit) {
    return host_name() + ":" + limit.group;
  }
  /// Under this limit of the calling rank.
  [[nodiscard]] std::vector<int> ranks(const MemoryLimit& limit) const {
    std::vector<int> all;
    for (std::size_t rank = 0; rank < names_.size(); ++rank)
      if (("\n" + names_[rank]).find("\n" + name_of(limit) + "\n") != std::string::npos)
        all.push_back(static_cast<int>(rank));
    return all;
  }
  [[nodiscard]] index_t kept(const std::vector<int>& ranks) const { return sum(kept_, ranks); }
  [[nodiscard]] index_t to_come(const std::vector<int>& ranks) const {
    return sum(to_come_, ranks);
  }

 private:
  static index_t sum(const std::vector<double>& numbers, const std::vector<int>& ranks) {
    double all = 0;
    for (const int rank : ranks) all += numbers[static_cast<std::size_t>(rank)];
    return static_cast<index_t>(all);
  }
  std::vector<std::string> names_;
  std::vector<double> kept_, to_come_;
};

/// A rank has at least a byte: 0 would say that nobody knows.
index_t part_of(index_t bytes, const std::vector<int>& ranks) {
  return std::max<index_t>(1, bytes / std::ssize(ranks));
}

MemoryRoom host_room(const HostUse& use) {
  MemoryRoom room;
  const auto limit_to = [](index_t& bytes, index_t to) {
    bytes = bytes > 0 ? std::min(bytes, to) : to;
  };
  for (const MemoryLimit& limit : memory_limits()) {
    MemoryBound bound;
    bound.ranks = use.ranks(limit);
    const index_t to_come = use.to_come(bound.ranks), others = use.kept(bound.ranks) + to_come;
    bound.bytes = limit.total - others;
    bound.where =
        fmt::format("{}{} has {} in all, {} of them for program, libraries and checkpoint{}",
                    limit.group.empty() ? "" : "control group " + limit.group + " of ", host_name(),
                    text_of(limit.total), text_of(others), for_ranks(bound.ranks.size()));
    limit_to(room.bytes, part_of(limit.free - to_come, bound.ranks));
    limit_to(room.most, part_of(bound.bytes, bound.ranks));
    room.bounds.push_back(std::move(bound));
  }
  return room;
}

MemoryRoom room_of(index_t bytes, int rank, std::string where) {
  bytes = std::max<index_t>(1, bytes);
  return {bytes, bytes, {{bytes, {rank}, std::move(where)}}};
}

}  // namespace

MemoryRoom memory_room(Communicator& world, const Config& config, const Plan& plan,
                       const Device& device, int gpu_sharers) {
  const HostUse use(world, config, plan);  // collective, whether it counts here or not
  const std::vector<double>& emulated = config.emulate.memory_mib;
  if (!emulated.empty()) {
    const double mib = emulated[static_cast<std::size_t>(world.rank())];
    return room_of(static_cast<index_t>(mib * 1048576), world.rank(),
                   fmt::format("emulate.memory_mib gives it {} MiB", mib));
  }
  const Device::Capacity gpu = gpu_sharers > 0 ? device.capacity() : Device::Capacity{};
  if (gpu.total == 0) return host_room(use);
  return room_of(gpu.free / gpu_sharers, world.rank(),
                 fmt::format("{} has {} free of {}{}", device.name(), text_of(gpu.free),
                             text_of(gpu.total), for_ranks(static_cast<std::size_t>(gpu_sharers))));
}

std::vector<index_t> gather_rooms(Communicator& world, index_t room) {
  // fp64 holds byte counts exactly up to 2^53.
  const std::vector<double> all = all_gather_numbers(world, static_cast<double>(room));
  return {all.begin(), all.end()};
}

void check_memory(Communicator& world, const Plan& plan, const MemoryRoom& room, bool on_gpu) {
  const auto rank = plan.active_rank(world.rank());
  const Coord coord = rank ? plan.mesh().coord_of(*rank) : Coord{};
  const MemoryCost cost = rank ? memory_cost(plan, coord) : MemoryCost{};
  // A GPU's rank takes none of the memory that others share with it.
  const bool shares = !on_gpu && room.bounds.size() > 0;
  const std::vector<index_t> needed = gather_rooms(world, shares ? needed_bytes(cost, false) : 0);
  all_or_none(world, [&] {
    const std::string shortage = rank ? memory_shortage(coord, cost, room, needed, on_gpu) : "";
    if (!shortage.empty())
      throw_error(ExitCode::unavailable, "too little memory on rank {}: {}", world.rank(),
                  shortage);
  });
}

std::string snapshot_shortage(Communicator& world, const Plan& plan,
                              const std::vector<TensorPart>& parts, bool on_gpu,
                              const MemoryRoom& room) {
  const index_t bytes = bytes_of(parts);
  std::string shortage;
  const auto rank = plan.active_rank(world.rank());
  if (bytes > 0 && rank && !on_gpu && room.bytes > 0) {
    const index_t plans = needed_bytes(memory_cost(plan, plan.mesh().coord_of(*rank)), false);
    if (plans + bytes > room.bytes)
      shortage = fmt::format(
          "a snapshot of {} does not fit beside the {} of the plan into the {} "
          "that rank {} has",
          text_of(bytes), text_of(plans), text_of(room.bytes), world.rank());
  }
  for (const std::string& text : all_gather_texts(world, shortage))
    if (!text.empty()) return text;
  return {};
}

std::string memory_shortage(const Coord& coord, const MemoryCost& memory, const MemoryRoom& room,
                            std::span<const index_t> needed, bool on_gpu) {
  const index_t own = needed_bytes(memory, on_gpu);
  for (const MemoryBound& bound : room.bounds) {
    index_t all = own;
    if (bound.ranks.size() > 1) {
      all = 0;
      for (const int rank : bound.ranks) all += needed[static_cast<std::size_t>(rank)];
    }
    if (all <= bound.bytes) continue;
    std::string parts;
    for (int kind = 0; kind < kMemoryKinds; ++kind)
      parts +=
          fmt::format("{}{} {}", kind == 0 ? "" : " + ", name_of(static_cast<MemoryKind>(kind)),
                      text_of(memory.by_kind[static_cast<std::size_t>(kind)]));
    return fmt::format(
        "the rank at d={} i={} j={} k={} needs {} ({}{}){}, and {}; a smaller batch.micro, "
        "batch.recompute = \"block\" or more ranks would help",
        coord.d, coord.i, coord.j, coord.k, text_of(own), parts,
        on_gpu ? "" : " + messages " + text_of(memory.messages) + tables_text(memory.tables),
        bound.ranks.size() > 1
            ? fmt::format(", the {} ranks there {}", bound.ranks.size(), text_of(all))
            : "",
        bound.where);
  }
  return {};
}

}  // namespace t3d
