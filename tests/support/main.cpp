// Main of the tests that run in one process.
#include "support/test_runner.hpp"

int main(int argc, char** argv) { return t3d::test::run_tests(argc, argv); }
