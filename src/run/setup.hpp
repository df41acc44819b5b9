// The first minutes of a job: input, ranks, data and model made to agree with each other, on all
// ranks, with one clear answer when they do not.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "config/config_load.hpp"
#include "config/make_plan.hpp"
#include "data/batch_source.hpp"
#include "data/token_card.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

/// Local `work` on every rank; what fails on one is thrown on all, as AgreedError.
void all_or_none(Communicator& world, const std::function<void()>& work);

/// Whether the token files of an input have to be there.
enum class DataFiles : std::uint8_t { not_read, read };

/// The input that a run begins with.
struct AcceptedInput {
  std::string text;
  std::string fault;  // of the file; then `text` is what an earlier life has kept
};

/// Collective: rank 0 reads the input, all check it for `ranks` ranks (0: for any number). Keys of
/// [model] that are not written come from what init.from names. Where `accepted` is asked
/// for, a life that goes on by itself takes the input that was kept (kept_input.hpp) instead of one
/// with faults.
[[nodiscard]] Config load_input(Communicator& world, const std::string& path,
                                const std::vector<std::string>& overrides, int ranks,
                                Origins& origins, DataFiles data = DataFiles::not_read,
                                AcceptedInput* accepted = nullptr);

/// A corpus of these files; fills model.vocab from it when that is 0, and checks that it is not
/// larger.
[[nodiscard]] std::shared_ptr<BatchSource> open_corpus(std::vector<TokenCard> cards, Config& config,
                                                       bool shuffle);

/// The mixture of data.sources, whose files these are.
[[nodiscard]] std::shared_ptr<BatchSource> open_mixture(std::vector<std::vector<TokenCard>> cards,
                                                        Config& config);

[[nodiscard]] MachineOptions machine_options(const Config& config);
[[nodiscard]] PlanFacts plan_facts(const Machine& machine);
[[nodiscard]] TrainOptions train_options(const Config& config, int ranks);

/// Says what slows a job down needlessly (ranks that share cores without yielding).
[[nodiscard]] std::string placement_warning(Communicator& world);

/// Name of the text of checkpoints that hold weights and nothing else of a run: imported ones.
inline constexpr const char* kWeightsOnlyText = "weights_only";

/// Of one process: the checkpoint that a run with this input goes on from, as far as its folders
/// say. Nothing where it begins anew. Error(io) where it cannot be read.
[[nodiscard]] std::optional<CheckpointInfo> continued_by(const Config& config);
/// A run folder, or a folder of checkpoints, where a checkpoint may be named.
[[nodiscard]] bool holds_checkpoints(const std::string& path);
/// The same of a checkpoint, a folder of checkpoints, or a run folder. Error(no_input) where there
/// is none.
[[nodiscard]] CheckpointInfo newest_checkpoint(const std::string& path);

/// Collective. `path`: a checkpoint, a folder of checkpoints, or a run folder.
/// AgreedError(no_input) where there is none.
[[nodiscard]] CheckpointInfo find_any_checkpoint(Communicator& world, const std::string& path);
/// Error(io) where it has none.
[[nodiscard]] const std::string& input_of(const CheckpointInfo& checkpoint);

/// A model for reading only (evaluation, generation): the input that a checkpoint carries, on any
/// mesh, with its weights loaded.
struct LoadedModel {
  Config config;
  CheckpointInfo checkpoint;
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Formation> formation;
};
/// `path`: a checkpoint, a folder of checkpoints, or a run folder.
[[nodiscard]] LoadedModel load_model(Communicator& world, const std::string& path,
                                     const std::vector<std::string>& overrides, index_t sequences);

}  // namespace t3d
