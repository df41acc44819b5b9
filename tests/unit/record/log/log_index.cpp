// Missing steps of a long log without reading all of it.
#include "record/log/log_index.hpp"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "record/log/record_search.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

constexpr double kAll = 1e9;  // seconds

std::string line(index_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"text\":\"" + std::string(10000, 'x') + "\"}\n";
}

/// Of 10 kB a step; without some steps.
void write_log(const std::string& path, index_t steps) {
  std::ofstream file(path);
  for (index_t step = 1; step <= steps; ++step)
    if (step != 5 && step != 6000) file << line(step);
}

}  // namespace

TEST_CASE("an index knows what a long log lacks, while it fits") {
  const test::ScratchFolder folder("log_index");
  const std::string path = folder.path() + "/log.jsonl";
  write_log(path, 10000);  // 100 MB
  LogIndex first(path);
  CHECK(first.known_bytes() == 0);
  first.read_on(kAll);
  first.save();
  CHECK(first.missing().text() == "steps 5 and 6000");
  CHECK(first.known_bytes() == file_size(path));

  LogIndex second(path);
  CHECK(second.known_bytes() > file_size(path) / 2);
  CHECK(second.missing().text() == "steps 5 and 6000");
  CHECK(missing_steps(path, 1 << 26).text() == "steps 5 and 6000");

  // Cut back: the marks before the cut count.
  std::filesystem::resize_file(
      path, static_cast<std::uintmax_t>(find_records(path, step_of_line, 5000).bytes));
  LogIndex third(path);
  CHECK(third.known_bytes() > file_size(path) / 2);
  third.read_on(kAll);
  CHECK(third.missing().text() == "step 5");
  CHECK(third.missing().last() == 5000);
  // Grown by other steps, as another lineage has them, or edited: it is read again.
  std::ofstream(path, std::ios::app) << line(5001);
  std::ofstream(folder.path() + "/edited") << line(2) << std::ifstream(path).rdbuf();
  std::filesystem::rename(folder.path() + "/edited", path);
  CHECK(LogIndex(path).known_bytes() == 0);
  // A damaged index is none.
  std::ofstream(folder.path() + "/log.index") << "{\"end\":";
  CHECK(LogIndex(path).known_bytes() == 0);
}

TEST_CASE("the index follows a log that grows") {
  const test::ScratchFolder folder("log_index");
  const std::string path = folder.path() + "/log.jsonl";
  {
    StepLines log(path, LogIndex(path));
    for (index_t step = 1; step <= 8000; ++step)
      if (step != 7) {
        std::string text = line(step);
        text.pop_back();
        CHECK(log.put(text).empty());
      }
  }
  const LogIndex index(path);
  CHECK(index.known_bytes() > 3 * file_size(path) / 4);
  CHECK(index.missing().text() == "step 7");
}

TEST_CASE("the end of the records up to a step") {
  const test::ScratchFolder folder("log_index");
  const std::string path = folder.path() + "/log.jsonl";
  std::string text;
  std::vector<std::size_t> ends{0};
  for (index_t step = 1; step <= 300; ++step) {
    text += line(step);
    ends.push_back(text.size());
    if (step % 7 == 0) text += "no record\n";
  }
  std::ofstream(path) << text << std::string(3000000, '\0') << "\n{\"step\":301";
  for (index_t step = 0; step <= 300; step += 3) {
    const FoundRecords found = find_records(path, step_of_line, step);
    CHECK(found.bytes == static_cast<index_t>(ends[static_cast<std::size_t>(step)]));
    if (step > 0) CHECK(found.last == step);
  }
  CHECK(find_records(path, step_of_line, 400).last == 300);
}

}  // namespace t3d
