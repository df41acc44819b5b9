// Main of the unit tests: in one process, but for those that write checkpoints.
#include "io/writer/writer_main.hpp"
#include "support/test_runner.hpp"

int main(int argc, char** argv) {
  if (const auto status = t3d::run_checkpoint_writer(argc, argv)) return *status;
  return t3d::test::run_tests(argc, argv);
}
