// Signals that ask the run to stop at the next step (INT, TERM, USR2, HUP). The handler stores a
// flag and nothing else; a second INT within two seconds ends the program at once.
#pragma once

namespace t3d {

void catch_stop_signals();
/// The signal that came, or 0.
[[nodiscard]] int stop_signal();

}  // namespace t3d
