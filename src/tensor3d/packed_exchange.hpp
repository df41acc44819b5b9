// PackedExchange: rectangles of local buffers travel to other ranks, all that goes to one rank in
// one message. Both ends list the pieces of a message in the same order; which ones they are, each
// computes for itself (route.hpp). Pieces that stay on the rank are copied without a message.
#pragma once
#include <map>
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

class PackedExchange {
 public:
  /// `wire`: number format of the messages. `kind`: what their memory counts as.
  PackedExchange(const Context& context, Communicator& group, DType wire, MemoryKind kind)
      : PackedExchange(context.device, context.ops, context.queue, group, wire, kind) {}
  PackedExchange(Device& device, Ops& ops, Queue& queue, Communicator& group, DType wire,
                 MemoryKind kind)
      : device_(device), ops_(ops), queue_(queue), group_(group), wire_(wire), kind_(kind) {}

  /// Pieces are packed by start() and written by finish(); several calls for one peer append.
  void send(int peer, ConstTensorView piece) { append(sends_[peer], piece); }
  void receive(int peer, TensorView piece) { append(receives_[peer], piece); }
  /// Every rank of the group calls it at once, also without pieces.
  void start();
  /// What is queued from now on comes after the messages.
  void settle() { work_.wait(queue_); }
  /// All pieces are where they belong; nothing is left.
  void finish();

 private:
  template <class View>
  struct Message {
    index_t count = 0;
    std::vector<View> pieces;
    Tensor memory;
  };
  template <class View>
  static void append(Message<View>& message, View piece) {
    if (piece.empty()) return;
    message.count += piece.rows * piece.cols;
    message.pieces.push_back(piece);
  }
  template <class View, class Move>
  void for_each_piece(const Message<View>& message, const Tensor& memory, Move&& move) const;

  Device& device_;
  Ops& ops_;
  Queue& queue_;
  Communicator& group_;
  DType wire_;
  MemoryKind kind_;
  std::map<int, Message<ConstTensorView>> sends_;
  std::map<int, Message<TensorView>> receives_;
  Work work_;
};

}  // namespace t3d
