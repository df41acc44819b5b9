// Main of the tests that run in one process.
#include <cstdio>
#include <cstdlib>

#include "support/test_runner.hpp"

int main(int argc, char** argv) {
  return t3d::test::run_tests(argc, argv, [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::_Exit(1);
  });
}
