#include "train/optimizer/matrix_homes.hpp"

#include <utility>

#include "core/error.hpp"

namespace t3d {
namespace {

index_t count_of(const std::vector<Box>& boxes) {
  index_t sum = 0;
  for (const Box& box : boxes) sum += box.count();
  return sum;
}

// Calls move(piece of the flat range, the same box of the matrix).
template <class Move>
void for_each_box(const std::vector<Box>& boxes, TensorView flat, TensorView matrix, Move&& move) {
  index_t at = 0;
  for (const Box& box : boxes) {
    move(flat.col_range(at, box.count()).reshaped(box.rows, box.cols),
         matrix.row_range(box.row0, box.rows).col_range(box.col0, box.cols));
    at += box.count();
  }
}

// Numbers in host memory travel as pairs of 32-bit words.
TensorView words(std::vector<index_t>& numbers) {
  return {numbers.data(), DType::i32, 1, 2 * std::ssize(numbers)};
}

// Every member sends sent[x] to member x and gets what that one sent to it. `members`: world ranks.
std::vector<std::vector<index_t>> swap_lists(Communicator& world, const std::vector<int>& members,
                                             std::vector<std::vector<index_t>>& sent) {
  std::vector<std::vector<index_t>> lengths_out(members.size()), lengths_in(members.size());
  std::vector<std::vector<index_t>> received(members.size());
  const auto swap = [&](std::vector<std::vector<index_t>>& out,
                        std::vector<std::vector<index_t>>& in) {
    std::vector<Exchange> messages;
    for (std::size_t member = 0; member < members.size(); ++member)
      if (members[member] != world.rank())
        messages.push_back({members[member], words(out[member]), words(in[member])});
    world.exchange(std::move(messages)).wait_host();
  };
  for (std::size_t member = 0; member < members.size(); ++member) {
    lengths_out[member] = {std::ssize(sent[member])};
    lengths_in[member] = {0};
  }
  swap(lengths_out, lengths_in);
  for (std::size_t member = 0; member < members.size(); ++member)
    received[member].resize(static_cast<std::size_t>(lengths_in[member].front()));
  swap(sent, received);
  return received;
}

}  // namespace

MatrixHomes::MatrixHomes(const Context& context, const std::vector<ParamBucket*>& buckets,
                         const std::vector<Matrix>& matrices)
    : context_(context) {
  std::vector<double> costs;
  for (const Matrix& matrix : matrices) {
    const ParamBucket& bucket = *buckets[matrix.bucket];
    const ParamEntry& entry = bucket.entries()[matrix.entry];
    const auto [first, last] = bucket.shard_range(entry);
    Guest& guest =
        guests_.emplace_back(Guest{matrix.bucket, entry.rows, entry.cols, first, last - first, {}});
    for (const BlockBox& piece : bucket.shard_boxes(entry)) guest.boxes.push_back(piece.box);
    costs.push_back(matrix.cost);
  }
  const std::vector<double> speeds(static_cast<std::size_t>(context.mesh.cuboid().size()), 1.0);
  plan_ = plan_homes(costs, speeds);
  meet_peers();
}

index_t MatrixHomes::own_guest(index_t round) const {
  return plan_.guest(context_.mesh.cuboid().rank(), round);
}

// Elements of a matrix that lie on other ranks.
index_t MatrixHomes::elsewhere(index_t number) const {
  return guest(number).rows * guest(number).cols - guest(number).count;
}

// Homes learn the boxes of their guests: every rank sends each home, for each of its matrices in
// the order of rounds, the number of boxes and the boxes.
void MatrixHomes::meet_peers() {
  const Communicator& cuboid = context_.mesh.cuboid();
  std::vector<std::vector<index_t>> sent(static_cast<std::size_t>(cuboid.size()));
  for (std::size_t home = 0; home < sent.size(); ++home)
    for (const index_t number : plan_.visits[home]) {
      sent[home].push_back(std::ssize(guest(number).boxes));
      for (const Box& box : guest(number).boxes)
        sent[home].insert(sent[home].end(), {box.row0, box.col0, box.rows, box.cols});
    }
  const std::vector<int> members =
      context_.mesh.shape().group(context_.mesh.world().rank(), {Axis::i, Axis::j, Axis::k});
  const std::vector<std::vector<index_t>> received = swap_lists(context_.control, members, sent);

  const auto own = static_cast<std::size_t>(cuboid.rank());
  peers_.resize(plan_.visits[own].size());
  for (int rank = 0; rank < cuboid.size(); ++rank) {
    auto next = received[static_cast<std::size_t>(rank)].begin();
    if (next == received[static_cast<std::size_t>(rank)].end()) continue;
    for (std::vector<Peer>& peers : peers_) {
      Peer peer{rank, 0, std::vector<Box>(static_cast<std::size_t>(*next++))};
      for (Box& box : peer.boxes) {
        box = {next[0], next[1], next[2], next[3]};
        next += 4;
      }
      peer.count = count_of(peer.boxes);
      if (peer.count > 0) peers.push_back(std::move(peer));
    }
  }
  for (std::size_t round = 0; round < peers_.size(); ++round) {
    index_t missing = elsewhere(plan_.visits[own][round]);
    for (const Peer& peer : peers_[round]) missing -= peer.count;
    // In a dry run nobody answers: the bytes of the others count as one neighbour's.
    const bool dry = missing > 0 && peers_[round].empty();
    if (dry) peers_[round].push_back({(cuboid.rank() + 1) % cuboid.size(), missing, {}});
    T3D_CHECK(dry || missing == 0, "{} elements of a matrix are nobody's", missing);
  }
}

std::vector<Exchange> MatrixHomes::messages(const Round& round, bool outward,
                                            const std::vector<TensorView>& shares) const {
  const Communicator& cuboid = context_.mesh.cuboid();
  std::vector<Exchange> result;
  const auto add = [&](int peer, TensorView part, bool sends) {
    if (sends)
      result.push_back({peer, part, {}});
    else
      result.push_back({peer, {}, part});
  };
  for (int home = 0; home < cuboid.size(); ++home) {
    const index_t number = plan_.guest(home, round.number);
    if (number == HomePlan::kNobody || home == cuboid.rank() || guest(number).count == 0) continue;
    const Guest& away = guest(number);
    add(home, shares[away.bucket].col_range(away.first, away.count), outward);
  }
  if (own_guest(round.number) == HomePlan::kNobody) return result;
  index_t at = 0;
  for (const Peer& peer : peers_[static_cast<std::size_t>(round.number)]) {
    add(peer.rank, round.staging.view().col_range(at, peer.count), !outward);
    at += peer.count;
  }
  return result;
}

MatrixHomes::Round MatrixHomes::start(index_t number, const std::vector<TensorView>& from) const {
  Round round{number, {}, {}};
  const index_t own = own_guest(number);
  if (own != HomePlan::kNobody)
    round.staging = context_.make(context_.accumulator(), 1, elsewhere(own), MemoryKind::workspace);
  round.arriving = context_.mesh.cuboid().exchange(messages(round, true, from));
  return round;
}

void MatrixHomes::transform_guest(const Round& round, const std::vector<TensorView>& from,
                                  const std::vector<TensorView>& to,
                                  const std::function<void(TensorView)>& transform) const {
  const index_t own = own_guest(round.number);
  if (own == HomePlan::kNobody) return;
  const Guest& host = guest(own);
  const Tensor matrix =
      context_.make(context_.accumulator(), host.rows, host.cols, MemoryKind::workspace);
  const auto lay = [&](TensorView piece, TensorView box) {
    context_.ops.copy(context_.queue, piece, box);
  };
  const auto lift = [&](TensorView piece, TensorView box) {
    context_.ops.copy(context_.queue, box, piece);
  };
  const auto for_each_part = [&](const std::vector<TensorView>& shares, auto&& move) {
    for_each_box(host.boxes, shares[host.bucket].col_range(host.first, host.count), matrix, move);
    index_t at = 0;
    for (const Peer& peer : peers_[static_cast<std::size_t>(round.number)]) {
      for_each_box(peer.boxes, round.staging.view().col_range(at, peer.count), matrix, move);
      at += peer.count;
    }
  };
  for_each_part(from, lay);
  transform(matrix);
  for_each_part(to, lift);
}

void MatrixHomes::visit(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
                        const std::function<void(TensorView)>& transform) {
  const index_t rounds = plan_.rounds();
  Round next;
  if (rounds > 0) next = start(0, from);
  for (index_t number = 0; number < rounds; ++number) {
    const bool last = number + 1 == rounds;
    Round round = std::exchange(next, last ? Round{} : start(number + 1, from));
    {
      const PhaseClock::Scope scope(context_.clock, "gather matrices");
      round.arriving.wait(context_.queue);
    }
    transform_guest(round, from, to, transform);
    const PhaseClock::Scope scope(context_.clock, "scatter matrices");
    context_.mesh.cuboid().exchange(messages(round, false, to)).wait(context_.queue);
  }
}

void MatrixHomes::predict(Ledger& ledger) const {
  const Communicator& cuboid = context_.mesh.cuboid();
  index_t elements = 0;
  for (std::size_t at = 0; at < guests_.size(); ++at)
    elements +=
        plan_.home[at] == cuboid.rank() ? elsewhere(static_cast<index_t>(at)) : guests_[at].count;
  ledger.count(Verb::exchange, cuboid.axis(), elements * size_of(context_.accumulator()));
}

}  // namespace t3d
