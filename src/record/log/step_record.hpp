// What one step did, for people (a line of fixed columns) and for programs (a JSON object).
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run_event.hpp"

namespace t3d {

/// Of a validation set; data.valid has no name.
struct NamedLoss {
  std::string name;
  double loss = 0;
  bool whole = false;  // of the whole set; else of its first batches
};

/// Numbers that are not finite are not known: a dash in the line, null in JSON.
struct StepRecord {
  index_t step = 0, steps = 0;
  double loss = 0, grad_norm = 0, lr = 0;
  double seconds = 0, tokens = 0, tokens_per_second = 0;
  /// How often the text (of a mixture the one that is read most) has been read; known where the run
  /// reads it more than once.
  double epochs = std::numeric_limits<double>::quiet_NaN();
  double predicted_seconds = std::numeric_limits<double>::quiet_NaN();  // by hetero.cluster
  /// Of the matmul rate measured at the start, and of the data sheets' peak.
  double mfu = std::numeric_limits<double>::quiet_NaN();
  double mfu_of_peak = std::numeric_limits<double>::quiet_NaN();
  double imbalance = 0, comm_fraction = 0;
  std::vector<RankTimes> ranks;         // of `measured`; empty where they were not gathered
  MeasuredStep measured;                // mostly the step before, maybe under another plan
  std::vector<index_t> slab_sequences;  // of the step, by slab, replica after replica
  bool emulated = false;                // some rank is made slower
  std::map<std::string, double> phase_seconds;
  std::map<std::string, index_t> bytes_by_axis;
  index_t memory_bytes = 0;
  std::vector<NamedLoss> validations;  // of data.valid and each [[data.validation]]
  double gain = std::numeric_limits<double>::quiet_NaN();  // of adasum
  /// StepReport's; not numbers where nothing is known. noise_sequences: the batch at which signal
  /// and noise of the gradient are equal.
  double gradient_signal = std::numeric_limits<double>::quiet_NaN();
  double gradient_noise = std::numeric_limits<double>::quiet_NaN();
  double noise_sequences = std::numeric_limits<double>::quiet_NaN();
  std::vector<int> left_out;         // gradients that were not finite
  std::optional<double> loss_scale;  // where it changes
};

/// Where log.jsonl has it: "valid_loss"; of a set with a name it stands under that name in
/// "valid_losses". Losses of whole sets are figures of their own, "valid_loss_whole" and
/// "valid_losses_whole": those of the first batches of a set are others, with other noise.
[[nodiscard]] const char* valid_key(const NamedLoss& set);

/// "step 120/18865  loss 6.1342  norm 1.02  lr 1.03e-04  412 ms  1.27k tok/s  mfu 38%  imb 4%
///  comm 21%  left 05:41", the columns padded on the right so that they stand still; where the peak
/// is known "mfu 38%  peak 31%", and where the text is read more than once "epoch 1.27  left
/// 05:41".
[[nodiscard]] std::string step_line(const StepRecord& record, double seconds_left);

/// One line of log.jsonl, without the newline.
[[nodiscard]] std::string step_json(const StepRecord& record);

/// The other way round, for other forms of the log: without what is a list there. Nothing where the
/// line is no record.
[[nodiscard]] std::optional<StepRecord> parse_step(std::string_view line);

[[nodiscard]] std::string short_count(double count);   // 1.27k, 412, 3.40M
[[nodiscard]] std::string short_bytes(double bytes);   // 1.50 MiB
[[nodiscard]] std::string short_time(double seconds);  // 412 ms, 12.3 s
[[nodiscard]] std::string clock_time(double seconds);  // 05:41, 3:05:41, 2d 03:05:41

}  // namespace t3d
