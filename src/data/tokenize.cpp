#include "data/tokenize.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/agree.hpp"
#include "core/commas.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "data/tokenize/merge_parts.hpp"
#include "data/tokenize/part_worker.hpp"
#include "data/tokenize/prefix_lock.hpp"
#include "data/tokenize/train_sentencepiece.hpp"
#include "data/tokenize/training_texts.hpp"
#include "device/host_limits.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"
#include "tokenizer/special_files.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

/// What the command that runs would leave, for the thread that ends the process; never destroyed.
struct RunningCommand {
  std::mutex mutex;
  std::string folder;
  std::unique_ptr<PrefixLock> lock;  // of rank 0
};
RunningCommand& running_command() {
  static auto& command = *new RunningCommand;
  return command;
}

/// What the other ranks need.
struct ChosenTokenizer {
  std::string kind, model;
  SpecialIds special;
  [[nodiscard]] std::unique_ptr<Tokenizer> make() const { return make_tokenizer(kind, model); }
};

ChosenTokenizer choose_tokenizer(const std::vector<TextInput>& inputs, const std::string& folder,
                                 const TokenizeOptions& options, std::vector<std::string>& notes,
                                 std::vector<std::string>& warnings) {
  if (options.model_file.empty() && options.kind == "bytes") return {options.kind, {}, {}};
  if (options.model_file.empty()) {
    const TrainingTexts texts(inputs, folder, options);
    const std::string model = train_sentencepiece(texts.files(), options.kind, options.vocab);
    const auto made = make_sentencepiece_tokenizer(model);
    if (made->vocab() < options.vocab)
      warnings.push_back(
          fmt::format("the text gives a vocabulary of {} ids alone, not of --vocab {}",
                      with_commas(static_cast<double>(made->vocab())),
                      with_commas(static_cast<double>(options.vocab))));
    return {made->kind(), model, made->special_ids()};
  }
  const auto tokenizer = load_tokenizer(options.model_file);
  return {tokenizer->kind(), tokenizer->model(),
          load_special_ids(options.model_file, *tokenizer, notes)};
}

/// As the user wants the documents. A run from fresh weights learns that they begin so.
void take_wishes(const TokenizeOptions& options, ChosenTokenizer& chosen) {
  SpecialIds& special = chosen.special;
  if (!options.document_eos.empty()) {
    const auto tokenizer = chosen.make();
    special.eos = named_id(options.document_eos, tokenizer.get(), tokenizer->vocab());
    if (!special.ends.empty() && std::ranges::find(special.ends, special.eos) == special.ends.end())
      special.ends.insert(special.ends.begin(), special.eos);
  }
  if (special.bos >= 0) special.adds_bos = options.document_begin;
}

/// A file that says that some rank has failed.
std::string failed_mark(const std::string& folder) { return folder + "/failed"; }

/// Does the parts of one rank in several threads; the calling one says how far it is.
class Workers {
 public:
  Workers(const TokenizePlan& plan, std::vector<std::size_t> parts, const TokenizeOptions& options,
          const ChosenTokenizer& tokenizer, const std::string& folder)
      : plan_(plan),
        parts_(std::move(parts)),
        options_(options),
        tokenizer_(tokenizer),
        folder_(folder) {}

  void run(index_t threads, const std::function<void()>& still_working) {
    std::vector<std::thread> all;
    working_ = std::min(threads, std::max<index_t>(std::ssize(parts_), 1));
    for (index_t n = 0; n < working_; ++n) all.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, std::chrono::seconds(10), [&] { return working_ == 0; })) {
        if (path_exists(failed_mark(folder_))) stop_ = true;
        still_working();
      }
    }
    for (std::thread& thread : all) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }
  [[nodiscard]] index_t reused() const { return reused_; }
  [[nodiscard]] double bytes_done() const { return static_cast<double>(bytes_done_); }

 private:
  void work() {
    std::unique_ptr<Tokenizer> tokenizer;
    for (std::size_t n = 0; !stop_ && (n = next_++) < parts_.size();) {
      const TokenizePart& part = plan_.parts[parts_[n]];
      try {
        if (is_finished(folder_, part, options_)) {
          ++reused_;
          continue;
        }
        if (!tokenizer) tokenizer = tokenizer_.make();  // one for each thread
        tokenize_part(plan_, part, options_, *tokenizer, folder_, stop_);
        bytes_done_ += part.bytes;
      } catch (const StoppedPart&) {
        break;
      } catch (...) {
        fail(parts_[n]);
      }
    }
    const std::lock_guard lock(mutex_);
    if (--working_ == 0) ended_.notify_all();
  }
  /// Of several, the one that stands first in the text is told.
  void fail(std::size_t part) {
    const std::lock_guard lock(mutex_);
    if (!stop_.exchange(true)) tell_others();
    if (failure_ && failed_ < part) return;
    failure_ = std::current_exception();
    failed_ = part;
  }

  /// The other ranks look for the mark now and then; without it they do their parts.
  void tell_others() const {
    try {
      write_text_durably(failed_mark(folder_), "");
    } catch (const Error&) {
    }
  }

  const TokenizePlan& plan_;
  std::vector<std::size_t> parts_;
  const TokenizeOptions& options_;
  const ChosenTokenizer& tokenizer_;
  const std::string& folder_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<index_t> reused_{0}, bytes_done_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  index_t working_ = 0;
  std::exception_ptr failure_;
  std::size_t failed_ = 0;
};

/// Local work of every rank; what fails on one is thrown on all.
void all_or_none(Communicator* world, const std::function<void()>& work) {
  if (world == nullptr) return work();
  std::optional<Error> fault;
  try {
    work();
  } catch (const std::exception& error) {
    fault = as_error(error);
  }
  agree(*world, fault);
}

class TokenizeJob {
 public:
  TokenizeJob(Communicator* world, const std::vector<std::string>& names, const std::string& prefix,
              const TokenizeOptions& options, const std::function<void(const std::string&)>& say)
      : world_(world),
        names_(names),
        prefix_(prefix),
        folder_(prefix + ".parts"),
        options_(options),
        say_(say) {}

  TokenizeResult run() {
    lock();
    try {
      prepare();
      tokenize();
      all_or_none(world_, [&] {
        if (rank() == 0) merge();
      });
    } catch (...) {
      clear_unfinished_parts();
      throw;
    }
    const std::lock_guard guard(running_command().mutex);
    running_command().lock.reset();
    return std::move(result_);
  }

 private:
  [[nodiscard]] int rank() const { return world_ == nullptr ? 0 : world_->rank(); }
  [[nodiscard]] int ranks() const { return world_ == nullptr ? 1 : world_->size(); }

  // Nothing of another command's is touched before.
  void lock() {
    all_or_none(world_, [&] {
      if (rank() != 0) return;
      auto own = std::make_unique<PrefixLock>(prefix_);
      const std::lock_guard guard(running_command().mutex);
      running_command().lock = std::move(own);
    });
    const std::lock_guard guard(running_command().mutex);
    running_command().folder = folder_;
  }

  void prepare() {
    all_or_none(world_, [&] {
      if (!(options_.valid_fraction >= 0.0 && options_.valid_fraction < 1.0))
        throw_error(ExitCode::config, "a valid fraction of {} is not in [0, 1)",
                    options_.valid_fraction);
      if (!options_.fields.prompt.empty() && options_.output != TokenOutput::hdf5)
        throw_error(ExitCode::config,
                    "--prompt-field: megatron and llmc cannot keep which tokens are a prompt's, "
                    "and all would count in the loss; --format hdf5 keeps it");
      plan_.inputs = list_texts(names_);
      make_folder(folder_);
      if (rank() == 0) ::unlink(failed_mark(folder_).c_str());
      if (rank() != 0) return;
      tokenizer_ =
          choose_tokenizer(plan_.inputs, folder_, options_, result_.notes, result_.warnings);
      take_wishes(options_, tokenizer_);
    });
    if (world_ != nullptr) {
      tokenizer_.kind = broadcast_text(*world_, tokenizer_.kind);
      tokenizer_.model = broadcast_text(*world_, tokenizer_.model);
      tokenizer_.special =
          special_ids_of_text(broadcast_text(*world_, special_text(tokenizer_.special)));
    }
    all_or_none(world_, [&] {
      plan_ = plan_parts(std::move(plan_.inputs), options_, *tokenizer_.make(), tokenizer_.special);
    });
    std::string digest;
    for (const TokenizePart& part : plan_.parts) digest += part.name;
    const std::string first = world_ == nullptr ? digest : broadcast_text(*world_, digest);
    all_or_none(world_, [&] {
      if (digest != first)
        throw_error(ExitCode::config, "rank {} (node {}) sees other texts than rank 0", rank(),
                    host_name());
    });
  }

  void tokenize() {
    // Ranks of one node share its cores.
    const index_t threads = options_.threads > 0 ? options_.threads
                            : ranks() > 1        ? 1
                                                 : cores_available();
    auto shares = share_parts(plan_, static_cast<std::size_t>(ranks()));
    Workers workers(plan_, std::move(shares[static_cast<std::size_t>(rank())]), options_,
                    tokenizer_, folder_);
    const Clock::time_point start = Clock::now();
    all_or_none(world_, [&] { workers.run(threads, [&] { say_progress(); }); });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::array<double, 2> done{static_cast<double>(workers.reused()), workers.bytes_done()};
    if (world_ != nullptr)
      world_->all_reduce({done.data(), DType::f64, 1, 2}, ReduceOp::sum).wait_host();
    result_.parts = std::ssize(plan_.parts);
    result_.parts_reused = static_cast<index_t>(done[0]);
    result_.workers = static_cast<int>(threads) * ranks();
    if (seconds > 0) result_.bytes_per_second = done[1] / seconds;
  }

  void say_progress() const {
    if (rank() != 0 || !say_) return;
    const auto finished = std::count_if(
        plan_.parts.begin(), plan_.parts.end(),
        [&](const TokenizePart& part) { return is_finished(folder_, part, options_); });
    say_(fmt::format("{} of {} parts of the text are tokenized", finished, plan_.parts.size()));
  }

  [[nodiscard]] bool has_text(const TokenizePart& part) const {
    return std::ranges::any_of(outputs_of(part, options_), [&](const std::string& which) {
      return TokenFileReader(part_path(folder_, part, which) + ".h5").info().text_bytes > 0;
    });
  }

  /// A run of no tokens would be refused; so is this, before a file takes the place of another.
  void check_has_text() const {
    if (std::ranges::any_of(plan_.parts, [&](const TokenizePart& part) { return has_text(part); }))
      return;
    std::filesystem::remove_all(folder_);
    throw_error(ExitCode::config, "there is no text in {}: no token files are written",
                source_text());
  }

  void merge() {
    check_has_text();
    const auto tokenizer = tokenizer_.make();
    TokenFileInfo info{
        tokenizer->vocab(), tokenizer->kind(), tokenizer->model(), source_text(), 0, 0,
        tokenizer_.special};
    if (tokenizer->uses_unicode()) info.unicode = tok::unicode_version();
    result_.vocab = info.vocab;
    const MergedTokens train = merge_parts(plan_, folder_, "train", options_, prefix_, info);
    result_.train_path = train.path;
    result_.train_tokens = train.tokens;
    add(train);
    if (options_.valid_fraction > 0) {
      const MergedTokens valid = merge_parts(plan_, folder_, "valid", options_, prefix_, info);
      result_.valid_path = valid.path;
      result_.valid_tokens = valid.tokens;
      add(valid);
    } else {
      result_.older_valid = valid_files();
    }
    if (unknown_.count > 0)
      result_.notes.push_back(fmt::format(
          "{} character{} not in Unicode {}, which this program knows (the first: U+{:04X}): where "
          "other programs know more they may cut the text otherwise there",
          with_commas(static_cast<double>(unknown_.count)), unknown_.count == 1 ? " is" : "s are",
          tok::unicode_version(), std::uint32_t{unknown_.first}));
    std::filesystem::remove_all(folder_);
  }
  void add(const MergedTokens& merged) {
    result_.documents += merged.notes.documents;
    result_.text_bytes += merged.text_bytes;
    result_.bad_lines += merged.notes.bad_lines;
    if (result_.first_bad_line.empty()) result_.first_bad_line = merged.notes.first_bad_line;
    if (unknown_.count == 0) unknown_.first = merged.notes.unknown.first;
    unknown_.count += merged.notes.unknown.count;
  }

  /// Whatever its format is.
  [[nodiscard]] std::vector<std::string> valid_files() const {
    const std::filesystem::path stem(prefix_ + "-valid");
    const std::string folder = stem.parent_path().string(), begin = stem.filename().string();
    std::vector<std::string> files;
    for (const std::string& name : list_folder(folder.empty() ? "." : folder))
      if (name.starts_with(begin + ".") || name.starts_with(begin + "_"))
        files.push_back((stem.parent_path() / name).string());
    std::sort(files.begin(), files.end());
    return files;
  }

  [[nodiscard]] std::string source_text() const {
    const std::string& first = plan_.inputs.front().path;
    return plan_.inputs.size() == 1 ? first
                                    : fmt::format("{} and {} more", first, plan_.inputs.size() - 1);
  }

  Communicator* world_;
  const std::vector<std::string>& names_;
  std::string prefix_, folder_;
  const TokenizeOptions& options_;
  const std::function<void(const std::string&)>& say_;
  ChosenTokenizer tokenizer_;
  TokenizePlan plan_;
  TokenizeResult result_;
  tok::UnknownCharacters unknown_;
};

}  // namespace

TokenizeResult tokenize_corpus(Communicator& world, const std::vector<std::string>& inputs,
                               const std::string& prefix, const TokenizeOptions& options,
                               const std::function<void(const std::string&)>& say) {
  return TokenizeJob(&world, inputs, prefix, options, say).run();
}

TokenizeResult tokenize_corpus(const std::vector<std::string>& inputs, const std::string& prefix,
                               const TokenizeOptions& options) {
  return TokenizeJob(nullptr, inputs, prefix, options, {}).run();
}

void clear_unfinished_parts() {
  const std::lock_guard lock(running_command().mutex);
  const std::string& folder = running_command().folder;
  if (folder.empty()) return;
  ::unlink(failed_mark(folder).c_str());
  ::rmdir(folder.c_str());  // finished parts stay
  running_command().lock.reset();
}

}  // namespace t3d
