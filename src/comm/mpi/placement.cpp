#include "comm/placement.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "comm/agree.hpp"
#include "comm/group.hpp"

namespace t3d {

namespace {

Transport& transport_of(Communicator& world) {
  auto* group = dynamic_cast<GroupCommunicator*>(&world);
  T3D_CHECK(group != nullptr, "nodes are asked of a communicator that moves host memory");
  return group->engine().transport();
}

}  // namespace

std::vector<int> node_of_ranks(Communicator& world) {
  std::map<double, int> nodes;
  std::vector<int> result;
  for (const double node : all_gather_numbers(world, transport_of(world).node()))
    result.push_back(nodes.try_emplace(node, static_cast<int>(nodes.size())).first->second);
  return result;
}

int cores_of_rank(Communicator& world) {
  const Transport& transport = transport_of(world);
  // A rank that is bound to fewer has these.
  return std::max(1, std::min(transport.cores_here() / transport.ranks_here(), cores_available()));
}

std::vector<bool> crowded_ranks(Communicator& world) {
  const Transport& transport = transport_of(world);
  const std::vector<double> all =
      all_gather_numbers(world, transport.ranks_here() > transport.cores_here() ? 1 : 0);
  return {all.begin(), all.end()};
}

bool yields_when_idle() {
  // The environment wins over Open MPI's files. Its tool interface takes 0.2 s to answer.
  const char* const said = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  if (said != nullptr && std::string_view(said) == "1") return true;
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
