// A folder that is not the same for all nodes is noticed, by all ranks, and nothing stays in it.
#include "io/checkpoint/shared_folder.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

/// What each of four ranks hears, on three nodes; `dirs` by rank.
std::vector<std::string> heard(const std::vector<std::string>& dirs) {
  std::vector<std::string> result(dirs.size(), "nothing");
  run_local_ranks(4, [&](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    try {
      check_shared_folder(world, {0, 1, 1, 2}, dirs[rank], "token", 0.2);
    } catch (const AgreedError& error) {
      result[rank] = error.what();
    }
  });
  return result;
}

}  // namespace

TEST_CASE("one folder for all is right") {
  const ScratchFolder folder("shared");
  for (const std::string& text : heard({4, folder.path()})) CHECK(text == "nothing");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a node with another folder of that name is noticed") {
  const ScratchFolder folder("shared"), other("other");
  const auto texts = heard({folder.path(), folder.path(), folder.path(), other.path()});
  for (const std::string& text : texts) CHECK(text == texts.front());
  CHECK_THAT(texts.front(), Catch::Contains("is not seen on node"));
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(std::filesystem::is_empty(other.path()));
}

TEST_CASE("a node without the folder is noticed") {
  const ScratchFolder folder("shared");
  const auto texts = heard({folder.path(), folder.path() + "/none", folder.path(), folder.path()});
  for (const std::string& text : texts) CHECK(text == texts.front());
  CHECK_THAT(texts.front(), Catch::Contains("does not have the folder"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace t3d::test
