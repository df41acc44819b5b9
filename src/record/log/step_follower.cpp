#include "record/log/step_follower.hpp"

#include <algorithm>
#include <cmath>

#include "io/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr index_t kAtOnce = 1 << 20;

std::string read_up_to(const FileReader& file, index_t from, index_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(static_cast<std::size_t>(file.read_up_to(from, text.data(), bytes)));
  return text;
}

}  // namespace

StepFollower::StepFollower(std::string path, index_t most_bytes)
    : path_(std::move(path)), most_bytes_(most_bytes) {}

void StepFollower::forget() {
  offset_ = 0;
  last_line_.clear();
  losses_.clear();
  last_.reset();
  ranks_.reset();
  missing_ = MissingSteps();
}

void StepFollower::read_on() {
  if (file_size(path_) < 0) return forget();
  const FileReader file(path_);
  const auto known = std::ssize(last_line_);
  if (file.size() < offset_ || read_up_to(file, offset_ - known, known) != last_line_) forget();
  bool whole = true;  // the next line begins where reading does
  if (offset_ == 0 && file.size() > most_bytes_) {
    offset_ = file.size() - most_bytes_;
    whole = false;
  }
  std::string text;
  index_t end = offset_;
  while (end < file.size()) {
    const std::string piece = read_up_to(file, end, std::min(kAtOnce, file.size() - end));
    if (piece.empty()) break;
    end += std::ssize(piece);
    text += piece;
    std::size_t at = 0;
    for (std::size_t line; (line = text.find('\n', at)) != std::string::npos; at = line + 1) {
      last_line_ = text.substr(at, line + 1 - at);
      offset_ += std::ssize(last_line_);
      if (whole) take(last_line_);
      whole = true;
    }
    text.erase(0, at);
  }
}

void StepFollower::take(const std::string& line) {
  const auto json = parse_object(line);
  const auto step = json ? count_of(*json, "step") : std::nullopt;
  if (!step) return;
  const auto number = [&](const char* key) {
    return number_of(*json, key).value_or(FollowedStep::kNotKnown);
  };
  missing_.add(*step);
  FollowedStep now;
  now.step = *step;
  now.steps = count_of(*json, "steps").value_or(0);
  now.loss = number("loss");
  now.grad_norm = number("grad_norm");
  now.lr = number("lr");
  now.seconds = number("seconds");
  now.tokens_per_second = number("tokens_per_second");
  now.mfu = number("mfu");
  now.comm_fraction = number("comm_fraction");
  now.imbalance = number("imbalance");
  if (std::isfinite(now.loss)) losses_.emplace_back(now.step, now.loss);
  last_ = now;
  const auto times = json->find("rank_milliseconds");
  if (times == json->end() || !times->is_object() || !times->contains("own")) return;
  FollowedRanks ranks{count_of(*times, "measured_step").value_or(*step), {}};
  for (const auto& own : (*times)["own"])
    ranks.own.push_back(own.is_number() ? own.get<double>() : FollowedStep::kNotKnown);
  ranks_ = std::move(ranks);
}

}  // namespace t3d
