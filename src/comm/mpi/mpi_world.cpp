#include "comm/mpi/mpi_world.hpp"

#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "comm/group.hpp"
#include "comm/mpi/mpi_transport.hpp"

namespace t3d {
namespace {

bool mpi_is_up() {
  int up = 0;
  int down = 0;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  return up != 0 && down == 0;
}

}  // namespace

bool launched_by_mpi() {
  constexpr std::array<const char*, 5> signs{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
                                             "PMI_FD", "MV2_COMM_WORLD_RANK"};
  for (const char* sign : signs)
    if (std::getenv(sign) != nullptr) return true;
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (std::getenv("SLURM_PROCID") != nullptr && tasks != nullptr && std::atoi(tasks) > 1)
    throw_error(ExitCode::unavailable,
                "srun started {} tasks without a way to meet; try srun --mpi=pmix (srun --mpi=list "
                "shows what there is) or mpirun",
                tasks);
  return false;
}

MpiSession::MpiSession(int& argc, char**& argv) : exceptions_(std::uncaught_exceptions()) {
  if (!launched_by_mpi()) return;
  // Explicit settings of the user win. Ranks may share cores: who waits must not spin. Copying in
  // and out of shared memory was two to four times as fast as the kernel's single copy
  // (bench/collectives).
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  int provided = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    throw_error(ExitCode::unavailable, "MPI does not start");
  active_ = true;
}

MpiSession::~MpiSession() {
  if (!active_ || mpi_is_broken() || std::uncaught_exceptions() > exceptions_) return;
  MPI_Finalize();
}

std::unique_ptr<Communicator> make_mpi_world() {
  if (!mpi_is_up()) return make_single_communicator();
  return GroupCommunicator::make_world(std::make_unique<MpiTransport>());
}

std::string mpi_library_version() {
  if (!mpi_is_up()) return {};
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.data();
}

void abort_world(int code) {
  std::fflush(nullptr);
  if (mpi_is_up()) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace t3d
