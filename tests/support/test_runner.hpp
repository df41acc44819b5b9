// Runs the tests of one process: a Catch2 session under a watchdog thread that names the running
// test and ends the process when a single test case takes too long (T3D_TEST_SECONDS, default 60).
#pragma once
#include <functional>
#include <string>

namespace t3d::test {

/// Exit status of the session. `on_timeout` gets what to say and must end the process.
int run_tests(int argc, char** argv, const std::function<void(const std::string&)>& on_timeout);
/// Of a program without MPI: who hangs ends it.
int run_tests(int argc, char** argv);

}  // namespace t3d::test
