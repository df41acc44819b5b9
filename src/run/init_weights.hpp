// Weights that somebody else trained, as a run's first ones: what init.from names.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/weights/weight_source.hpp"
#include "run/tokenizer_check.hpp"

namespace t3d {

/// "hf:DIR", or a checkpoint, a folder of checkpoints, or a run folder.
struct InitSource {
  bool hf = false;
  std::string path;  // DIR, or the checkpoint itself
};
/// Collective: all get what rank 0 finds. AgreedError(no_input) where there is no checkpoint.
[[nodiscard]] InitSource find_init_source(Communicator& world, const std::string& from);

/// Longer contexts than this are a choice that the user has to make.
inline constexpr index_t kLongContext = 8192;

/// The source's model. model.context is 0 where the source allows more than kLongContext.
[[nodiscard]] ModelConfig model_of(const InitSource& source);

/// The tokenizer whose ids the source's rows mean; unknown where it has none.
[[nodiscard]] TokenizerClaim tokenizer_of(const InitSource& source);

/// What its files, or its checkpoint, say of begin and end of a text.
[[nodiscard]] SpecialIds special_ids_of(const InitSource& source, std::vector<std::string>& notes);

/// Error(config), with a line for each key, when `model` computes something else than the weights
/// of `source` were trained for. Local.
void check_same_computation(const InitSource& source, const ModelConfig& model);

/// Before there is a run folder: refuses what init.from names as the run would (AgreedError), so
/// that no folder is left behind. Where there are checkpoints already, or one was chosen, init.from
/// may not be needed, and is not looked at. Collective.
void check_first_weights(Communicator& world, const Config& config);

/// Whether a folder has a file with the name of a tokenizer's.
[[nodiscard]] bool holds_tokenizer(const std::string& folder);
/// Error(config) when one of the numbers (fp32 or fp64) is not finite.
void check_finite(const std::string& tensor, DType dtype, const void* numbers, index_t count);

[[nodiscard]] WeightNeeds needs_of(const ModelConfig& model, bool grow_vocabulary);

/// What becomes of the source's adapters in a run of `model`: words behind its path; empty = it has
/// none.
[[nodiscard]] std::string adapters_text(const InitSource& source, const ModelConfig& model);

/// `needs` loses the adapters that the source does not have: they are fresh.
[[nodiscard]] std::unique_ptr<WeightSource> open_weights(const InitSource& source,
                                                         WeightNeeds& needs);

/// Reads, on this rank, its boxes of the weights among `parts`; other parts stay. Errors: those of
/// weight_source.hpp.
void fill_weights(const InitSource& source, WeightNeeds needs, std::vector<TensorPart>& parts);

}  // namespace t3d
