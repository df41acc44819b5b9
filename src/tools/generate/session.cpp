#include "tools/generate/session.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace t3d {
namespace {

/// Of the ids that only the model has (a vocabulary padded upwards), which mean nothing to the
/// tokenizer, the ends of a text alone. `room`: for numbers that do not stand one after the other.
std::span<const float> choices(std::span<const float> known, std::span<const float> all,
                               const std::vector<std::int32_t>& ends, std::vector<float>& room) {
  room.clear();
  for (const std::int32_t end : ends) {
    const auto id = static_cast<std::size_t>(end);
    if (id < known.size() || id >= all.size()) continue;
    if (room.empty()) room.assign(known.begin(), known.end());
    if (id >= room.size()) room.resize(id + 1, -std::numeric_limits<float>::infinity());
    room[id] = all[id];
  }
  return room.empty() ? known : std::span<const float>(room);
}

class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

Session::Session(JobDecoder& model, const Tokenizer& tokenizer, const SessionOptions& options,
                 TextWriter& writer, std::string model_name)
    : model_(model),
      tokenizer_(tokenizer),
      options_(options),
      writer_(writer),
      model_name_(std::move(model_name)) {}

SessionTimes Session::run(const std::vector<EncodedPrompt>& prompts, index_t slots) {
  slots_.resize(static_cast<std::size_t>(slots));
  const auto some = [&] {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const auto& slot) { return slot.has_value(); });
  };
  do {
    fill_slots(prompts);
    write_step(prompts);
  } while (some() || next_ < prompts.size());
  return times_;
}

// The prompt's ids go through the stream too: what comes behind them may depend on them.
Session::Text Session::text_for(const EncodedPrompt& prompt, index_t number) const {
  Text text{
      number, prompt.ids, 0, {}, tokenizer_.stream(Specials::skip), StopStrings(options_.stops)};
  for (const std::int32_t id : prompt.ids) (void)text.characters->feed(id);
  return text;
}

// Reading a prompt gives its first token too.
void Session::fill_slots(const std::vector<EncodedPrompt>& prompts) {
  const Stopwatch watch(times_.read_seconds);
  std::vector<Decoder::Prompt> reading;
  for (std::size_t slot = 0; slot < slots_.size() && next_ < prompts.size(); ++slot) {
    if (slots_[slot]) continue;
    const EncodedPrompt& prompt = prompts[next_];
    slots_[slot] = text_for(prompt, static_cast<index_t>(next_++));
    writer_.begin(prompt.text);
    if (options_.tokens > 0) {
      reading.push_back({static_cast<index_t>(slot), prompt.ids});
      times_.read_tokens += std::ssize(prompt.ids);
    } else {
      finish(static_cast<index_t>(slot), "length", prompt);
    }
  }
  if (reading.empty()) return;
  const std::vector<float> logits = model_.read(reading);
  for (std::size_t at = 0; at < reading.size(); ++at) {
    const index_t slot = reading[at].slot;
    const auto number = slots_[static_cast<std::size_t>(slot)]->number;
    add_token(slot, logits.data() + static_cast<index_t>(at) * model_.vocab(),
              prompts[static_cast<std::size_t>(number)]);
  }
}

void Session::write_step(const std::vector<EncodedPrompt>& prompts) {
  const Stopwatch watch(times_.write_seconds);
  std::vector<Decoder::Next> going_on;
  std::vector<Decoder::Prompt> sliding;  // the context is full: its last tokens are read again
  for (std::size_t at = 0; at < slots_.size(); ++at) {
    if (!slots_[at]) continue;
    const auto slot = static_cast<index_t>(at);
    const std::vector<std::int32_t>& ids = slots_[at]->ids;
    if (std::ssize(ids) <= model_.capacity())
      going_on.push_back({slot, ids.back()});
    else
      sliding.push_back({slot, {ids.end() - model_.capacity(), ids.end()}});
  }
  const auto add = [&](const auto& texts, const std::vector<float>& logits) {
    for (std::size_t at = 0; at < texts.size(); ++at) {
      const index_t slot = texts[at].slot;
      const auto number = slots_[static_cast<std::size_t>(slot)]->number;
      add_token(slot, logits.data() + static_cast<index_t>(at) * model_.vocab(),
                prompts[static_cast<std::size_t>(number)]);
    }
    times_.timed_tokens += std::ssize(texts);
  };
  if (!going_on.empty()) add(going_on, model_.go_on(going_on));
  if (!sliding.empty()) add(sliding, model_.read(sliding));
}

void Session::add_token(index_t slot, const float* logits, const EncodedPrompt& prompt) {
  const std::span<const float> row(logits, static_cast<std::size_t>(model_.vocab()));
  if (std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); }))
    throw_error(ExitCode::diverged, "the logits of {} are no numbers", model_name_);
  Text& text = *slots_[static_cast<std::size_t>(slot)];
  const auto known = static_cast<std::size_t>(tokenizer_.vocab());
  std::vector<float> room;
  const std::int32_t id = choose_token(choices(row.first(known), row, options_.ends, room),
                                       options_.sampling, text.number, text.added);
  if (std::ranges::find(options_.ends, id) != options_.ends.end())
    return finish(slot, "eos", prompt);
  text.ids.push_back(id);
  ++text.added;
  ++times_.written_tokens;
  show(text, text.stops.add(text.characters->feed(id)));
  if (text.stops.any()) show(text, text.stops.add_special(special_text_of(id)));
  if (text.stops.stopped()) return finish(slot, "stop", prompt);
  if (text.added == options_.tokens) finish(slot, "length", prompt);
}

/// Empty for tokens that are text themselves.
std::string Session::special_text_of(std::int32_t id) const {
  const std::span<const std::int32_t> one(&id, 1);
  return tokenizer_.decode(one).empty() ? tokenizer_.decode(one, Specials::show) : std::string();
}

void Session::show(Text& text, std::string_view piece) {
  writer_.piece(piece);
  text.text += piece;
}

void Session::finish(index_t slot, std::string_view why, const EncodedPrompt& prompt) {
  std::optional<Text>& text = slots_[static_cast<std::size_t>(slot)];
  if (!text->stops.stopped()) {
    show(*text, text->stops.add(text->characters->finish()));
    if (text->stops.stopped()) why = "stop";
    show(*text, text->stops.rest());
  }
  writer_.finish(text->number, {prompt.text, text->text, text->added, why});
  text.reset();
}

}  // namespace t3d
