#include "app/commands/memory_room.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/agree.hpp"
#include "device/host_limits.hpp"
#include "io/log/step_record.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string text_of(index_t bytes) { return short_bytes(static_cast<double>(bytes)); }

/// The control group that limits this process's memory, with its host.
std::string memory_group() {
  std::string groups;
  try {
    groups = read_text_file("/proc/self/cgroup");
  } catch (const Error&) {  // no such system: the host alone counts
  }
  const std::string first = group_path(groups, "memory");
  return host_name() + ":" + (first.empty() ? group_path(groups, "") : first);
}

MemoryRoom host_room(Communicator& world) {
  const std::string own = memory_group();
  const std::vector<std::string> groups = all_gather_texts(world, own);
  const auto sharers = static_cast<index_t>(std::count(groups.begin(), groups.end(), own));
  const HostMemory memory = host_memory();
  MemoryRoom room;
  room.bytes = memory.free / sharers;
  room.where =
      fmt::format("{} has {} free of {}{}", host_name(), text_of(memory.free),
                  text_of(memory.total), sharers > 1 ? fmt::format(", for {} ranks", sharers) : "");
  return room;
}

}  // namespace

MemoryRoom memory_room(Communicator& world, const Config& config, const Device& device,
                       int gpu_sharers) {
  MemoryRoom room = host_room(world);  // collective, whether it counts here or not
  const Device::Capacity gpu = gpu_sharers > 0 ? device.capacity() : Device::Capacity{};
  if (gpu.total > 0) {
    room = {
        gpu.free / gpu_sharers, true,
        fmt::format("{} has {} free of {}{}", device.name(), text_of(gpu.free), text_of(gpu.total),
                    gpu_sharers > 1 ? fmt::format(", for {} ranks", gpu_sharers) : "")};
  }
  const std::vector<double>& emulated = config.emulate.memory_mib;
  if (!emulated.empty()) {
    const double mib = emulated[static_cast<std::size_t>(world.rank())];
    room = {static_cast<index_t>(mib * 1048576), true,
            fmt::format("emulate.memory_mib gives it {} MiB", mib)};
  }
  return room;
}

std::vector<index_t> gather_rooms(Communicator& world, const MemoryRoom& room) {
  // fp64 holds byte counts exactly up to 2^53.
  const std::vector<double> all = all_gather_numbers(world, static_cast<double>(room.bytes));
  return {all.begin(), all.end()};
}

std::string memory_shortage(const Coord& coord, const MemoryCost& memory, const MemoryRoom& room,
                            bool on_gpu) {
  const index_t needed = needed_bytes(memory, on_gpu);
  if (room.where.empty() || needed <= room.bytes) return {};
  std::string parts;
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    parts += fmt::format("{}{} {}", kind == 0 ? "" : " + ", name_of(static_cast<MemoryKind>(kind)),
                         text_of(memory.by_kind[static_cast<std::size_t>(kind)]));
  return fmt::format(
      "the rank at d={} i={} j={} k={} needs {} ({}{}) and {}; a smaller batch.micro, "
      "batch.recompute = \"block\" or more ranks would help",
      coord.d, coord.i, coord.j, coord.k, text_of(needed), parts,
      on_gpu ? "" : " + messages " + text_of(memory.messages), room.where);
}

}  // namespace t3d
