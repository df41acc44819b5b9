#include "tools/generate/job_decoder.hpp"

namespace t3d {
namespace {

enum : std::int32_t { kEnd, kRead, kGoOn };

}  // namespace

JobDecoder::JobDecoder(Communicator& world, LoadedModel& loaded, index_t slots, index_t capacity)
    : world_(world), loaded_(loaded) {
  all_or_none(world, [&] {
    decoder_ = std::make_unique<Decoder>(loaded.formation->context(), loaded.formation->model(),
                                         slots, capacity);
  });
}

index_t JobDecoder::vocab() const { return loaded_.config.model.vocab; }

std::vector<float> JobDecoder::read(const std::vector<Decoder::Prompt>& prompts) {
  Words words{kRead};
  for (const Decoder::Prompt& prompt : prompts) {
    words.push_back(static_cast<std::int32_t>(prompt.slot));
    words.push_back(static_cast<std::int32_t>(prompt.ids.size()));
    words.insert(words.end(), prompt.ids.begin(), prompt.ids.end());
  }
  return run(std::move(words));
}

std::vector<float> JobDecoder::go_on(const std::vector<Decoder::Next>& tokens) {
  Words words{kGoOn};
  for (const Decoder::Next& next : tokens) {
    words.push_back(static_cast<std::int32_t>(next.slot));
    words.push_back(1);
    words.push_back(next.id);
  }
  return run(std::move(words));
}

void JobDecoder::end() { (void)run({kEnd}); }

void JobDecoder::follow() {
  Words words{kRead};
  while (words.front() != kEnd) {
    std::int32_t count = 0;
    world_.broadcast({&count, DType::i32, 1, 1}, 0).wait_host();
    words.resize(static_cast<std::size_t>(count));
    world_.broadcast({words.data(), DType::i32, 1, count}, 0).wait_host();
    (void)compute(words);
  }
}

std::vector<float> JobDecoder::run(Words words) {
  busy_ = true;
  if (world_.size() > 1) {
    auto count = static_cast<std::int32_t>(words.size());
    world_.broadcast({&count, DType::i32, 1, 1}, 0).wait_host();
    world_.broadcast({words.data(), DType::i32, 1, count}, 0).wait_host();
  }
  std::vector<float> logits = compute(words);
  busy_ = false;
  return logits;
}

std::vector<float> JobDecoder::compute(const Words& words) {
  std::vector<Decoder::Prompt> prompts;
  for (std::size_t at = 1; at < words.size();) {
    const auto ids = words.begin() + static_cast<std::ptrdiff_t>(at) + 2;
    prompts.push_back({words[at], {ids, ids + words[at + 1]}});
    at += 2 + prompts.back().ids.size();
  }
  if (words.front() == kRead) return decoder_->read(prompts);
  if (words.front() == kEnd) return {};
  std::vector<Decoder::Next> tokens;
  for (const Decoder::Prompt& prompt : prompts) tokens.push_back({prompt.slot, prompt.ids.front()});
  return decoder_->go_on(tokens);
}

}  // namespace t3d
