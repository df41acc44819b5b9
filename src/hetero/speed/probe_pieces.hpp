// What the probe times: the operators of a training step on one rank, at its own shapes, grouped
// into pieces that a step repeats (a block's products, the head's, ...). Only computing: messages
// are measured by themselves. Internal to hetero/speed.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "hetero/cost/layer_traffic.hpp"
#include "hetero/speed/probe.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

/// Operators that are timed together, and how often a step does them.
struct Piece {
  double calls = 0;
  std::function<void()> run;  // queues them once; owns their buffers
};

/// One class of operators at one size.
struct PieceSet {
  std::vector<Piece> pieces;
  double work = 0;  // of a whole step at this size, as step_work() counts it
};

/// The plan at one place, and where its operators run.
class ProbeShape {
 public:
  /// `plan` must outlive it.
  ProbeShape(const ProbeMachine& machine, const Plan& plan, const Coord& coord);

  /// `scale` changes the number of tokens (whole: the size of matrices); 1 = as in the plan. What
  /// cannot be cut so finely gets the nearest size above 0, and `work` says which it was.
  [[nodiscard]] PieceSet pieces(WorkClass kind, double scale) const;
  [[nodiscard]] const StepWork& work() const { return work_; }
  /// How often a step repeats the pieces of a class, about.
  [[nodiscard]] double passes(WorkClass kind) const;

 private:
  /// The micro-batch with most here, in sequences, and how many such ones the step amounts to.
  struct Largest {
    index_t sequences = 1;
    index_t most = 0;
    double micros = 0;
  };
  [[nodiscard]] Largest largest(const std::function<index_t(const Rows&)>& size) const;
  [[nodiscard]] index_t attention_elements(const Rows& rows) const;

  [[nodiscard]] PieceSet matmul(double scale) const;
  [[nodiscard]] PieceSet attention(double scale) const;
  [[nodiscard]] PieceSet streamed(double scale) const;
  [[nodiscard]] PieceSet whole(double scale) const;

  [[nodiscard]] Piece block_products(const Rows& rows) const;
  [[nodiscard]] Piece head_products(const Rows& rows) const;
  [[nodiscard]] Piece block_streams(const Rows& rows) const;
  [[nodiscard]] Piece head_streams(const Rows& rows) const;
  [[nodiscard]] Piece embedding(const Rows& rows) const;
  [[nodiscard]] Piece update() const;
  [[nodiscard]] std::function<void()> optimizer(index_t count) const;

  /// Of a micro-batch of `scale` times the tokens.
  [[nodiscard]] Rows scaled_rows(double scale) const;
  /// Of the head, which goes through the rows in chunks.
  [[nodiscard]] index_t chunk_rows(const Rows& rows) const;
  /// Columns of the vocabulary that are measured, and how many times as many the rank has.
  [[nodiscard]] std::pair<index_t, double> vocab_slice() const;
  /// Work of the step: a part that grows with the tokens, and the update.
  [[nodiscard]] double scaled_work(WorkClass kind, double scale) const;
  [[nodiscard]] Tensor numbers(DType type, index_t rows, index_t cols) const;
  [[nodiscard]] Tensor scalar() const;  // fp64
  [[nodiscard]] Tensor token_ids(index_t count) const;

  ProbeMachine machine_;
  RankView rank_;
  ModelShape shape_;
  MeshShape mesh_;
  Largest slab_;       // by the rows of this rank's slab, in tokens
  Largest attending_;  // by attention_elements()
  int forwards_ = 1;   // passes of a block: twice where it is recomputed
  StepWork work_, update_work_;
};

}  // namespace t3d
