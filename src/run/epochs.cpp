#include "run/epochs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "config/data_lists.hpp"
#include "core/commas.hpp"
#include "record/log/step_record.hpp"

namespace t3d {

std::vector<EpochSource> epoch_sources(const BatchSource& train, const DataConfig& data) {
  std::vector<EpochSource> sources;
  for (std::size_t at = 0; at < train.parts().size(); ++at) {
    const auto tokens = static_cast<double>(train.parts()[at].tokens->size());
    if (data.sources.empty())
      sources.push_back({"", tokens, 1});
    else
      sources.push_back({source_name(data, at), tokens, data.sources[at].weight});
  }
  return sources;
}

namespace {

/// Of `tokens` over all sources, those of each.
std::vector<double> shares_of(const std::vector<EpochSource>& sources, double tokens) {
  double weights = 0;
  for (const EpochSource& source : sources) weights += source.weight;
  std::vector<double> shares;
  for (const EpochSource& source : sources) shares.push_back(tokens * source.weight / weights);
  return shares;
}

double most_epochs(const std::vector<EpochSource>& sources, double tokens) {
  const std::vector<double> shares = shares_of(sources, tokens);
  double most = 0;
  for (std::size_t at = 0; at < sources.size(); ++at)
    most = std::max(most, shares[at] / sources[at].tokens);
  return most;
}

}  // namespace

double EpochCount::most() const {
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  return most_epochs(sources_, all_) > 1 ? most_epochs(sources_, done_) : kNotKnown;
}

std::string EpochCount::remark() const {
  const std::vector<double> shares = shares_of(sources_, done_);
  std::string text;
  for (std::size_t at = 0; at < sources_.size(); ++at) {
    const std::string& name = sources_[at].name;
    text += fmt::format("{}{}{}", text.empty() ? "epochs so far: " : ", ",
                        readable(shares[at] / sources_[at].tokens),
                        name.empty() ? "" : " of source " + name);
  }
  return text;
}

EpochText epoch_text(const std::vector<EpochSource>& sources, double tokens) {
  const std::vector<double> shares = shares_of(sources, tokens);
  EpochText text;
  std::string often;
  for (std::size_t at = 0; at < sources.size(); ++at) {
    const EpochSource& source = sources[at];
    const double read = shares[at], epochs = read / source.tokens;
    text.lines.push_back(fmt::format("tokens in all {}{}, corpus {}: {} {}", short_count(read),
                                     source.name.empty() ? "" : " of source " + source.name,
                                     short_count(source.tokens), readable(epochs),
                                     epochs == 1 ? "epoch" : "epochs"));
    if (epochs <= kMostEpochs) continue;
    often += (often.empty() ? "" : ", ") +
             fmt::format("{} times{}", readable(epochs),
                         source.name.empty() ? "" : " (source " + source.name + ")");
  }
  if (!often.empty())
    text.warning = fmt::format(
        "the run reads its text {}; up to {:g} times repeated text is about as good as fresh text, "
        "beyond that it helps less and less (Muennighoff et al. 2023): take more text, or fewer "
        "steps, and watch the validation loss",
        often, kMostEpochs);
  return text;
}

}  // namespace t3d
