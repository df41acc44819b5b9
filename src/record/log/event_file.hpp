// Event files of TensorBoard, as bytes: records framed as TFRecord (length, its CRC, data, their
// CRC; all little-endian, CRCs are CRC32C, masked), each of which is a protobuf message Event.
// Sources: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto and
// framework/summary.proto. Written and read by hand: four message types with seven fields.
// Internal to `io`.
#pragma once
#include <functional>
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

struct FoundEvents {
  index_t bytes = 0;  // where they end
  bool has_steps = false;
};
/// The records of a file up to the first one of a step behind `last_step`; where one is torn or
/// damaged, up to it, or to a later one. Of a long file a small part is read. Error(io).
[[nodiscard]] FoundEvents find_events(const std::string& path, index_t last_step);

/// Tells the steps of the records of a file that have numbers, as they stand there, of those that
/// begin at byte `from` or behind it. Error(io).
void for_each_event_step(const std::string& path, const std::function<void(index_t)>& see,
                         index_t from = 0);
/// The first of these.
[[nodiscard]] std::optional<index_t> first_logged_step(const std::string& path);

/// Where the process that wrote the file began; nothing where its head does not say.
[[nodiscard]] std::optional<index_t> first_event_step(const std::string& path);

}  // namespace t3d
