#include "comm/mpi/mpi_transport.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "device/core_limits.hpp"

namespace t3d {
namespace {

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  mpi_is_broken() = true;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw_error(ExitCode::peer_lost, "MPI failed in {}: {}", what, text.data());
}

/// Quotas that bind each rank of a node.
std::vector<std::vector<CoreLimit>> limits_of_node(MPI_Comm node, int ranks) {
  constexpr std::size_t kMost = 8;  // groups inside each other, from the outermost
  using Limits = std::array<CoreLimit, kMost>;
  const std::vector<CoreLimit> found = core_limits();
  Limits own{};
  std::copy_n(found.begin(), std::min(kMost, found.size()), own.begin());
  std::vector<Limits> all(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(own.data(), sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, node),
            "MPI_Allgather");
  std::vector<std::vector<CoreLimit>> limits;
  for (const Limits& of_rank : all)
    limits.emplace_back(of_rank.begin(), std::find(of_rank.begin(), of_rank.end(), CoreLimit{}));
  return limits;
}

}  // namespace

bool& mpi_is_broken() {
  static bool broken = false;
  return broken;
}

MpiTransport::MpiTransport() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  int* bound = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&bound), &found);
  if (found == 0 || *bound < (1 << kTagBits) - 1)
    throw_error(ExitCode::unavailable, "this MPI library has too few message tags ({})",
                found == 0 ? 0 : *bound);
  find_node();
}

void MpiTransport::find_node() {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  node_ = rank_;
  check_mpi(MPI_Bcast(&node_, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_size(node, &ranks_here_);
  // Ranks that are bound have few cores each, and together those of the node; likewise ranks in
  // groups with a quota each.
  cpu_set_t cores = affinity_mask();
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof(cores), MPI_BYTE, MPI_BOR, node),
            "MPI_Allreduce");
  cores_here_ = cores_of(cores, cores_together(limits_of_node(node, ranks_here_)));
  MPI_Comm_free(&node);
}

MpiTransport::~MpiTransport() {
  if (mpi_is_broken()) return;
  MPI_Comm_free(&comm_);
}

Transport::Request MpiTransport::free_slot() {
  ++in_flight_;
  if (!free_.empty()) {
    const Request request = free_.back();
    free_.pop_back();
    return request;
  }
  requests_.push_back(MPI_REQUEST_NULL);
  expected_.push_back(-1);
  indices_.push_back(0);
  statuses_.emplace_back();
  return static_cast<Request>(requests_.size()) - 1;
}

Transport::Request MpiTransport::send(int peer, int tag, const void* data, index_t bytes) {
  const Request request = free_slot();
  const auto slot = static_cast<std::size_t>(request);
  expected_[slot] = -1;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_[slot]),
            "MPI_Isend");
  return request;
}

Transport::Request MpiTransport::receive(int peer, int tag, void* data, index_t bytes) {
  const Request request = free_slot();
  const auto slot = static_cast<std::size_t>(request);
  expected_[slot] = static_cast<int>(bytes);
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &requests_[slot]),
            "MPI_Irecv");
  return request;
}

void MpiTransport::poll() {
  if (in_flight_ == 0) return;
  int done = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done,
                                indices_.data(), statuses_.data());
  if (code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
  for (int at = 0; at < done && done != MPI_UNDEFINED; ++at) {
    const MPI_Status& status = statuses_[static_cast<std::size_t>(at)];
    if (code == MPI_ERR_IN_STATUS) check_mpi(status.MPI_ERROR, "a message");
    const int expected =
        expected_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(at)])];
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    T3D_CHECK(expected < 0 || bytes == expected,
              "rank {} sent {} bytes instead of {}: its verbs differ", status.MPI_SOURCE, bytes,
              expected);
  }
}

bool MpiTransport::finished(Request request) {
  if (requests_[static_cast<std::size_t>(request)] != MPI_REQUEST_NULL) return false;
  free_.push_back(request);
  --in_flight_;
  return true;
}

void MpiTransport::cancel(Request request) noexcept {
  // The slot stays taken: the buffer may still be written, and MPI is only good for aborting now.
  mpi_is_broken() = true;
  MPI_Request& handle = requests_[static_cast<std::size_t>(request)];
  if (handle == MPI_REQUEST_NULL || expected_[static_cast<std::size_t>(request)] < 0) return;
  MPI_Cancel(&handle);
}

}  // namespace t3d
