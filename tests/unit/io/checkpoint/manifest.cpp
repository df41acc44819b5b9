// A manifest with a right CRC and wrong contents: an error with exit code 74, never a crash, and
// nothing outside of the checkpoint's folder is touched.
#include "io/checkpoint/manifest.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/checkpoint/fragment.hpp"
#include "io/checkpoint/manifest_text.hpp"
#include "io/crc32c.hpp"
#include "support/bytes_read.hpp"
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

/// A checkpoint of two ranks whose manifest and first index can be changed.
class Victim {
 public:
  Victim() {
    run_local_ranks(2, [&](Communicator& world) {
      RankState state = make_state(tensors_, 3, 2, world.rank());
      fill(tensors_, state, 1);
      save_checkpoint(world, {folder_.path(), 1, 2, 0, true}, {1, "r", {{"input", "x"}}},
                      state.parts, true);
    });
    json_ = Json::parse(read_all(path()));
    index_ = Json::parse(read_all(index_path()));
  }
  [[nodiscard]] std::string index_path() const {
    return folder_.path() + "/step-00000001/" + std::string(json_["files"][0]["index"]["name"]);
  }
  [[nodiscard]] const Json& index() const { return index_; }
  /// The manifest means this index.
  void write_index(Json index) const {
    index.erase("crc32c");
    const Json tensors = index["tensors"];
    index.erase("tensors");
    std::string head = index.dump();
    head.back() = ',';
    std::string body = head + "\n\"tensors\": {";
    const char* separator = "\n";
    for (const auto& [name, boxes] : tensors.items()) {
      body += separator + Json(name).dump() + ": " + boxes.dump();
      separator = ",\n";
    }
    const std::string text = sealed(body + "\n},\n", "index");
    std::ofstream(index_path(), std::ios::trunc) << text;
    Json json = json_;
    json["files"][0]["index"]["bytes"] = text.size();
    json["files"][0]["index"]["crc32c"] = crc32c(text);
    write(json);
  }
  [[nodiscard]] std::string path() const { return folder_.path() + "/step-00000001/MANIFEST.json"; }
  [[nodiscard]] const Json& json() const { return json_; }
  /// With `mark` in the text replaced.
  void write(Json json, const std::string& mark = {}, const std::string& by = {}) const {
    json.erase("crc32c");
    std::string body = json.dump();
    body.back() = ',';
    if (!mark.empty()) body.replace(body.find(mark), mark.size(), by);
    std::ofstream(path(), std::ios::trunc) << sealed(body + "\n", "manifest");
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
  Json json_, index_;
};

}  // namespace

TEST_CASE("manifests that lead outside of a tensor, a file or the folder") {
  const Victim victim;
  victim.write(victim.json());
  REQUIRE(victim.load() == ExitCode::done);  // the CRC is made right
  const std::string name = "embed.token.weight";
  const auto range_of_tensor = [](Json& json, const std::string& tensor) -> Json& {
    return json["cuts"][json["tensors"][tensor]["cut"].get<std::size_t>()][0];
  };
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
    for (std::size_t field = 0; field < 5; ++field)
      add(fmt::format("range number {} is {}", field, text),
          [=](Json& json) { range_of_tensor(json, name)[field] = number; });
    add("boxes are " + text, [=](Json& json) { range_of_tensor(json, name)[5] = number; });
    for (const char* field : {"bytes", "crc32c"})
      add(fmt::format("index's {} are {}", field, text),
          [=](Json& json) { json["files"][0]["index"][field] = number; });
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
  });
  add("a cut that is not there", [=](Json& json) { json["tensors"][name]["cut"] = 1000; });
  add("a file fewer",
      [=](Json& json) { json["cuts"][json["tensors"][name]["cut"].get<std::size_t>()].erase(0); });
  add("a file twice in a cut", [=](Json& json) {
    Json& cut = json["cuts"][json["tensors"][name]["cut"].get<std::size_t>()];
    cut.push_back(cut[0]);
  });
  add("a short range", [=](Json& json) { range_of_tensor(json, name).erase(0); });
  add("three extents", [=](Json& json) { json["tensors"][name]["shape"].push_back(1); });
  add("no extent", [=](Json& json) { json["tensors"][name]["shape"] = Json::array(); });
  add("no cuts", [=](Json& json) { json["cuts"] = Json::array(); });
  add("no index", [=](Json& json) { json["files"][0].erase("index"); });
  add("unknown type", [=](Json& json) { json["tensors"][name]["dtype"] = "fp12"; });
  add("no files", [=](Json& json) { json["files"] = Json::array(); });
  add("files exchanged", [=](Json& json) { std::swap(json["files"][0], json["files"][1]); });
  add("one file twice", [=](Json& json) { json["files"][1] = json["files"][0]; });
  for (const char* other : {"../secret", "/etc/passwd", "..", ".", "", "a/b", "./x"})
    add(fmt::format("a file called '{}'", other),
        [=](Json& json) { json["files"][0]["name"] = other; });
  for (const char* other : {"../secret", "..", "", "a/b"})
    add(fmt::format("an index called '{}'", other),
        [=](Json& json) { json["files"][0]["index"]["name"] = other; });
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    Json json = victim.json();
    change(json);
    victim.write(json);
    CHECK(victim.load() == ExitCode::io);
  }
}

TEST_CASE("indexes that lead outside of a tensor or a file, or are not whole") {
  const Victim victim;
  victim.write_index(victim.index());
  REQUIRE(victim.load() == ExitCode::done);
  const std::string name = victim.index()["tensors"].begin().key();
  using Change = std::function<void(Json&)>;
  std::vector<std::pair<std::string, Change>> changes;
  for (const Json& number :
       std::vector<Json>{-1, kLargest, kLargest - 1, -kLargest, index_t{1} << 62, 1e300, 0.5, "1",
                         nullptr, Json::array(), 18446744073709551615U})
    for (std::size_t field = 0; field < 6; ++field)
      changes.emplace_back(fmt::format("box number {} is {}", field, number.dump()),
                           [=](Json& json) { json["tensors"][name][0][field] = number; });
  changes.emplace_back("a hole", [=](Json& json) { json["tensors"][name].erase(0); });
  changes.emplace_back("a box twice", [=](Json& json) {
    json["tensors"][name].push_back(json["tensors"][name][0]);
  });
  changes.emplace_back("a short box", [=](Json& json) { json["tensors"][name][0].erase(0); });
  changes.emplace_back("no boxes", [=](Json& json) { json["tensors"][name] = nullptr; });
  changes.emplace_back("no tensor", [=](Json& json) { json["tensors"].erase(name); });
  changes.emplace_back("of another file", [=](Json& json) { json["file"] = "node-00009.x.h5"; });
  changes.emplace_back("another version", [=](Json& json) { json["version"] = 7; });
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    Json json = victim.index();
    change(json);
    victim.write_index(json);
    CHECK(victim.load() == ExitCode::io);
  }
  victim.write_index(victim.index());
  CHECK(victim.load() == ExitCode::done);
  std::string text = read_all(victim.index_path());
  for (std::size_t at = 0; at < text.size(); at += text.size() / 37 + 1) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(victim.index_path(), std::ios::trunc) << changed;
    CHECK(victim.load() == ExitCode::io);
  }
  std::filesystem::remove(victim.index_path());
  CHECK(victim.load() == ExitCode::io);
}

TEST_CASE("what nobody would read again is refused when it is written") {
  FileIndex index;
  for (index_t n = 0; n < 100; ++n) index["w"].push_back({{n, 0, 1, 4}, n * 16, n});
  const std::string text = format_index("node-00000.x.h5", index);
  CHECK_NOTHROW(format_index("node-00000.x.h5", index, std::ssize(text)));
  CHECK_THROWS_WITH(format_index("node-00000.x.h5", index, std::ssize(text) - 1),
                    t3d::test::contains("index-00000.x.json would have"));
  CHECK_THROWS_WITH(sealed("{\n", "MANIFEST.json", 10), t3d::test::contains("MANIFEST.json would"));
}

/// The highest resident memory since `work` began, beyond what there was then.
index_t memory_of(const std::function<void()>& work) {
  const auto kib = [](const std::string& wanted) {
    std::ifstream lines("/proc/self/status");
    std::string name;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(wanted)) return index_t{std::atoll(line.c_str() + wanted.size())};
    return index_t{0};
  };
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const index_t before = kib("VmRSS:");
  work();
  return (kib("VmHWM:") - before) << 10;
}

TEST_CASE("a manifest grows with the files and not with the boxes") {
  // T3D_BOXES_PER_FILE: how docs/numbers.md was measured.
  const char* wish = std::getenv("T3D_BOXES_PER_FILE");
  const index_t files = wish != nullptr ? 1000 : 50, tensors = 100;
  const index_t boxes = (wish != nullptr ? std::atoll(wish) : 1000) / tensors;
  const ScratchFolder folder("many_boxes");
  std::string whole;
  Manifest manifest;
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  const auto start = clock();
  for (index_t number = 0; number < files; ++number) {
    std::map<std::string, StoredShape> shapes;
    FileIndex index;
    for (index_t t = 0; t < tensors; ++t) {
      const std::string name = fmt::format("blocks.{}.weight", t);
      shapes[name] = {DType::f32, files * boxes, 8, false};
      for (index_t n = 0; n < boxes; ++n)
        index[name].push_back({{number * boxes + n, 0, 1, 8}, (t * boxes + n) * 32, t * boxes + n});
    }
    Fragment fragment = fragment_of(shapes, index);
    ManifestFile file;
    file.name = fmt::format("node-{:05}.x.h5", number);
    file.bytes = tensors * boxes * 40;
    file.table_count = tensors * boxes;
    const std::string text = format_index(file.name, index);
    file.index = index_name_of(file.name);
    file.index_bytes = std::ssize(text);
    file.index_crc = crc32c(text);
    std::ofstream(folder.path() + "/" + file.index) << text;
    std::ofstream(folder.path() + "/" + file.name) << "x";
    fragment.files.push_back(file);
    whole = join_texts(whole, text_of(fragment));
  }
  CHECK_NOTHROW(check_cover(parse_fragment(whole)));
  const std::string text = format_manifest(manifest_of({}, parse_fragment(whole)));
  const auto written = clock();
  manifest = parse_manifest(text, "x");
  CHECK(manifest.cuts.size() == 1);
  CHECK(std::ssize(text) < files * 300 + tensors * 100 + 1000);
  const FileIndex index = read_index(folder.path(), manifest, files / 2);
  const auto read = clock();
  CHECK(index.size() == static_cast<std::size_t>(tensors));
  CHECK(std::ssize(index.at("blocks.7.weight")) == boxes);
  const FileIndex one = read_index(folder.path(), manifest, 3, {"blocks.7.weight"});
  CHECK(one.size() == 1);
  // The master takes some tensors at a time, and reads the indexes for it once, and their lines.
  index_t index_bytes = 0;
  for (const ManifestFile& file : manifest.files) index_bytes += file.index_bytes;
  if (wish == nullptr) {
    const index_t before = bytes_read_so_far();
    (void)write_master(folder.path(), manifest, false, files * boxes * 4);
    CHECK(bytes_read_so_far() - before < 5 * index_bytes / 2);
  }
  const auto seconds = [](auto from, auto to) {
    return std::chrono::duration<double>(to - from).count();
  };
  if (wish == nullptr) return;
  const auto lines_from = clock();
  std::vector<IndexLines> lines;
  for (index_t number = 0; number < files; ++number)
    lines.emplace_back(folder.path(), manifest, number);
  for (const auto& [name, tensor] : manifest.tensors)
    for (const IndexLines& of_file : lines) CHECK(of_file.read({name}).size() == 1);
  WARN(fmt::format(
      "{} boxes: root of {} bytes, {:.2f} s to write all, {:.4f} s for a rank to "
      "read root and one index of {} bytes; the indexes tensor by tensor, as the "
      "master needs them: {:.1f} s for {} bytes",
      files * tensors * boxes, text.size(), seconds(start, written), seconds(written, read),
      manifest.files[0].index_bytes, seconds(lines_from, clock()), index_bytes));
}

TEST_CASE("a forecast of an index holds for reading and writing it") {
  constexpr index_t kTensors = 50, kBoxes = 6000;
  const ScratchFolder folder("one_index");
  std::map<std::string, StoredShape> shapes;
  FileIndex index;
  for (index_t t = 0; t < kTensors; ++t) {
    const std::string name = fmt::format("blocks.{}.weight", t);
    shapes[name] = {DType::f32, 1000 * kBoxes, 8192, false};
    for (index_t n = 0; n < kBoxes; ++n)
      index[name].push_back(
          {{1000 * n, 0, 1000, 8192}, (t * kBoxes + n) * 32768000, (t * kBoxes + n) * 32});
  }
  Fragment fragment = fragment_of(shapes, index);
  ManifestFile file;
  file.name = "node-00000.x.h5";
  file.bytes = kTensors * kBoxes * 32768000 + (index_t{1} << 30);
  file.table_count = kTensors * kBoxes * 32;  // blocks of 1 MiB
  const index_t writing = memory_of([&] {
    const std::string text = format_index(file.name, index);
    file.index_bytes = std::ssize(text);
    file.index_crc = crc32c(text);
    std::ofstream(folder.path() + "/" + (file.index = index_name_of(file.name))) << text;
  });
  index.clear();
  fragment.files.push_back(file);
  const Manifest manifest = manifest_of({}, fragment);
  const index_t reading = memory_of([&] {
    CHECK(read_index(folder.path(), manifest, 0).size() == static_cast<std::size_t>(kTensors));
  });
  INFO("bytes a box: " << writing / (kTensors * kBoxes) << " written, "
                       << reading / (kTensors * kBoxes) << " read");
  // Written: beside the index itself.
  CHECK(writing + kTensors * kBoxes * static_cast<index_t>(sizeof(ManifestPiece)) <
        kTensors * kBoxes * kIndexBytesPerBox);
  CHECK(reading < kTensors * kBoxes * kIndexBytesPerBox);
  if (std::getenv("T3D_BOXES_PER_FILE") != nullptr)
    WARN(fmt::format("a box takes {} bytes while an index is written, {} while it is read",
                     writing / (kTensors * kBoxes), reading / (kTensors * kBoxes)));
}

TEST_CASE("sums of boxes find what is missing, twice there, or elsewhere") {
  const auto fault = [](const std::vector<Box>& boxes) {
    CoverSum sum;
    for (const Box& box : boxes) sum = sum + cover_sum(box);
    return cover_sum_fault(sum, 7, 9);
  };
  CHECK(fault({{0, 0, 7, 9}}).empty());
  CHECK(fault({{3, 0, 4, 9}, {0, 5, 3, 4}, {0, 0, 3, 5}}).empty());
  CHECK(fault({{3, 0, 4, 9}, {0, 0, 3, 5}}) == "12 of 63 elements are in no box");
  CHECK(!fault({{3, 0, 4, 9}, {0, 5, 3, 4}, {0, 1, 3, 5}}).empty());  // as many, shifted
  CHECK(!fault({{0, 0, 7, 9}, {0, 0, 1, 1}}).empty());
  CHECK(!fault({{0, 0, 9, 7}}).empty());  // as many, transposed
  CHECK(cover_sum_fault({}, 0, 12).empty());
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
