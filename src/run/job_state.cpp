#include "run/job_state.hpp"

#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "config/config_schema.hpp"
#include "config/defaults.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/posix_file.hpp"
#include "run/data_identity.hpp"
#include "run/lost_checkpoints.hpp"
#include "run/provenance.hpp"
#include "run/setup.hpp"
#include "tokenizer/special_files.hpp"
#include "train/step/reshape.hpp"

namespace t3d {

JobState::JobState(Communicator& world, Config& config, const Origins& origins, const Texts& texts,
                   StartClock& clock, StopIfAsked stop_if_asked)
    : world_(world),
      config_(config),
      origins_(origins),
      texts_(texts),
      clock_(clock),
      stop_if_asked_(std::move(stop_if_asked)) {}

void JobState::begin(const Warn& warn) {
  const Config asked = config_;
  const auto parts_of = [&](const CheckpointInfo& info) {
    form(asked, info);
    return from_->parts(*trainer_);
  };
  const std::string& wish = asked.checkpoint.restart;
  bool found = wish != "never";
  if (wish == "auto") {
    found = load_newest(world_, asked.checkpoint.dir, parts_of, warn, Trainer::kPrivateState)
                .has_value();
    all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      const std::string text = check_lost_checkpoints(asked.run.dir, asked.checkpoint.dir, found);
      if (!text.empty()) warn(text);
    });
  } else if (found) {
    const std::string folder =
        broadcast_text(world_, world_.rank() == 0 && holds_checkpoints(wish) ? "yes" : "");
    const std::string chosen = folder.empty() ? wish : find_any_checkpoint(world_, wish).path;
    warn_of_own_checkpoints(chosen, warn);
    std::vector<TensorPart> parts = parts_of(open_checkpoint(world_, chosen));
    load_checkpoint(world_, chosen, parts, Trainer::kPrivateState);
  }
  if (!found) form(asked, {});
  if (!found && !config_.init.from.empty()) take_weights();
  from_->restore(*trainer_, warn);
}

/// -r PATH always begins again from there, also where an earlier call has brought this folder on.
void JobState::warn_of_own_checkpoints(const std::string& chosen, const Warn& warn) {
  all_or_none(world_, [&] {
    if (world_.rank() != 0) return;
    std::error_code unknown;
    if (std::filesystem::equivalent(folder_of(chosen), config_.checkpoint.dir, unknown)) return;
    std::optional<std::string> own;
    try {
      if (const auto newest = newest_published(config_.checkpoint.dir)) own = newest->path;
    } catch (const Error&) {  // no reason to end a start
    }
    if (!own) return;
    warn(
        fmt::format("-r {} begins again from {}; {} stays, and is not continued: the same command "
                    "without -r continues it",
                    config_.checkpoint.restart, chosen, *own));
  });
}

/// The first weights, each rank its own boxes.
void JobState::take_weights() {
  std::vector<TensorPart> parts = trainer_->parts();
  init_source_ = find_init_source(world_, config_.init.from);
  all_or_none(world_, [&] {
    if (world_.rank() != 0) return;
    check_same_computation(*init_source_, config_.model);
    planned_.notes.push_back(fmt::format("weights from {}{}", init_source_->path,
                                         adapters_text(*init_source_, config_.model)));
  });
  read_together(world_, [&] {
    fill_weights(*init_source_, needs_of(config_.model, config_.init.grow_vocab), parts);
  });
  trainer_->restore(0, {}, config_.batch.sequences);
}

/// Machine, plan and trainer as `info`, or nothing, and the input ask for; in place of those made
/// for a checkpoint that turned out damaged: an older one may be of another plan.
void JobState::form(const Config& asked, const std::optional<CheckpointInfo>& info) {
  trainer_.reset();
  machine_.reset();
  config_ = asked;
  open_mesh_ = open_mesh(config_.mesh);
  from_ = std::make_unique<Continuation>(world_, config_, origins_, info);
  stop_if_asked();
  all_or_none(world_, [&] { from_->adopt(config_); });
  const NodeKinds kinds = find_node_kinds(world_, config_);
  input_warnings_ = unused_input(config_, world_.size());
  input_warnings_.insert(input_warnings_.end(), kinds.notes.begin(), kinds.notes.end());
  machine_ = std::make_unique<Machine>(world_, machine_options(config_, kinds));
  planned_ = find_life_plan(*machine_, config_, origins_, kinds, *from_);
  const bool on_gpu = machine_->choice().gpu >= 0;
  // Refused with the arithmetic now rather than in the middle of a step.
  check_memory(world_, planned_.plan, planned_.room, on_gpu);
  all_or_none(world_, [&] { replans_ = parse_replans(config_.debug.replan, planned_.plan); });
  for (const Replan& replan : replans_) check_memory(world_, replan.plan, planned_.room, on_gpu);
  clock_.mark("plan and probe");
  trainer_ = std::make_unique<Trainer>(*machine_, planned_.plan,
                                       train_options(config_, world_.size()), texts_.train);
  stop_if_asked();
}

void JobState::stop_if_asked() const {
  stop_if_asked_(checkpoint() ? checkpoint()->state.step : -1);
}

void JobState::identify(const Warn& warn) {
  run_id_ = checkpoint() ? checkpoint()->state.run_id : new_run_id();
  check_tokenizer();
  check_data();
  lineage_ = next_lineage(world_, config_.checkpoint.dir, checkpoint(), warn);
}

std::string JobState::new_run_id() const {
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  return broadcast_text(world_, fmt::format("{}-{:x}", config_.run.name, now));
}

// The tokenizer is kept where the checkpoints are, also when they come from another folder.
// Rank 0 looks, and says what the others need.
void JobState::check_tokenizer() {
  all_or_none(world_, [&] {
    if (world_.rank() != 0) return;
    const BusyScope busy("reading tokenizers");
    tokenizer_ = check_tokenizers(config_.data, texts_.train->tokens(), texts_.validation_sets(),
                                  checkpoint() ? &*checkpoint() : nullptr);
    // Tokens that were added to a vocabulary are not known to the weights' own tokenizer.
    if (init_source_ && !config_.init.grow_vocab)
      (void)same_tokenizer(tokenizer_of(*init_source_),
                           {tokenizer_.hash, tokenizer_of(texts_.train->tokens()).who},
                           tokenizer_.notes);
    special_text_ = special_text_of_run();
    const std::string file = tokenizer_file(config_.checkpoint.dir, tokenizer_.hash);
    if (!tokenizer_.model.empty() && !path_exists(file)) write_text_durably(file, tokenizer_.model);
  });
  world_.broadcast({&tokenizer_.hash, DType::i32, 1, 2}, 0).wait_host();
  special_text_ = broadcast_text(world_, special_text_);
}

// What the weights came with, and the end that the training text teaches beside it. Empty: nothing
// is known.
std::string JobState::special_text_of_run() {
  SpecialIds known;
  const index_t vocab = config_.model.vocab;
  if (init_source_)
    known = special_ids_of(*init_source_, tokenizer_.notes);
  else if (checkpoint())
    known = kept_special_ids(*checkpoint(), vocab);
  SpecialIds& own = tokenizer_.special;
  if (own.eos >= 0 && known.eos >= 0 && own.eos != known.eos)
    tokenizer_.notes.push_back(fmt::format(
        "documents of {} end with {}, those of the weights with {}: both end a text from now on "
        "(tokenize --eos)",
        texts_.train->tokens().describe(), own.eos, known.eos));
  const bool fresh = checkpoint() ? began_fresh(*checkpoint()) : !init_source_;
  own = special_ids_of_run(own, known, fresh, vocab);
  return own == SpecialIds() ? std::string() : special_text(own);
}

// Says what the run is trained on, and compares it with what it was.
void JobState::check_data() {
  all_or_none(world_, [&] {
    data_text_ = data_text(*texts_.train, config_.data, tokenizer_.hash);
    if (!checkpoint() || !checkpoint()->state.texts.contains(kDataText)) return;
    data_change_ =
        data_change(checkpoint()->state.texts.at(kDataText), data_text_, checkpoint()->path);
  });
}

double JobState::measure_matmul_rate() {
  PlanBasis& basis = planned_.basis;
  basis.matmul =
      t3d::measure_matmul_rate(*machine_, trainer_->plan().activation(), from_->matmul_rate(basis));
  return basis.matmul.flops_per_second;
}

std::optional<Balancing::Replanning> JobState::replanning() const {
  Speeds known = planned_.speeds ? *planned_.speeds : equal_speeds(world_);
  if (written_by_hand(origins_)) return std::nullopt;
  PlanRequest request = request_like(config_, plan_facts(*machine_), trainer_->plan());
  open_shape(open_mesh_, request);
  return Balancing::Replanning{std::move(request), std::move(known)};
}

const Replan* JobState::replan_after(index_t step) const {
  for (const Replan& replan : replans_)
    if (replan.step == step) return &replan;
  return nullptr;
}

CheckpointState JobState::to_save() const {
  CheckpointState state;
  state.lineage = lineage_;
  state.step = steps_done();
  state.run_id = run_id_;
  state.texts = trainer_->texts();
  state.texts["input"] = resolved_text(config_, origins_);
  state.texts[kPlanInputText] =
      from_->plan_input().empty() ? state.texts["input"] : from_->plan_input();
  if (planned_.speeds) state.texts[kSpeedsText] = planned_.speeds->text();
  state.texts[kBasisText] = planned_.basis.text();
  state.texts[kDataText] = data_text_;
  if (!special_text_.empty()) state.texts[kSpecialText] = special_text_;
  if (tokenizer_.hash != 0) state.texts[kTokenizerText] = tokenizer_text(tokenizer_.hash);
  return state;
}

void JobState::keep_plan() const {
  if (world_.rank() != 0) return;
  if (planned_.speeds)
    write_text_durably(config_.run.dir + "/speeds.json", planned_.speeds->text());
  keep_plan_file(config_.run.dir, steps_done(), trainer_->plan());
}

void JobState::tell_origin(JobReport& report) const {
  for (const std::string& text : input_warnings_) report.warn(text);
  for (const std::string& text : tokenizer_.notes) report.note(text);
  report.note(
      fmt::format("data {}: {} tokens", data_hash(data_text_), texts_.train->tokens().size()));
  if (const std::string text = document_ends_text(texts_.train->tokens(), config_.model.context);
      !text.empty())
    report.note_folded(text);
  if (!data_change_.empty()) report.warn(data_change_);
  if (const std::string text = from_->changed_schedule(); !text.empty()) report.warn(text);
  if (checkpoint())
    report.note(
        fmt::format("resumed from {} at step {}", checkpoint()->path, checkpoint()->state.step));
}

void JobState::tell_plan(JobReport& report, bool verbose) const {
  for (const std::string& text : planned_.notes) report.note("plan: " + text);
  if (verbose)
    for (const std::string& text : planned_.candidates) report.note("plan: " + text);
  if (!planned_.memory_warning.empty())
    report.warn("memory will be short unless others give some back: " + planned_.memory_warning);
  for (const Replan& replan : replans_)
    if (replan.step <= steps_done() || replan.step >= trainer_->steps())
      report.warn(
          fmt::format("debug.replan: this run has no steps on both sides of step {}", replan.step));
}

std::string JobState::digest_note(const std::string& digest) const {
  std::string text = "digest of the state " + digest;
  if (!checkpoint()) return text;
  const auto& texts = checkpoint()->state.texts;
  const auto saved = texts.find(kDigestText);
  if (saved == texts.end() || !is_digest(saved->second)) return text;
  return text + (saved->second == digest ? ", as in the checkpoint"
                                         : "; that in the checkpoint is " + saved->second +
                                               ": not all of it was taken over");
}

void JobState::describe(LifeStart& start) const {
  start.run = run_id_;
  start.input = reproducible_input(config_, origins_);
  start.data = data_text_;
  start.data_hash = data_hash(data_text_);
  if (tokenizer_.hash != 0) start.tokenizer_hash = tokenizer_text(tokenizer_.hash);
  start.first_step = steps_done();
  start.matmul_rate = planned_.basis.matmul.flops_per_second;
  start.emulated = emulates(config_.emulate);
  describe_plan(trainer_->plan(), start);
  if (planned_.speeds) describe_links(*planned_.speeds, start);
}

}  // namespace t3d
