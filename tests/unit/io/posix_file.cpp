// Files that are written whole or not at all: what stood there before, and what a failure leaves.
#include "io/posix_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/error.hpp"
#include "io/partial_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;

namespace fs = std::filesystem;

TEST_CASE("a durable write follows links and replaces regular files only", "[posix_file]") {
  const ScratchFolder scratch("posix_file");
  const std::string dir = scratch.path();
  fs::create_directory(dir + "/elsewhere");
  fs::create_symlink("elsewhere/target", dir + "/link");
  fs::create_symlink(dir + "/link", dir + "/chain");
  for (const char* text : {"first", "second"}) {  // at first the links lead to nothing
    write_text_durably(dir + "/chain", text);
    CHECK(fs::is_symlink(dir + "/chain"));
    CHECK(fs::is_symlink(dir + "/link"));
    CHECK(read_text_file(dir + "/elsewhere/target") == text);
  }
  fs::create_symlink("ring", dir + "/ring");
  CHECK_THROWS_WITH(write_text_durably(dir + "/ring", "x"), contains("ring"));

  REQUIRE(::mkfifo((dir + "/pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", dir + "/to_pipe");
  for (const char* name : {"/pipe", "/to_pipe"}) {
    CHECK_THROWS_WITH(write_text_durably(dir + name, "x"), contains("is not a regular file"));
    CHECK_THROWS_WITH(PartialFile(dir + name), contains("is not a regular file"));
  }
  CHECK(fs::is_fifo(dir + "/pipe"));
  CHECK_THROWS_WITH(write_text_durably(dir + "/elsewhere", "x"), contains("is a folder"));
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    CHECK(entry.path().extension() != ".tmp");
}

TEST_CASE("a durable write that fails leaves the old text and nothing else", "[posix_file]") {
  const ScratchFolder scratch("posix_file");
  const std::string file = scratch.path() + "/file";
  write_text_durably(file, "old");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_THROWS_WITH(write_text_durably(file, std::string(100, 'x')), contains("too large"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, action);
  CHECK(read_text_file(file) == "old");
  CHECK_FALSE(fs::exists(file + ".tmp"));
}

TEST_CASE("below a file there is nothing, which is no fault", "[posix_file]") {
  const ScratchFolder scratch("posix_below");
  write_text_durably(scratch.path() + "/file", "text");
  CHECK_FALSE(path_exists(scratch.path() + "/file/below"));
  CHECK_FALSE(is_folder(scratch.path() + "/file/below/that"));
  CHECK(path_exists(scratch.path() + "/file"));
}
