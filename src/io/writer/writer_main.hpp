// The program as the process that writes a checkpoint (writer_process.hpp).
#pragma once
#include <optional>

namespace t3d {

inline constexpr const char* kWriterCommand = "checkpoint-writer";
inline constexpr int kSnapshotFile = 3, kAnswerFile = 4;

/// First thing in a program that saves in the background: the exit status where it was started to
/// write a checkpoint, nothing else. Reads the task from standard input, answers on standard
/// output.
[[nodiscard]] std::optional<int> run_checkpoint_writer(int argc, char** argv);

}  // namespace t3d
