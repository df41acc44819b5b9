// One tokenizer for a run, its texts and its checkpoints. The ids of another one mean other words:
// losses and bits per byte would be numbers without a meaning. So its hash stands in token files
// and checkpoints, and whatever is used together is compared.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/token_source.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {

/// Which tokenizer somebody says that ids are of: its hash (tokenizer/tokenizer.hpp; 0 =
/// unknown), and who says so, for messages.
struct TokenizerClaim {
  std::uint64_t hash = 0;
  std::string who;
  std::string file = {};  // a tokenizer of that hash, to be named; may be empty
};

/// The name of the hash among a checkpoint's texts; checkpoints of earlier versions have none.
inline constexpr const char* kTokenizerText = "tokenizer";
[[nodiscard]] TokenizerClaim tokenizer_of(const CheckpointInfo& checkpoint);
[[nodiscard]] TokenizerClaim tokenizer_of(const TokenSource& corpus);
/// The name of the special ids among a checkpoint's texts (special_text()).
inline constexpr const char* kSpecialText = "special_ids";
/// Those that the checkpoint keeps; none where it keeps none. Error(io), naming it, where one is no
/// token of its model, which has `vocab`.
[[nodiscard]] SpecialIds kept_special_ids(const CheckpointInfo& checkpoint, index_t vocab);
/// Those, else the tokenizer's own (`tokenizer` may be null).
[[nodiscard]] SpecialIds special_ids_of(const CheckpointInfo& checkpoint,
                                        const Tokenizer* tokenizer, index_t vocab);
/// The first weights were random ones, not somebody's: what stands before a text was said by the
/// training text alone.
[[nodiscard]] bool began_fresh(const CheckpointInfo& checkpoint);
/// A run that began fresh had no begin before a text unless it is said that it had.
void settle_begin(SpecialIds& ids, bool fresh);
/// What a run of a model of `vocab` keeps: `known` of its weights, and, what these do not say,
/// `own` of its training text, whose end ends a text beside theirs.
[[nodiscard]] SpecialIds special_ids_of_run(const SpecialIds& own, const SpecialIds& known,
                                            bool fresh, index_t vocab);
/// As the checkpoint keeps it: 16 hexadecimal digits.
[[nodiscard]] std::string tokenizer_text(std::uint64_t hash);

/// True when both are known and equal. Error(config), naming both, when they differ. Where one is
/// unknown nothing is compared: false, and a note for the user.
bool same_tokenizer(const TokenizerClaim& known, const TokenizerClaim& other,
                    std::vector<std::string>& notes);

/// For commands without a log: to standard error, by rank 0.
void print_notes(const Communicator& world, const std::vector<std::string>& notes);

/// The tokenizer of a training run.
struct RunTokenizer {
  std::uint64_t hash = 0;  // for its checkpoints; 0 = unknown
  std::string model;       // serialized, or empty: nothing to keep
  SpecialIds special;      // of the training text, else what `model` or data.tokenizer says
  /// Of each validation set, on the rank that checked: it is known to be of the same one, bits per
  /// byte mean something.
  std::vector<bool> scores_valid;
  std::vector<std::string> notes;
};

/// Compares the training text, data.tokenizer, the validation sets and the checkpoint that is
/// continued. `checkpoint` may be null. Error(config) when two are known and differ.
[[nodiscard]] RunTokenizer check_tokenizers(const DataConfig& data, const TokenSource& train,
                                            const std::vector<const TokenSource*>& valid,
                                            const CheckpointInfo* checkpoint);

/// The tokenizer to show a run's texts with, of a model of `vocab` ids; null where it is unknown.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_of(const RunTokenizer& run, index_t vocab);

/// The tokenizer to read and write texts with for a checkpoint: data.tokenizer, the one kept beside
/// the checkpoint, or that of data.train, in this order. Error(config) when it is not the
/// checkpoint's, Error(no_input) when there is none.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer_of(const CheckpointInfo& checkpoint,
                                                           const Config& config,
                                                           std::vector<std::string>& notes);

/// Where a run keeps its tokenizer: in the folder of its checkpoints, under its hash, so that those
/// of other lineages keep theirs.
[[nodiscard]] std::string tokenizer_file(const std::string& dir, std::uint64_t hash);

}  // namespace t3d
