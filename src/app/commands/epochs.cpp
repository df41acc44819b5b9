#include "app/commands/epochs.hpp"

#include <fmt/format.h>

#include "app/config/data_lists.hpp"
#include "io/log/step_record.hpp"

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

EpochText epoch_text(const std::vector<EpochSource>& sources, double tokens) {
  double weights = 0;
  for (const EpochSource& source : sources) weights += source.weight;
  EpochText text;
  std::string often;
  for (const EpochSource& source : sources) {
    const double read = tokens * source.weight / weights, epochs = read / source.tokens;
    text.lines.push_back(fmt::format("tokens in all {}{}, corpus {}: {:.3g} {}", short_count(read),
                                     source.name.empty() ? "" : " of source " + source.name,
                                     short_count(source.tokens), epochs,
                                     epochs == 1 ? "epoch" : "epochs"));
    if (epochs <= kMostEpochs) continue;
    often += (often.empty() ? "" : ", ") +
             fmt::format("{:.3g} times{}", epochs,
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
