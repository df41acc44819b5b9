// Messages over MPI point-to-point. All requests sit in one array, so that one call advances
// everything that is in flight. Included by comm/mpi/*.cpp only.
#pragma once
#include <mpi.h>

#include <vector>

#include "comm/transport.hpp"

namespace t3d {

class MpiTransport final : public Transport {
 public:
  MpiTransport();
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int node() const override { return node_; }
  [[nodiscard]] int ranks_here() const override { return ranks_here_; }
  [[nodiscard]] int cores_here() const override { return cores_here_; }
  [[nodiscard]] Request send(int peer, int tag, const void* data, index_t bytes) override;
  [[nodiscard]] Request receive(int peer, int tag, void* data, index_t bytes) override;
  void poll() override;
  [[nodiscard]] bool finished(Request request) override;
  void cancel(Request request) noexcept override;

 private:
  void find_node();
  Request free_slot();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int ranks_here_ = 1, cores_here_ = 1;
  int node_ = 0;                       // its lowest rank
  std::vector<MPI_Request> requests_;  // MPI_REQUEST_NULL: finished or free
  std::vector<int> expected_;          // bytes of a receive, -1 for a send
  std::vector<Request> free_;
  int in_flight_ = 0;
  std::vector<int> indices_;  // results of a poll
  std::vector<MPI_Status> statuses_;
};

/// True once a peer was lost or an operation was given up: MPI must not be finalized.
[[nodiscard]] bool& mpi_is_broken();

}  // namespace t3d
