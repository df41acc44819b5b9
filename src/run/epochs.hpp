// How often a run reads its texts.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "data/batch_source.hpp"

namespace t3d {

struct EpochSource {
  std::string name;  // empty = the only one
  double tokens = 0, weight = 1;
};

struct EpochText {
  std::vector<std::string> lines;
  std::string warning;  // empty = no text is read too often
};

/// Repeating a text up to four times is about as good as fresh text; beyond that it is worth less
/// and less (Muennighoff et al. 2023, Scaling Data-Constrained Language Models).
inline constexpr double kMostEpochs = 4;

/// Those of data.train, or of a mixture.
[[nodiscard]] std::vector<EpochSource> epoch_sources(const BatchSource& train,
                                                     const DataConfig& data);

/// `tokens`: all that the run reads.
[[nodiscard]] EpochText epoch_text(const std::vector<EpochSource>& sources, double tokens);

/// How often a run has read its texts so far.
class EpochCount {
 public:
  EpochCount() = default;
  /// `done`, `all`: tokens that the run has read before, and reads in all.
  EpochCount(std::vector<EpochSource> sources, double done, double all)
      : sources_(std::move(sources)), done_(done), all_(all) {}

  void read(double tokens) { done_ += tokens; }
  /// Of the source that is read most often; not a number where the run reads none more than once.
  [[nodiscard]] double most() const;
  /// For the end of a run: of each source; empty where no sources are known.
  [[nodiscard]] std::string remark() const;

 private:
  std::vector<EpochSource> sources_;
  double done_ = 0, all_ = 0;
};

}  // namespace t3d
