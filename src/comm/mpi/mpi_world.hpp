// MPI without MPI's types: the session, the world, and the way out. A program that was not started
// by mpirun or srun never touches MPI and gets a world of one rank.
#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace t3d {

/// True when a launcher (mpirun, srun with PMIx or PMI2) started this process. Throws
/// ExitCode::unavailable when Slurm started several tasks without giving them a way to meet.
[[nodiscard]] bool launched_by_mpi();

/// MPI from construction to destruction. When it goes away by an exception, or after a peer was
/// lost, MPI is left as it is: finalizing would wait for the lost peer.
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  bool active_ = false;
  int exceptions_ = 0;
};

/// All ranks. Needs a live MpiSession and must go before it.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_world();

/// "Open MPI v4.1.4, ..."; empty in a program that no launcher has started.
[[nodiscard]] std::string mpi_library_version();

/// Ends all ranks at once with exit status `code`.
[[noreturn]] void abort_world(int code);

}  // namespace t3d
