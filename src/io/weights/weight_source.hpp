// Weights of a model that lie somewhere, read box by box by one process: from a folder of Hugging
// Face's, or from a checkpoint of ours.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/options.hpp"
#include "core/whole_tensor.hpp"

namespace t3d {

/// What of a source may differ from the model that wants it.
struct WeightNeeds {
  ModelConfig model;
  std::vector<WholeTensor> tensors;  // of the model (tensor3d/whole_tensors.hpp)
  bool grow_vocabulary = false;      // the source may have fewer tokens
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Numbers of box `box` of our tensor `name` (vectors [1, n]) as fp32 or fp64, to `out` with `ld`
  /// numbers from row to row. Rows of tokens that the source lacks are left as they are. Error(io).
  virtual void read(const std::string& name, const Box& box, DType to, void* out,
                    index_t ld) const = 0;
  /// Tokens of the source: rows of wte.weight.
  [[nodiscard]] virtual index_t vocabulary() const = 0;
};

/// config.json of `folder`. Error(no_input) when there is none, naming what the folder is instead
/// where that can be told (a checkpoint, pickled weights).
[[nodiscard]] ModelConfig read_hf_model(const std::string& folder);

/// Error(config) when sequences of `context` tokens reach beyond the sliding window of that model.
void check_hf_window(const std::string& folder, index_t context);

/// The safetensors of `folder` as the tensors of `needs.model`. Error(config), listing them, when
/// tensors are missing, left over or of other shapes; Error(no_input) when there are none;
/// Error(io) when a file is damaged.
[[nodiscard]] std::unique_ptr<WeightSource> open_hf_weights(const std::string& folder,
                                                            const WeightNeeds& needs);

/// A published checkpoint. Errors as above.
[[nodiscard]] std::unique_ptr<WeightSource> open_checkpoint_weights(const std::string& path,
                                                                    const WeightNeeds& needs);

/// The weights of `source` with their adapters added: W + factor B A. `parts`: all of the model
/// (tensor3d/whole_tensors.hpp).
[[nodiscard]] std::unique_ptr<WeightSource> merge_adapters(std::unique_ptr<WeightSource> source,
                                                           const std::vector<AdaptedPart>& parts);

/// Collective: local `read` on every rank, with the time limit of checkpoints for who waits. What
/// fails on one is thrown on all, as AgreedError.
void read_together(Communicator& world, const std::function<void()>& read);

}  // namespace t3d
