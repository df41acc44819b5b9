// Signals that ask the run to stop at the next step (INT, TERM, USR1, USR2, HUP). They are blocked
// everywhere and taken by a thread that waits for them, so that no handler ever interrupts
// generated code in the middle of a matmul. A second INT within two seconds ends the program at
// once. PIPE is ignored: a training goes on, with its log files, when nobody reads its screen. XFSZ
// is ignored: a file beyond the limit of sizes (ulimit -f) is an error of that file, as on a full
// disk. A signal that the parent had ignored (nohup) stays ignored.
#pragma once
#include <chrono>
#include <functional>

namespace t3d {

/// First thing in the program: threads made later (MPI's, OpenMP's) inherit it.
void block_stop_signals();
/// Whoever prints for others dies of PIPE like any filter.
void restore_pipe_signal();
/// The commands that neither checkpoint nor measure die of these signals as usual, and of PIPE.
void unblock_stop_signals();
/// For a command with something to clear away: a thread waits for the first of these signals, calls
/// `clean_up`, and lets the process die of that signal.
void die_of_stop_signals(void (*clean_up)());
/// The next of them that is not ignored, or 0 after so long.
[[nodiscard]] int wait_for_stop_signal(std::chrono::milliseconds limit);
/// Starts the waiting thread.
void catch_stop_signals();
/// From now on, in the waiting thread, when the first signal comes; {} = nobody. At once where one
/// has come.
void answer_stop_signals(std::function<void(int signal)> answer);
/// The signal that came, or 0.
[[nodiscard]] int stop_signal();

}  // namespace t3d
