// A world of threads: every rank runs the same body in one process.
#include <exception>
#include <mutex>
#include <thread>

#include "comm/group.hpp"
#include "comm/local/local_transport.hpp"

namespace t3d {

void run_local_ranks(int ranks, const std::function<void(Communicator& world)>& body) {
  T3D_CHECK(ranks >= 1, "{} local ranks", ranks);
  const auto hub = std::make_shared<LocalHub>(ranks);
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto run = [&](int rank) {
    std::string reason;
    try {
      const auto world = GroupCommunicator::make_world(std::make_unique<LocalTransport>(hub, rank));
      body(*world);
    } catch (...) {
      const std::lock_guard lock(mutex);
      reason = "an error";
      try {
        throw;
      } catch (const std::exception& error) {
        reason = error.what();
      } catch (...) {  // NOLINT(bugprone-empty-catch): the reason is all that is lost
      }
      if (first_error == nullptr) first_error = std::current_exception();
    }
    hub->leave(rank, reason);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  if (first_error != nullptr) std::rethrow_exception(first_error);
}

}  // namespace t3d
