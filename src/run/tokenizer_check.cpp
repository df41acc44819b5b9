#include "run/tokenizer_check.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "config/data_lists.hpp"
#include "config/model_text.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "run/setup.hpp"
#include "tokenizer/special_files.hpp"

namespace t3d {
namespace {

/// The tokenizer `hash` (0 = unknown), kept beside a checkpoint; runs of earlier versions kept one
/// in the run folder. Empty when there is none.
std::string kept_tokenizer(const CheckpointInfo& checkpoint, std::uint64_t hash) {
  std::filesystem::path step(checkpoint.path);
  if (!step.has_filename()) step = step.parent_path();  // "step-00000010/"
  const std::filesystem::path dir = step.parent_path();
  for (const std::string& file : {tokenizer_file(dir.string(), hash),
                                  (dir / ".." / "tokenizer.model").lexically_normal().string()})
    if (path_exists(file)) return file;
  return {};
}

/// Its serialized model, if it is the right one.
std::string kept_model(const CheckpointInfo& checkpoint, std::uint64_t hash) {
  const std::string file = kept_tokenizer(checkpoint, hash);
  const auto tokenizer = file.empty() ? nullptr : load_tokenizer(file);
  const bool right = tokenizer && hash != 0 && tokenizer_hash(*tokenizer) == hash;
  return right ? tokenizer->model() : std::string();
}

/// What to call so that a text has the ids of this claim.
std::string way_to(const TokenizerClaim& claim) {
  if (claim.hash == tokenizer_hash(*make_byte_tokenizer()))
    return "make ids of the first one with: transformer3d tokenize TEXT -o NAME --kind bytes";
  if (!claim.file.empty())
    return "make ids of the first one with: transformer3d tokenize TEXT -o NAME --model " +
           claim.file;
  return "tokenize the text with the first one (tokenize --model FILE; a token file has its "
         "tokenizer in it and may be named)";
}

}  // namespace

TokenizerClaim tokenizer_of(const CheckpointInfo& checkpoint) {
  TokenizerClaim claim{0, checkpoint.path};
  const auto found = checkpoint.state.texts.find(kTokenizerText);
  if (found == checkpoint.state.texts.end()) return claim;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), claim.hash, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    throw_error(ExitCode::io, "{}: \"{}\" is no hash of a tokenizer", checkpoint.path, text);
  claim.file = kept_tokenizer(checkpoint, claim.hash);
  return claim;
}

TokenizerClaim tokenizer_of(const TokenSource& corpus) {
  return {corpus.tokenizer_hash(), corpus.describe()};
}

SpecialIds kept_special_ids(const CheckpointInfo& checkpoint, index_t vocab) {
  const auto kept = checkpoint.state.texts.find(kSpecialText);
  if (kept == checkpoint.state.texts.end()) return {};
  try {
    SpecialIds ids = special_ids_of_text(kept->second);
    if (ids.highest() >= vocab)
      throw_error(ExitCode::io, "{} is no token of {}", ids.highest(), vocab);
    return ids;
  } catch (const Error& error) {
    throw_error(error.code(), "{}: its special ids are damaged: {}", checkpoint.path, error.what());
  }
}

SpecialIds special_ids_of(const CheckpointInfo& checkpoint, const Tokenizer* tokenizer,
                          index_t vocab) {
  SpecialIds ids = kept_special_ids(checkpoint, vocab);
  if (ids == SpecialIds() && tokenizer != nullptr) ids = tokenizer->special_ids();
  settle_begin(ids, began_fresh(checkpoint));
  return ids;
}

bool began_fresh(const CheckpointInfo& checkpoint) {
  const auto& texts = checkpoint.state.texts;
  return !texts.contains(kWeightsOnlyText) && texts.contains("input") &&
         glance_at_input(input_of(checkpoint), "", {}).init.from.empty();
}

void settle_begin(SpecialIds& ids, bool fresh) {
  if (fresh && ids.bos >= 0 && !ids.adds_bos) ids.adds_bos = false;
}

SpecialIds special_ids_of_run(const SpecialIds& own, const SpecialIds& known, bool fresh,
                              index_t vocab) {
  SpecialIds ids = own;
  if (known != SpecialIds()) {
    std::vector<std::int32_t> ends = known.all_ends();
    if (own.eos >= 0 && std::ranges::find(ends, own.eos) == ends.end()) ends.push_back(own.eos);
    if (own.eos < 0) ids.eos = known.eos;
    for (const auto& [mine, theirs] : {std::pair{&ids.bos, known.bos}, {&ids.pad, known.pad}})
      if (theirs >= 0) *mine = theirs;
    if (known.adds_bos) ids.adds_bos = known.adds_bos;
    ids.unnamed = known.unnamed;
    ids.ends = ends == std::vector{ids.eos} ? std::vector<std::int32_t>() : ends;
  }
  // data.tokenizer may have more tokens than the model.
  for (const auto& [name, id] : named_ids(ids))
    if (*id >= vocab) *id = -1;
  std::erase_if(ids.ends, [&](std::int32_t id) { return id >= vocab; });
  settle_begin(ids, fresh);
  return ids;
}

std::string tokenizer_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

bool same_tokenizer(const TokenizerClaim& known, const TokenizerClaim& other,
                    std::vector<std::string>& notes) {
  if (known.hash != 0 && other.hash != 0) {
    if (known.hash == other.hash) return true;
    throw_error(ExitCode::config,
                "not the same tokenizer:\n  {} has {}\n  {} has {}\nids of one mean other words to "
                "the other; {}",
                known.who, tokenizer_text(known.hash), other.who, tokenizer_text(other.hash),
                way_to(known));
  }
  const bool first = known.hash == 0;
  notes.push_back(fmt::format("the tokenizer of {} is not known: not compared with that of {}",
                              first ? known.who : other.who, first ? other.who : known.who));
  return false;
}

void print_notes(const Communicator& world, const std::vector<std::string>& notes) {
  for (const std::string& text : notes)
    if (world.rank() == 0) fmt::print(stderr, "transformer3d: note: {}\n", text);
}

RunTokenizer check_tokenizers(const DataConfig& data, const TokenSource& train,
                              const std::vector<const TokenSource*>& valid,
                              const CheckpointInfo* checkpoint) {
  RunTokenizer run;
  TokenizerClaim claim = tokenizer_of(train);
  run.model = train.tokenizer_model();
  run.special = train.special_ids();
  if (!data.tokenizer.empty()) {
    const auto named = load_tokenizer(data.tokenizer);
    const TokenizerClaim wish{tokenizer_hash(*named), data.tokenizer, data.tokenizer};
    // Formats that do not say what their ids mean: then the input does.
    if (claim.hash == 0) {
      claim = wish;
      run.model = named->model();
      run.special = load_special_ids(data.tokenizer, *named, run.notes);
    }
    same_tokenizer(wish, claim, run.notes);
  }
  if (checkpoint != nullptr) {
    const TokenizerClaim before = tokenizer_of(*checkpoint);
    same_tokenizer(before, claim, run.notes);
    if (claim.hash == 0) {
      claim = before;
      run.model = kept_model(*checkpoint, before.hash);
    }
  }
  for (const TokenSource* set : valid)
    run.scores_valid.push_back(same_tokenizer(claim, tokenizer_of(*set), run.notes));
  if (claim.hash == 0 && run.notes.empty())
    run.notes.push_back(fmt::format(
        "the tokenizer of {} is not known: name it as data.tokenizer to have it compared and kept",
        claim.who));
  if (run.special == SpecialIds() && !run.model.empty())
    run.special = make_tokenizer(run.model)->special_ids();
  run.hash = claim.hash;
  return run;
}

std::string tokenizer_file(const std::string& dir, std::uint64_t hash) {
  const std::string name = fmt::format("tokenizer-{}.model", tokenizer_text(hash).substr(0, 8));
  return (std::filesystem::path(dir) / name).string();
}

std::unique_ptr<Tokenizer> tokenizer_of(const RunTokenizer& run, index_t vocab) {
  auto bytes = make_byte_tokenizer();
  const bool unknown = run.hash == 0 && run.model.empty();
  if (run.hash == tokenizer_hash(*bytes) || (unknown && vocab == bytes->vocab())) return bytes;
  return run.model.empty() ? nullptr : make_tokenizer(run.model);
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const CheckpointInfo& checkpoint, const Config& config,
                                             std::vector<std::string>& notes) {
  const TokenizerClaim trained = tokenizer_of(checkpoint);
  const std::string kept = kept_tokenizer(checkpoint, trained.hash);
  const auto checked = [&](const std::string& path) {
    auto tokenizer = load_tokenizer(path);
    same_tokenizer(trained, {tokenizer_hash(*tokenizer), path}, notes);
    return tokenizer;
  };
  std::error_code ignored;
  if (!config.data.tokenizer.empty()) return checked(config.data.tokenizer);
  if (trained.hash == tokenizer_hash(*make_byte_tokenizer())) return make_byte_tokenizer();
  if (!kept.empty()) return checked(kept);
  if (trained.hash == 0 && config.model.vocab == 256) return make_byte_tokenizer();
  for (const std::string& file : train_files(config.data))
    if (std::filesystem::exists(file, ignored)) return checked(file);
  throw_error(ExitCode::no_input,
              "no tokenizer: there is none beside {} and data.train is not there; give "
              "--set data.tokenizer=FILE",
              checkpoint.path);
}

}  // namespace t3d
