#include "tensor3d/packed_exchange.hpp"

#include "core/error.hpp"

namespace t3d {

template <class View, class Move>
void PackedExchange::for_each_piece(const Message<View>& message, const Tensor& memory,
                                    Move&& move) const {
  index_t at = 0;
  for (const View& piece : message.pieces) {
    const index_t count = piece.rows * piece.cols;
    move(memory.view().col_range(at, count).reshaped(piece.rows, piece.cols), piece);
    at += count;
  }
}

void PackedExchange::start() {
  std::vector<Exchange> messages;
  for (auto& [peer, message] : sends_) {
    if (message.count == 0) continue;
    message.memory = Tensor(device_, wire_, 1, message.count, kind_);
    for_each_piece(message, message.memory, [&](TensorView packed, ConstTensorView piece) {
      ops_.copy(queue_, piece, packed);
    });
    if (peer != group_.rank()) messages.push_back({peer, message.memory.view(), {}});
  }
  for (auto& [peer, message] : receives_) {
    if (message.count == 0 || peer == group_.rank()) continue;
    message.memory = Tensor(device_, wire_, 1, message.count, kind_);
    messages.push_back({peer, {}, message.memory.view()});
  }
  work_ = group_.exchange(std::move(messages));
}

void PackedExchange::finish() {
  work_.wait(queue_);
  for (auto& [peer, message] : receives_) {
    if (message.count == 0) continue;
    const bool stays = peer == group_.rank();
    T3D_CHECK(!stays || sends_[peer].count == message.count, "{} elements stay, {} are expected",
              sends_[peer].count, message.count);
    for_each_piece(message, stays ? sends_[peer].memory : message.memory,
                   [&](TensorView packed, TensorView piece) { ops_.copy(queue_, packed, piece); });
  }
  sends_.clear();
  receives_.clear();
}

}  // namespace t3d
