#include "app/commands/tokenizer_check.hpp"

#include <charconv>
#include <filesystem>

#include "core/error.hpp"

namespace t3d {

TokenizerClaim tokenizer_of(const CheckpointInfo& checkpoint) {
  TokenizerClaim claim{0, checkpoint.path};
  const auto found = checkpoint.state.texts.find(kTokenizerText);
  if (found == checkpoint.state.texts.end()) return claim;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), claim.hash, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    throw_error(ExitCode::io, "{}: \"{}\" is no hash of a tokenizer", checkpoint.path, text);
  return claim;
}

TokenizerClaim tokenizer_of(const TokenSource& corpus) {
  return {corpus.tokenizer_hash(), corpus.describe()};
}

std::string tokenizer_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

bool same_tokenizer(const TokenizerClaim& known, const TokenizerClaim& other,
                    std::vector<std::string>& notes) {
  if (known.hash != 0 && other.hash != 0) {
    if (known.hash == other.hash) return true;
    throw_error(ExitCode::config,
                "not the same tokenizer:\n  {} has {}\n  {} has {}\nids of one mean other words to "
                "the other; tokenize the text with the run's own (tokenize --model)",
                known.who, tokenizer_text(known.hash), other.who, tokenizer_text(other.hash));
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
                              const TokenSource* valid, const CheckpointInfo* checkpoint) {
  RunTokenizer run;
  TokenizerClaim claim = tokenizer_of(train);
  run.model = train.tokenizer_model();
  if (!data.tokenizer.empty()) {
    const auto named = load_tokenizer(data.tokenizer);
    const TokenizerClaim wish{tokenizer_hash(*named), data.tokenizer};
    // Formats that do not say what their ids mean: then the input does.
    if (claim.hash == 0) {
      claim = wish;
      run.model = named->model();
    }
    same_tokenizer(wish, claim, run.notes);
  }
  if (checkpoint != nullptr) {
    const TokenizerClaim before = tokenizer_of(*checkpoint);
    same_tokenizer(before, claim, run.notes);
    if (claim.hash == 0) claim = before;
  }
  if (valid != nullptr) run.scores_valid = same_tokenizer(claim, tokenizer_of(*valid), run.notes);
  if (claim.hash == 0 && run.notes.empty())
    run.notes.push_back(fmt::format(
        "the tokenizer of {} is not known: name it as data.tokenizer to have it compared and kept",
        claim.who));
  run.hash = claim.hash;
  return run;
}

std::string tokenizer_file(const std::string& run_dir) {
  return (std::filesystem::path(run_dir) / "tokenizer.model").string();
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const CheckpointInfo& checkpoint, const Config& config,
                                             std::vector<std::string>& notes) {
  const TokenizerClaim trained = tokenizer_of(checkpoint);
  const std::filesystem::path step(checkpoint.path);
  const std::string kept = tokenizer_file(step.parent_path().parent_path().string());
  const auto checked = [&](const std::string& path) {
    auto tokenizer = load_tokenizer(path);
    same_tokenizer(trained, {tokenizer_hash(*tokenizer), path}, notes);
    return tokenizer;
  };
  std::error_code ignored;
  if (!config.data.tokenizer.empty()) return checked(config.data.tokenizer);
  if (trained.hash == tokenizer_hash(*make_byte_tokenizer())) return make_byte_tokenizer();
  if (std::filesystem::exists(kept, ignored)) return checked(kept);
  if (trained.hash == 0 && config.model.vocab == 256) return make_byte_tokenizer();
  for (const std::string& file : config.data.train)
    if (std::filesystem::exists(file, ignored)) return checked(file);
  throw_error(ExitCode::no_input,
              "no tokenizer: there is no {} and data.train is not there; give "
              "--set data.tokenizer=FILE",
              kept);
}

}  // namespace t3d
