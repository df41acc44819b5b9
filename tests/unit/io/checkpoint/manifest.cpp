// A manifest with a right CRC and wrong contents: an error with exit code 74, never a crash, and
// nothing outside of the checkpoint's folder is touched.
#include "io/checkpoint/manifest.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;
using Json = nlohmann::json;

namespace {

constexpr index_t kLargest = std::numeric_limits<index_t>::max();

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The text of a manifest with its last line made right, as format_manifest does.
std::string sealed(const std::string& body) {
  return body + fmt::format("\"crc32c\": \"{:08x}\"}}\n", crc32c(body));
}

/// A checkpoint of two ranks whose manifest can be changed.
class Victim {
 public:
  Victim() {
    run_local_ranks(2, [&](Communicator& world) {
      RankState state = make_state(tensors_, 3, 2, world.rank());
      fill(tensors_, state, 1);
      save_checkpoint(world, {folder_.path(), 1, 2, 0, true}, {1, "r", {{"input", "x"}}},
                      state.parts, true);
    });
    const std::string text = read_all(path());
    json_ = Json::parse(text);
    REQUIRE(sealed(text.substr(0, text.rfind('\n', text.size() - 2) + 1)) == text);
  }
  [[nodiscard]] std::string path() const { return folder_.path() + "/step-00000001/MANIFEST.json"; }
  [[nodiscard]] const Json& json() const { return json_; }
  /// With `mark` in the text replaced.
  void write(Json json, const std::string& mark = {}, const std::string& by = {}) const {
    json.erase("crc32c");
    std::string body = json.dump();
    body.back() = ',';
    if (!mark.empty()) body.replace(body.find(mark), mark.size(), by);
    std::ofstream(path(), std::ios::trunc) << sealed(body + "\n");
  }
  /// 0, or the exit code with which loading ends.
  ExitCode load() const {
    try {
      run_local_ranks(2, [&](Communicator& world) {
        RankState state = make_state(tensors_, 8, 2, world.rank());
        load_checkpoint(world, folder_.path() + "/step-00000001", state.parts);
      });
    } catch (const Error& error) {
      UNSCOPED_INFO(error.what());
      return error.code();
    }
    return ExitCode::done;
  }

 private:
  std::vector<TestTensor> tensors_ = small_tensors();
  ScratchFolder folder_{"manifest"};
  Json json_;
};

}  // namespace

TEST_CASE("manifests that lead outside of a tensor, a file or the folder") {
  const Victim victim;
  victim.write(victim.json());
  REQUIRE(victim.load() == ExitCode::done);  // the CRC is made right
  const std::string name = "embed.token.weight";
  using Change = std::function<void(Json&)>;
  std::vector<std::pair<std::string, Change>> changes;
  const auto add = [&](const std::string& what, const Change& change) {
    changes.emplace_back(what, change);
  };
  const std::vector<Json> numbers{
      -1,    kLargest, kLargest - 1, -kLargest, index_t{1} << 62, index_t{1} << 33,
      1e300, 0.5,      "1",          nullptr,   Json::array(),    18446744073709551615U};
  for (const Json& number : numbers) {
    const std::string text = number.dump();
    for (std::size_t field = 0; field < 7; ++field)
      add(fmt::format("box number {} is {}", field, text),
          [=](Json& json) { json["tensors"][name]["boxes"][0][field] = number; });
    for (std::size_t field = 0; field < 2; ++field)
      add(fmt::format("shape number {} is {}", field, text),
          [=](Json& json) { json["tensors"][name]["shape"][field] = number; });
    for (const std::size_t field : {0U, 1U, 2U})
      add(fmt::format("table number {} is {}", field, text),
          [=](Json& json) { json["files"][0]["crc_table"][field] = number; });
    add("bytes are " + text, [=](Json& json) { json["files"][0]["bytes"] = number; });
    if (number != -1 && number != (index_t{1} << 33))
      add("step is " + text, [=](Json& json) { json["step"] = number; });
    if (number != (index_t{1} << 33))
      add("lineage is " + text, [=](Json& json) { json["lineage"]["number"] = number; });
  }
  add("products overflow to 0", [=](Json& json) {
    json["tensors"][name]["shape"] = {index_t{1} << 32, index_t{1} << 32};
    json["tensors"][name]["boxes"] = {{0, 0, 0, index_t{1} << 32, index_t{1} << 32, 0, 0}};
  });
  add("bytes overflow to 0", [=](Json& json) {
    json["tensors"][name]["shape"] = {1, index_t{1} << 62};
    json["tensors"][name]["boxes"] = {{0, 0, 0, 1, index_t{1} << 62, 0, 0}};
  });
  add("a hole", [=](Json& json) { json["tensors"][name]["boxes"].erase(0); });
  add("a box twice", [=](Json& json) {
    json["tensors"][name]["boxes"].push_back(json["tensors"][name]["boxes"][0]);
  });
  add("a short box", [=](Json& json) { json["tensors"][name]["boxes"][0].erase(0); });
  add("three extents", [=](Json& json) { json["tensors"][name]["shape"].push_back(1); });
  add("no extent", [=](Json& json) { json["tensors"][name]["shape"] = Json::array(); });
  add("no boxes", [=](Json& json) { json["tensors"][name]["boxes"] = nullptr; });
  add("unknown type", [=](Json& json) { json["tensors"][name]["dtype"] = "fp12"; });
  add("no files", [=](Json& json) { json["files"] = Json::array(); });
  add("files exchanged", [=](Json& json) { std::swap(json["files"][0], json["files"][1]); });
  add("one file twice", [=](Json& json) { json["files"][1] = json["files"][0]; });
  for (const char* other : {"../secret", "/etc/passwd", "..", ".", "", "a/b", "./x"})
    add(fmt::format("a file called '{}'", other),
        [=](Json& json) { json["files"][0]["name"] = other; });
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    Json json = victim.json();
    change(json);
    victim.write(json);
    CHECK(victim.load() == ExitCode::io);
  }
}

TEST_CASE("a manifest nested more deeply than any stack") {
  const Victim victim;
  constexpr std::size_t kDepth = 1000000;
  Json json = victim.json();
  json["files"][0]["bytes"] = "DEEP";
  victim.write(json, "\"DEEP\"", std::string(kDepth, '[') + std::string(kDepth, ']'));
  CHECK(victim.load() == ExitCode::io);
}

TEST_CASE("names that lead out of the folder are not opened though they are there") {
  const Victim victim;
  namespace fs = std::filesystem;
  Json json = victim.json();
  const std::string name = json["files"][0]["name"];
  const fs::path folder = fs::path(victim.path()).parent_path();
  fs::rename(folder / name, folder.parent_path() / name);
  json["files"][0]["name"] = "../" + name;
  victim.write(json);
  CHECK(victim.load() == ExitCode::io);
  json["files"][0]["name"] = (folder.parent_path() / name).string();
  victim.write(json);
  CHECK(victim.load() == ExitCode::io);
}

TEST_CASE("a manifest that says nothing of lineages is of lineage 0") {
  const Victim victim;
  Json json = victim.json();
  REQUIRE(json.erase("lineage") == 1);
  victim.write(json);
  CHECK(victim.load() == ExitCode::done);
  CHECK(parse_manifest(read_all(victim.path()), "x").state.lineage == Lineage{});
}

TEST_CASE("a lineage comes back as it was written") {
  Manifest manifest;
  manifest.state.lineage = {7, "step-00000030.lineage-3", "run \"q\"", 30, 3};
  CHECK(parse_manifest(format_manifest(manifest), "x").state.lineage == manifest.state.lineage);
}
