// Event files of TensorBoard, as bytes: records framed as TFRecord (length, its CRC, data, their
// CRC; all little-endian, CRCs are CRC32C, masked), each of which is a protobuf message Event.
// Sources: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto and
// framework/summary.proto. Written and read by hand: four message types with seven fields.
// Internal to `io`.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// A tag and its number.
using EventScalar = std::pair<std::string, double>;

/// `data` in its frame.
[[nodiscard]] std::string tf_record(std::string_view data);

/// Messages, without their frames. `seconds`: since 1970.
/// The first one of a file.
[[nodiscard]] std::string version_event(double seconds);
/// A process begins to write at `step`: a reader forgets what it has read of that step and of those
/// behind it.
[[nodiscard]] std::string start_event(double seconds, index_t step);
/// In single precision, which is what the format has.
[[nodiscard]] std::string scalar_event(double seconds, index_t step,
                                       const std::vector<EventScalar>& scalars);

/// The records of `text`, frames included, without those of steps behind `last_step`; what follows
/// a record that is torn or damaged is left out, too. Nothing where no step is left.
[[nodiscard]] std::optional<std::string> events_until(std::string_view text, index_t last_step);

/// The steps of the records of `text` that have numbers, as they stand there.
[[nodiscard]] std::vector<index_t> event_steps(std::string_view text);

}  // namespace t3d
