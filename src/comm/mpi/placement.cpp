#include "comm/placement.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <map>

#include "core/random.hpp"

namespace t3d {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<int> node_of_ranks(Communicator& world) {
  const std::uint64_t hash = stream_of(host_name());
  const std::array<std::int32_t, 2> own{static_cast<std::int32_t>(hash >> 32),
                                        static_cast<std::int32_t>(hash & 0xffffffffU)};
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<std::array<std::int32_t, 2>> all(ranks);
  const std::vector<index_t> counts(ranks, 2);
  world
      .all_gather({own.data(), DType::i32, 1, 2},
                  {all.data(), DType::i32, static_cast<index_t>(ranks), 2}, counts)
      .wait_host();
  std::map<std::array<std::int32_t, 2>, int> nodes;
  std::vector<int> result;
  for (const auto& host : all)
    result.push_back(nodes.try_emplace(host, static_cast<int>(nodes.size())).first->second);
  return result;
}

int cores_available() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
    return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&cores);
}

bool yields_when_idle() {
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) return false;
  int index = 0;
  int value = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (MPI_T_cvar_get_index("mpi_yield_when_idle", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value != 0;
}

}  // namespace t3d
