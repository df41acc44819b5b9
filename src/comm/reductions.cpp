// Operations that compute: reduce-scatter and all-reduce.
#include <cstring>
#include <numeric>

#include "comm/collectives.hpp"
#include "comm/cost.hpp"
#include "comm/reduce.hpp"
#include "comm/rounds.hpp"

namespace t3d {
namespace {

// Receive buffers of one operation: two chunks per peer within this, but no chunk below the least.
constexpr index_t kBufferBytes = index_t{8} << 20;
constexpr index_t kLeastChunk = index_t{16} << 10;
constexpr index_t kSlots = 2;

// The same on all ranks, as sender and receiver cut alike.
index_t reduction_chunk(int ranks) {
  index_t chunk = Lane::kChunkBytes;
  while (chunk > kLeastChunk && 2 * chunk * (ranks - 1) > kBufferBytes) chunk /= 2;
  return chunk;
}

const std::byte* at_byte(const void* data, index_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

class ReduceScatter final : public Operation {
 public:
  ReduceScatter(const Party& party, ReduceOp op, ConstTensorView whole, TensorView part,
                std::span<const index_t> counts)
      : op_(op),
        type_(whole.dtype),
        part_(part),
        rank_(party.rank),
        ranks_(party.size()),
        count_(counts[static_cast<std::size_t>(party.rank)]),
        chunk_(reduction_chunk(ranks_) / size_of(type_)),
        chunks_((count_ + chunk_ - 1) / chunk_),
        lanes_(party.engine.transport(), party.tag),
        scratch_(party.engine.scratch(), reduction_buffer_bytes(count_, ranks_, type_)) {
    std::vector<index_t> offsets(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
    own_ = at_byte(whole.data, offsets[static_cast<std::size_t>(rank_)] * size_of(type_));
    for (int distance = 1; distance < ranks_; ++distance) {
      const auto to = static_cast<std::size_t>((rank_ + distance) % ranks_);
      void* piece = const_cast<std::byte*>(at_byte(whole.data, offsets[to] * size_of(type_)));
      if (counts[to] > 0)
        lanes_.send_to(party.member(static_cast<int>(to)))
            .add(piece, counts[to] * size_of(type_), chunk_ * size_of(type_));
    }
    for (int from = 0; from < ranks_ && count_ > 0; ++from) {
      if (from == rank_) continue;
      Lane& lane = lanes_.receive_from(party.member(from));
      for (index_t chunk = 0; chunk < chunks_; ++chunk)
        lane.add(slot(chunk, from), elements_of(chunk) * size_of(type_));
    }
  }

  bool advance() override {
    const bool sent = lanes_.advance_sends();
    if (reduced_ < chunks_ && arrived()) {
      reduce_chunk();  // one per call: the caller may have something better to do
      arrived();       // its slots are free again
    }
    if (!sent || reduced_ < chunks_) return false;
    scratch_.done();
    return true;
  }
  [[nodiscard]] Traffic traffic() const override { return lanes_.traffic(); }
  void missing(std::set<int>& peers) const override { lanes_.missing(peers); }

 private:
  static constexpr index_t kSlots = 2;  // chunks that may be on their way from one peer

  [[nodiscard]] index_t elements_of(index_t chunk) const {
    return std::min(chunk_, count_ - chunk * chunk_);
  }
  [[nodiscard]] std::byte* slot(index_t chunk, int from) const {
    const index_t peer = from < rank_ ? from : from - 1;
    const index_t index = (chunk % kSlots) * (ranks_ - 1) + peer;
    return scratch_.data() + index * std::min(chunk_, count_) * size_of(type_);
  }
  // Keeps receives posted as far as slots are free; true when the next chunk is here from all.
  bool arrived() {
    bool here = true;
    for (Lane& lane : lanes_.receives()) {
      lane.advance(reduced_ + kSlots);
      here = here && lane.retired() > reduced_;
    }
    return here;
  }
  void reduce_chunk() {
    const index_t begin = reduced_ * chunk_;
    sources_.clear();
    for (int from = 0; from < ranks_; ++from)
      sources_.push_back(from == rank_ ? at_byte(own_, begin * size_of(type_))
                                       : slot(reduced_, from));
    void* to = static_cast<std::byte*>(part_.data) + begin * size_of(part_.dtype);
    reduce(op_, type_, sources_, part_.dtype, to, elements_of(reduced_));
    ++reduced_;
  }

  ReduceOp op_;
  DType type_;
  TensorView part_;
  int rank_;
  int ranks_;
  index_t count_;   // elements of the own part
  index_t chunk_;   // elements
  index_t chunks_;  // of the own part
  index_t reduced_ = 0;
  const std::byte* own_ = nullptr;
  std::vector<const void*> sources_;
  Lanes lanes_;
  Scratch scratch_;
};

class SmallAllReduce final : public Operation {
 public:
  SmallAllReduce(const Party& party, TensorView x, ReduceOp op)
      : x_(x),
        op_(op),
        lanes_(party.engine.transport(), party.tag),
        scratch_(party.engine.scratch(), (party.size() - 1) * x.bytes()) {
    std::byte* place = scratch_.data();
    for (int from = 0; from < party.size(); ++from) {
      sources_.push_back(from == party.rank ? static_cast<const void*>(x.data) : place);
      if (from == party.rank) continue;
      lanes_.receive_from(party.member(from)).add(place, x.bytes());
      place += x.bytes();
    }
    for (int distance = 1; distance < party.size(); ++distance)
      lanes_.send_to(party.member((party.rank + distance) % party.size())).add(x.data, x.bytes());
  }
  bool advance() override {
    if (!lanes_.advance()) return false;
    reduce(op_, x_.dtype, sources_, x_.dtype, x_.data, x_.count());
    scratch_.done();
    return true;
  }
  [[nodiscard]] Traffic traffic() const override { return lanes_.traffic(); }
  void missing(std::set<int>& peers) const override { lanes_.missing(peers); }

 private:
  TensorView x_;
  ReduceOp op_;
  std::vector<const void*> sources_;
  Lanes lanes_;
  Scratch scratch_;
};

class LargeAllReduce final : public Operation {
 public:
  LargeAllReduce(OperationPtr scatter, OperationPtr gather)
      : scatter_(std::move(scatter)), gather_(std::move(gather)) {}
  bool advance() override {
    // The gather overwrites what the scatter sends: not before all of it is out.
    if (!scattered_) scattered_ = scatter_->advance();
    return scattered_ && gather_->advance();
  }
  [[nodiscard]] Traffic traffic() const override {
    return scatter_->traffic() + gather_->traffic();
  }
  void missing(std::set<int>& peers) const override {
    (scattered_ ? gather_ : scatter_)->missing(peers);
  }

 private:
  OperationPtr scatter_, gather_;
  bool scattered_ = false;
};

}  // namespace

index_t reduction_buffer_bytes(index_t count, int ranks, DType dtype) {
  const index_t chunk = reduction_chunk(ranks) / size_of(dtype);
  const index_t slots = count > chunk ? kSlots : 1;  // a single chunk has no other after it
  return slots * (ranks - 1) * std::min(chunk, count) * size_of(dtype);
}

OperationPtr make_reduce_scatter(const Party& party, ReduceOp op, ConstTensorView whole,
                                 TensorView part, std::span<const index_t> counts) {
  return std::make_unique<ReduceScatter>(party, op, whole, part, counts);
}

OperationPtr make_all_reduce(const Party& party, int second_tag, TensorView x, ReduceOp op) {
  if (x.count() <= kSmallAllReduce) {
    if (party.size() > kFlatRanks) return make_tree_all_reduce(party, x, op);
    return std::make_unique<SmallAllReduce>(party, x, op);
  }
  const Partition cut = Partition::even("all_reduce", x.count(), party.size());
  const std::vector<index_t> counts = cut.sizes();
  const TensorView part = x.flat().col_range(cut.begin(party.rank), cut.size(party.rank));
  const Party second{party.engine, party.members, party.rank, second_tag};
  return std::make_unique<LargeAllReduce>(make_reduce_scatter(party, op, x, part, counts),
                                          make_all_gather(second, part, x, counts));
}

}  // namespace t3d
