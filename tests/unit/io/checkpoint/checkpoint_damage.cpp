// Whatever happens to the files of the newest checkpoint: it is seen, named, and the older one is
// taken; or the numbers are right all the same.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;
namespace fs = std::filesystem;

namespace {

std::vector<TestTensor> tensors_of_blocks() {
  auto tensors = small_tensors();
  tensors.push_back({"blocks", DType::f32, 600, 1024, false});  // more than two CRC blocks
  return tensors;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Two checkpoints, steps 1 and 2, of the same two ranks.
class Pair {
 public:
  Pair() : folder_("damage") {
    for (const index_t step : {1, 2})
      run_local_ranks(2, [&](Communicator& world) {
        RankState state = make_state(tensors_, 3, 2, world.rank());
        fill(tensors_, state, step);
        save_checkpoint(world, {folder_.path(), 1, 2, 0, true}, {step, "r", {}}, state.parts, true);
      });
  }
  [[nodiscard]] std::string at(index_t step, const std::string& name) const {
    return folder_.path() + "/step-0000000" + std::to_string(step) + "/" + name;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(at(2, ""))) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// The step that a job of two other ranks continues from; 0 when there is none.
  index_t load() {
    warnings = "";
    std::atomic<index_t> wrong{0}, step{0};
    run_local_ranks(2, [&](Communicator& world) {
      RankState state = make_state(tensors_, 8, 2, world.rank());
      const auto info = load_newest(world, folder_.path(), always(state.parts),
                                    [&](const std::string& text) { warnings += text; });
      if (!info) return;
      step = info->state.step;
      wrong += wrong_elements(tensors_, state, info->state.step);
    });
    CHECK(wrong == 0);
    return step;
  }
  /// Loads with `path` holding `bytes` instead, then puts it right again.
  index_t load_with(const std::string& path, const std::string& bytes) {
    const std::string whole = read_all(path);
    write_all(path, bytes);
    const index_t step = load();
    write_all(path, whole);
    return step;
  }
  std::string warnings;

 private:
  std::vector<TestTensor> tensors_ = tensors_of_blocks();
  ScratchFolder folder_;
};

bool verifies(const std::string& folder) {
  try {
    static_cast<void>(describe_checkpoint(folder, true));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a flipped bit anywhere is seen or harmless") {
  Pair pair;
  std::mt19937 random(1);
  int fell_back = 0;
  for (std::size_t trial = 0; trial < 200; ++trial) {
    const auto files = pair.files();
    const std::string path = files[trial % files.size()];
    const std::string whole = read_all(path);
    std::string bytes = whole;
    const std::size_t place = random() % bytes.size();
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << (random() % 8)));
    CAPTURE(path, place);
    const index_t step = pair.load_with(path, bytes);
    CHECK((step == 1 || step == 2));
    if (step == 1) CHECK(pair.warnings.find("step-00000002") != std::string::npos);
    fell_back += step == 1;
    if (trial % 10 == 0) {  // reading everything sees every bit
      write_all(path, bytes);
      CHECK_FALSE(verifies(pair.at(2, "")));
      write_all(path, whole);
    }
  }
  CHECK(fell_back > 100);
  CHECK(pair.load() == 2);
}

TEST_CASE("a file cut short, grown, emptied or gone") {
  Pair pair;
  for (const std::string& path : pair.files()) {
    CAPTURE(path);
    const bool needed = path.find("master") == std::string::npos;
    const std::string whole = read_all(path);
    const index_t expected = needed ? 1 : 2;
    CHECK(pair.load_with(path, whole.substr(0, whole.size() / 2)) == expected);
    CHECK(pair.load_with(path, whole.substr(0, whole.size() - 1)) == expected);
    CHECK(pair.load_with(path, whole + "x") == expected);
    CHECK(pair.load_with(path, "") == expected);
    fs::remove(path);
    CHECK(pair.load() == expected);
    write_all(path, whole);
  }
  CHECK(pair.load() == 2);
}

TEST_CASE("4 KiB of zeros, blocks exchanged, blocks of another step") {
  Pair pair;
  constexpr std::size_t kBlock = 1 << 20;
  const std::string numbers(kBlock, '\0');
  for (const int number : {0, 1}) {
    const std::string path = node_file(pair.at(2, ""), number);
    const std::string whole = read_all(path), older = read_all(node_file(pair.at(1, ""), number));
    REQUIRE(whole.size() == older.size());
    for (std::size_t place = 0; place + 4096 <= whole.size(); place += whole.size() / 7) {
      std::string bytes = whole;
      bytes.replace(place, 4096, std::string(4096, '\0'));
      static_cast<void>(pair.load_with(path, bytes));
      bytes = whole;
      bytes.replace(place, 4096, older, place, 4096);
      static_cast<void>(pair.load_with(path, bytes));
      bytes = whole;
      std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(place),
                       bytes.begin() + static_cast<std::ptrdiff_t>(place) + 2048,
                       bytes.begin() + static_cast<std::ptrdiff_t>(place) + 2048);
      static_cast<void>(pair.load_with(path, bytes));
    }
    CHECK(pair.load_with(path, older) == 1);  // a whole file of the step before
  }
  const std::string first = read_all(node_file(pair.at(2, ""), 0));
  CHECK(pair.load_with(node_file(pair.at(2, ""), 1), first) == 1);
}

TEST_CASE("a bad manifest, an older one, and none") {
  Pair pair;
  const std::string path = pair.at(2, "MANIFEST.json");
  const std::string whole = read_all(path);
  CHECK(pair.load_with(path, "{}\n") == 1);
  CHECK(pair.load_with(path, "not json") == 1);
  CHECK(pair.load_with(path, read_all(pair.at(1, "MANIFEST.json"))) == 1);
  std::string edited = whole;
  edited.replace(edited.find("\"step\": 2"), 9, "\"step\": 3");
  CHECK(pair.load_with(path, edited) == 1);
  fs::remove(path);  // never published, then
  CHECK(pair.load() == 1);
  CHECK(pair.warnings.find("step-00000002: it has no MANIFEST.json") != std::string::npos);
  fs::remove(pair.at(1, "MANIFEST.json"));
  CHECK_THROWS_WITH(pair.load(), t3d::test::contains("not one MANIFEST.json"));
}

TEST_CASE("when everything is damaged, the run does not start over by itself") {
  Pair pair;
  for (const index_t step : {1, 2}) write_all(pair.at(step, "MANIFEST.json"), "{}");
  CHECK_THROWS_WITH(pair.load(), t3d::test::contains("no valid checkpoint"));
}

TEST_CASE("find takes the newest whose sizes are right") {
  Pair pair;
  const auto find = [&] {
    std::string found;
    run_local_ranks(2, [&](Communicator& world) {
      const auto info = find_checkpoint(world, fs::path(pair.at(2, "")).parent_path().parent_path(),
                                        [&](const std::string& text) { pair.warnings += text; });
      if (world.rank() == 0) found = info ? info->path : "";
    });
    return found + "/";
  };
  CHECK(find() == pair.at(2, ""));
  fs::resize_file(node_file(pair.at(2, ""), 1), 100);
  CHECK(find() == pair.at(1, ""));
  CHECK(pair.warnings.find("node-00001.") != std::string::npos);
}
