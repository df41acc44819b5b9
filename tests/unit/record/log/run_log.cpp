// The run's files and screen: fixed forms, restarts, disks that fail.
#include "record/log/run_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "record/log/csv_log.hpp"
#include "record/log/event_file.hpp"
#include "record/log/progress_bar.hpp"
#include "record/log/step_scalars.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

/// A folder of its own, and a file that stands for the screen.
class Scene {
 public:
  Scene() : dir_(fs::temp_directory_path() / ("t3d_run_log_" + std::to_string(getpid()))) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    screen_ = std::fopen((dir_ / "screen").c_str(), "w");
  }
  ~Scene() {
    std::fclose(screen_);
    fs::remove_all(dir_);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  [[nodiscard]] RunLogOptions options() const {
    RunLogOptions options;
    options.dir = path("run");
    options.screen = screen_;
    return options;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (dir_ / name).string(); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  fs::path dir_;
  std::FILE* screen_ = nullptr;
};

StepRecord example(index_t step = 120, index_t steps = 18865) {
  StepRecord record;
  record.step = step;
  record.steps = steps;
  record.loss = 6.13421;
  record.grad_norm = 1.021;
  record.lr = 1.034e-4;
  record.seconds = 0.412;
  record.tokens = 523;
  record.tokens_per_second = 1270;
  record.mfu = 0.38;
  record.imbalance = 0.04;
  record.comm_fraction = 0.21;
  record.phase_seconds = {{"matmul", 0.3}};
  record.bytes_by_axis = {{"i", 100}, {"k", 7}};
  record.memory_bytes = 1 << 20;
  return record;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

index_t count_of(const std::string& text, const std::string& part) {
  index_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the step line has its fixed form") {
  CHECK(step_line(example(12000), 341) ==
        "step 12000/18865  loss 6.1342  norm 1.02  lr 1.03e-04  412 ms  1.27k tok/s  mfu 38%  "
        "imb 4%   comm 21%  left 05:41");
  // The columns stand still from the first step to the last.
  StepRecord twice = example(12000);
  twice.epochs = 1.274;
  CHECK(step_line(twice, 341).ends_with("comm 21%  epoch 1.27  left 05:41"));
  CHECK(step_line(example(1), 1).find("loss") == step_line(example(18865), 1).find("loss"));
  StepRecord unknown = example();
  unknown.mfu = std::nan("");
  unknown.loss = INFINITY;
  unknown.validations = {{"", 5.5}};
  const std::string line = step_line(unknown, NAN);
  CHECK(line.find("mfu -") != std::string::npos);
  CHECK(line.find("loss -") != std::string::npos);
  CHECK(line.find("left -  valid 5.5000") != std::string::npos);
}

TEST_CASE("a validation of a whole set is told apart from one of its first batches") {
  StepRecord record = example();
  record.validations = {{"", 5.5}, {"", 5.25, true}, {"news", 4}, {"news", 3.5, true}};
  CHECK(step_line(record, 60)
            .ends_with("left 01:00  valid 5.5000  whole valid 5.2500  valid news 4.0000  whole "
                       "valid news 3.5000"));
  const std::string json = step_json(record);
  CHECK(json.find(R"("valid_loss":5.5,"valid_loss_whole":5.25,"valid_losses":{"news":4.0},)"
                  R"("valid_losses_whole":{"news":3.5},)") != std::string::npos);
  const auto back = parse_step(json);
  REQUIRE(back);
  CHECK(step_json(*back).find(R"("valid_losses_whole":{"news":3.5})") != std::string::npos);
  std::vector<std::string> curves;
  for (const auto& [name, number] : step_scalars(*back))
    if (name.starts_with("valid")) curves.push_back(name);
  CHECK(curves == std::vector<std::string>{"valid_loss", "valid_losses/news", "valid_loss_whole",
                                           "valid_losses_whole/news"});
  // What earlier versions wrote.
  const auto old = parse_step(R"({"step":3,"steps":9,"valid_loss":2.5})");
  REQUIRE(old);
  REQUIRE(old->validations.size() == 1);
  CHECK_FALSE(old->validations.front().whole);
}

TEST_CASE("numbers for people") {
  CHECK(short_count(999.4) == "999");
  CHECK(short_count(999.6) == "1.00k");
  CHECK(short_count(1.27e6) == "1.27M");
  CHECK(short_count(12.7e6) == "12.7M");
  CHECK(short_bytes(1000) == "1000 B");
  CHECK(short_bytes(1536) == "1.50 KiB");
  CHECK(short_bytes(2.0 * (1 << 30)) == "2.00 GiB");
  CHECK(short_time(0.00123) == "1.23 ms");
  CHECK(short_time(0.412) == "412 ms");
  CHECK(short_time(12.34) == "12.3 s");
  CHECK(clock_time(341) == "05:41");
  CHECK(clock_time(3 * 3600 + 341) == "3:05:41");
  CHECK(clock_time(2 * 86400.0 + 3 * 3600 + 341) == "2d 03:05:41");
  CHECK(clock_time(-1) == "00:00");
}

TEST_CASE("the bar never exceeds the terminal") {
  for (int columns = 1; columns < 200; ++columns) {
    CHECK(progress_text(example(9000), 341, columns).size() <
          static_cast<std::size_t>(std::max(columns, 1)));
  }
  const std::string wide = progress_text(example(18865), 0, 150);
  CHECK(wide.find("[========================================]") == 0);
  CHECK(wide.find("100%  18865/18865  loss 6.1342  1.27k tok/s  left 00:00") != std::string::npos);
}

TEST_CASE("lines go to screen and run.log, every step to log.jsonl") {
  Scene scene;
  {
    RunLogOptions options = scene.options();
    options.every_steps = 5;
    RunLog log(options);
    log.note("hello");
    log.warn("slow disk");
    for (index_t step = 1; step <= 12; ++step) log.step(example(step, 12));
    log.write_resolved("version = 1\n");
    EndTable table{"done", 12, 10, 1270, {}, {{"matmul", 4, 5, 6}}, {{"i", 10, 10}, {"k", 3, 4}}};
    log.finish(table);
  }
  for (const char* name : {"screen", "run/run.log"}) {
    const std::string text = scene.read(name);
    CHECK(count_of(text, "step ") - count_of(text, "at step ") == 4);  // 1, 5, 10, 12
    CHECK(text.find("hello\nwarning: slow disk\n") != std::string::npos);
    CHECK(text.find("done: 12 steps in 00:10, 1.27k tok/s") != std::string::npos);
    CHECK(text.find("\033") == std::string::npos);
  }
  const std::string table = scene.read("screen");
  CHECK(table.find("matmul                 4.000       5.000       6.000    50.0%") !=
        std::string::npos);
  CHECK(table.find("other                  5.000") != std::string::npos);
  CHECK(count_of(table, "differ") == 1);
  CHECK(scene.read("run/resolved.toml") == "version = 1\n");
  CHECK_FALSE(fs::exists(scene.path("run/resolved.toml.tmp")));

  const std::vector<std::string> lines = lines_of(scene.read("run/log.jsonl"));
  REQUIRE(lines.size() == 12);
  CHECK(lines[0] ==
        R"({"step":1,"steps":12,"loss":6.13421,"grad_norm":1.021,"lr":0.0001034,"seconds":0.412,)"
        R"("tokens":523.0,"tokens_per_second":1270.0,"mfu":0.38,"imbalance":0.04,)"
        R"("comm_fraction":0.21,"phase_seconds":{"matmul":0.3},"bytes_by_axis":{"i":100,"k":7},)"
        R"("memory_bytes":1048576})");
  CHECK(lines[11].starts_with("{\"step\":12,"));
}

TEST_CASE("the times of the ranks name their step and its slabs, which may be others than now") {
  StepRecord record = example();
  record.ranks = {{}, {}};
  record.measured = {7, 0, 1, {3, 5}, false};
  record.slab_sequences = {4, 4};
  const std::string line = step_json(record);
  CHECK(line.find(R"("measured_step":7,"measured_slabs":[3,5]})") != std::string::npos);
  CHECK(line.find(R"("slab_sequences":[4,4])") != std::string::npos);
}

TEST_CASE("numbers that are not finite are null in JSON") {
  StepRecord record = example();
  record.loss = std::nan("");
  record.validations = {{"", 2}};
  CHECK(step_json(record).find(R"("loss":null,"valid_loss":2.0,)") != std::string::npos);
}

TEST_CASE("the log of a lineage stays beside that of the next, and comes back with it") {
  Scene scene;
  const auto run = [&](const LogLineage& lineage, index_t from, index_t to) {
    RunLogOptions options = scene.options();
    options.lineage = lineage;
    options.start_step = from;
    options.csv = options.tensorboard = true;
    RunLog log(options);
    for (index_t step = from + 1; step <= to; ++step) log.step(example(step, 20));
  };
  // The other two forms have the same steps.
  const auto steps = [&](std::string name) {
    const index_t lines = count_of(scene.read(name), "\"step\":");
    name.resize(name.size() - std::string("jsonl").size());
    CHECK(std::ssize(lines_of(scene.read(name + "csv"))) == lines + 1);
    name.replace(name.find("/log"), 4, "/tensorboard");
    name.pop_back();
    index_t events = 0;
    for (const std::string& file : list_folder(scene.path(name)))
      events += count_of(scene.read(name + "/" + file), "step/loss");
    CHECK(events == lines);
    return lines;
  };
  run({0, true, -1}, 0, 9);
  // Anew, and killed before its first checkpoint, twice; then the first lineage goes on.
  run({1, true, -1}, 0, 3);
  CHECK(steps("run/log.jsonl") == 3);
  CHECK(steps("run/log.lineage-0.jsonl") == 9);
  run({1, true, -1}, 0, 2);
  CHECK(steps("run/log.lineage-0.jsonl") == 9);
  run({0, false, -1}, 8, 10);
  CHECK(steps("run/log.jsonl") == 10);
  for (const char* name : {"log.lineage-0.jsonl", "log.lineage-0.csv", "tensorboard.lineage-0"})
    CHECK_FALSE(fs::exists(scene.path("run") + "/" + name));
  // Anew with checkpoints; then from the first lineage again.
  run({1, true, -1}, 0, 4);
  run({1, false, -1}, 4, 5);
  CHECK(steps("run/log.jsonl") == 5);
  run({2, true, 0}, 6, 7);
  CHECK(steps("run/log.jsonl") == 7);
  CHECK(steps("run/log.lineage-0.jsonl") == 10);
  CHECK(steps("run/log.lineage-1.jsonl") == 5);
}

TEST_CASE("a log that is off stays in step with the run") {
  Scene scene;
  RunLogOptions options = scene.options();
  options.csv = options.tensorboard = true;
  const auto run = [&](index_t from, index_t to) {
    options.start_step = from;
    RunLog log(options);
    for (index_t step = from + 1; step <= to; ++step) log.step(example(step, 20));
  };
  run(0, 5);
  options.csv = options.tensorboard = options.json = false;
  run(3, 9);
  options.csv = options.tensorboard = options.json = true;
  run(8, 9);
  CHECK(count_of(scene.read("run/log.jsonl"), "\"step\":") == 4);  // 1, 2, 3, 9
  CHECK(lines_of(scene.read("run/log.csv")).size() == 5);
  const auto files = list_folder(scene.path("run/tensorboard"));
  CHECK(files.size() == 2);
  index_t events = 0;
  for (const std::string& file : files)
    events += count_of(scene.read("run/tensorboard/" + file), "step/loss");
  CHECK(events == 4);
}

TEST_CASE("a restart drops what lies behind the checkpoint") {
  Scene scene;
  RunLogOptions options = scene.options();
  {
    RunLog log(options);
    for (index_t step = 1; step <= 9; ++step) log.step(example(step, 20));
  }
  { std::ofstream(scene.path("run/log.jsonl"), std::ios::app) << "{\"step\": 10, \"lo"; }
  options.start_step = 6;
  {
    RunLog log(options);
    log.step(example(7, 20));
  }
  const std::vector<std::string> lines = lines_of(scene.read("run/log.jsonl"));
  REQUIRE(lines.size() == 7);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i].starts_with(fmt::format("{{\"step\":{},", i + 1)));
  }
  CHECK(count_of(scene.read("run/run.log"), "start at step") == 2);
  CHECK(count_of(scene.read("run/run.log"), "step 9/20") == 1);  // the human log only grows
}

TEST_CASE("the cut needs no second file, and where it fails the run goes on without the log") {
  Scene scene;
  RunLogOptions options = scene.options();
  const auto run = [&](index_t from, index_t to) {
    options.start_step = from;
    RunLog log(options);
    for (index_t step = from + 1; step <= to; ++step) log.step(example(step, 20));
  };
  run(0, 9);
  const std::string whole = scene.read("run/log.jsonl");
  const auto file = fs::path(scene.path("run/log.jsonl"));
  fs::create_hard_link(file, scene.path("same"));
  fs::create_directories(scene.path("run/log.jsonl.tmp"));  // no second file can be made
  run(6, 7);
  CHECK(fs::equivalent(file, scene.path("same")));
  CHECK(lines_of(scene.read("run/log.jsonl")).size() == 7);
  fs::remove(file);
  // Memory that cannot become shorter stands for a file system that refuses.
  const int memory = memfd_create("log", MFD_ALLOW_SEALING);
  REQUIRE(memory >= 0);
  REQUIRE(write(memory, whole.data(), whole.size()) == std::ssize(whole));
  REQUIRE(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  fs::create_symlink(fmt::format("/proc/self/fd/{}", memory), file);
  run(4, 6);
  CHECK(scene.read("run/log.jsonl") == whole);
  CHECK(count_of(scene.read("run/run.log"), "cannot be cut back to step 4 (cannot cut") == 1);
  CHECK(count_of(scene.read("run/run.log"), "step 6/20") == 2);
  close(memory);
}

TEST_CASE("a new lineage without room for the steps before goes on, and says where they are") {
  Scene scene;
  RunLogOptions options = scene.options();
  const auto run = [&](const LogLineage& lineage, index_t from, index_t to) {
    options.lineage = lineage;
    options.start_step = from;
    RunLog log(options);
    for (index_t step = from + 1; step <= to; ++step) log.step(example(step, 20));
  };
  run({0, true, -1}, 0, 9);
  fs::create_directories(scene.path("run/log.jsonl.tmp"));
  run({1, true, 0}, 4, 6);
  CHECK(lines_of(scene.read("run/log.lineage-0.jsonl")).size() == 9);
  CHECK(lines_of(scene.read("run/log.jsonl")).size() == 2);
  CHECK(count_of(scene.read("run/run.log"), "log.jsonl begins behind step 4") == 1);
  // Once there is room, a start of the same lineage has all.
  fs::remove(scene.path("run/log.jsonl.tmp"));
  run({1, true, 0}, 4, 6);
  CHECK(lines_of(scene.read("run/log.jsonl")).size() == 6);
}

TEST_CASE("steps that log.jsonl lacks before the checkpoint are a warning") {
  Scene scene;
  RunLogOptions options = scene.options();
  const auto said = [&](const std::string& kept, index_t start_step, LogLineage lineage = {}) {
    fs::remove_all(scene.path("run"));
    fs::create_directories(scene.path("run"));
    std::ofstream(scene.path("run/log.jsonl")) << kept;
    options.start_step = start_step;
    options.lineage = lineage;
    const RunLog log(options);
    return scene.read("run/run.log");
  };
  std::string lines;
  for (const index_t step : {1, 2, 5, 6, 8}) lines += step_json(example(step, 20)) + "\n";
  CHECK(said(lines, 8).find("log.jsonl lacks steps 3 to 4 and 7: it was cut") != std::string::npos);
  CHECK(said(lines, 9).find("lacks steps 3 to 4, 7 and 9:") != std::string::npos);
  CHECK(said(lines, 6).find("lacks steps 3 to 4:") != std::string::npos);
  CHECK(count_of(said(lines, 2), "warning") == 0);
  CHECK(said("", 4).find("log.jsonl has no step, and the checkpoint is of step 4") !=
        std::string::npos);
  CHECK(count_of(said("", 0), "warning") == 0);
  // From a checkpoint of another folder: the log begins behind it.
  CHECK(count_of(said("", 4, {0, true, -1}), "warning") == 0);
}

TEST_CASE("what is switched on later gets the steps before from log.jsonl") {
  Scene scene;
  RunLogOptions options = scene.options();
  const auto run = [&](index_t from, index_t to) {
    options.start_step = from;
    RunLog log(options);
    for (index_t step = from + 1; step <= to; ++step) {
      StepRecord record = example(step, 20);
      record.imbalance = std::nan("");
      if (step % 3 == 0) record.validations = {{"", 5.5}, {"a b", 0.1}, {"c", 7}};
      if (step == 7) record.validations = {{"", 5.25, true}, {"a b", 0.5, true}};
      if (step > 1) record.gain = record.noise_sequences = 0.3 * static_cast<double>(step);
      if (step == 2) record.loss_scale = 1024;
      record.predicted_seconds = 1.0 / 3;
      record.mfu_of_peak = 1e-300;
      log.step(record);
    }
  };
  const auto events = [&](const std::string& folder) {
    std::vector<index_t> steps;
    std::vector<std::string> names = list_folder(scene.path(folder));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      for_each_event_step(scene.path(folder) + "/" + name,
                          [&](index_t step) { steps.push_back(step); });
    }
    return steps;
  };
  options.csv = options.tensorboard = true;
  run(0, 7);
  const std::string always = scene.read("run/log.csv");
  fs::remove_all(scene.path("run"));
  options.csv = options.tensorboard = false;
  run(0, 4);
  options.csv = options.tensorboard = true;
  run(4, 7);
  CHECK(scene.read("run/log.csv") == always);
  CHECK(events("run/tensorboard") == std::vector<index_t>{1, 2, 3, 4, 5, 6, 7});
  CHECK(scene.read("run/run.log").find("log.csv is filled up with 4 steps") != std::string::npos);
  // Off for a life: its steps are behind those that are there.
  options.csv = options.tensorboard = false;
  run(7, 9);
  options.csv = options.tensorboard = true;
  run(9, 10);
  CHECK(lines_of(scene.read("run/log.csv")).size() == 11);
  CHECK(count_of(scene.read("run/run.log"), "filled up with 2 steps of log.jsonl, from step 8") ==
        2);
  // Between lines there is no place for others.
  auto lines = lines_of(scene.read("run/log.csv"));
  lines.erase(lines.begin() + 5);
  std::ofstream(scene.path("run/log.csv")) << fmt::format("{}\n", fmt::join(lines, "\n"));
  run(10, 11);
  CHECK(lines_of(scene.read("run/log.csv")).size() == 11);
  CHECK(count_of(scene.read("run/run.log"), "lacks step 5, which log.jsonl has") == 1);
  fs::remove(scene.path("run/log.csv"));
  run(11, 12);
  CHECK(lines_of(scene.read("run/log.csv")).size() == 13);
}

TEST_CASE("a folder that cannot be written is an error with path and reason") {
  Scene scene;
  RunLogOptions options = scene.options();
  { std::ofstream(scene.path("file")) << "x"; }
  for (const std::string& dir : {scene.path("file/run"), std::string("/proc/none")}) {
    options.dir = dir;
    try {
      RunLog log(options);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::io);
      CHECK(std::string(error.what()).find(dir) != std::string::npos);
    }
  }
  options.dir = scene.path("run");
  fs::create_directories(options.dir);
  fs::create_symlink("/dev/full", scene.path("run/run.log"));
  CHECK_THROWS_AS(RunLog(options), Error);  // the first line tells
}

TEST_CASE("a disk that fills later is told once") {
  Scene scene;
  fs::create_directories(scene.path("run"));
  fs::create_symlink("/dev/full", scene.path("run/log.jsonl"));
  {
    RunLog log(scene.options());
    for (index_t step = 1; step <= 3; ++step) log.step(example(step, 3));
  }
  const std::string screen = scene.read("screen");
  CHECK(count_of(screen, "warning: cannot write") == 1);
  CHECK(screen.find("log.jsonl: No space left on device") != std::string::npos);
  CHECK(count_of(screen, "step ") == 3);
}

TEST_CASE("a disk that is full for a while costs whole lines") {
  Scene scene;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto action = std::signal(SIGXFSZ, SIG_IGN);
  {
    RunLogOptions options = scene.options();
    options.quiet = true;  // the screen is a file with the same limit
    RunLog log(options);
    log.step(example(1, 9));
    log.settle(20);
    // The next line fits in part only; run.log stays shorter than that.
    const rlimit small{fs::file_size(scene.path("run/log.jsonl")) + 20, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (index_t step = 2; step <= 4; ++step) log.step(example(step, 9));
    log.settle(20);
    CHECK(fs::file_size(scene.path("run/log.jsonl")) == small.rlim_cur - 20);
    ::setrlimit(RLIMIT_FSIZE, &before);
    for (index_t step = 5; step <= 6; ++step) log.step(example(step, 9));
  }
  std::signal(SIGXFSZ, action);
  const std::vector<std::string> lines = lines_of(scene.read("run/log.jsonl"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("{\"step\":1,"));
  CHECK(lines[1].starts_with("{\"step\":5,"));
  CHECK(lines[2].starts_with("{\"step\":6,"));
  for (const std::string& line : lines) CHECK(line.ends_with("}"));
  const std::string screen = scene.read("screen");
  CHECK(count_of(screen, "log.jsonl: File too large") == 1);
  CHECK(count_of(screen, "log.jsonl can be written again; 3 lines are missing") == 1);
  CHECK(count_of(scene.read("run/run.log"), "written again; 3 lines") == 1);
}

TEST_CASE("on a terminal, a bar that the last line replaces") {
  Scene scene;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  RunLogOptions options = scene.options();
  options.screen = std::fopen(ptsname(terminal), "w");
  REQUIRE(options.screen);
  {
    RunLog log(options);
    for (index_t step = 1; step <= 5; ++step) log.step(example(step, 5));
  }
  // The other side gets it in pieces, some a little later.
  std::string shown;
  for (pollfd ready{terminal, POLLIN, 0}; poll(&ready, 1, 200) == 1;) {
    char piece[4096];
    const auto bytes = read(terminal, piece, sizeof piece);
    if (bytes <= 0) break;
    shown.append(piece, static_cast<std::size_t>(bytes));
  }
  std::fclose(options.screen);
  close(terminal);
  CHECK(count_of(shown, "\r\033[K[") >= 1);
  CHECK(count_of(shown, "step ") == 2);  // the first and the last; the bar shows the others
  CHECK(shown.rfind("step 5/5") > shown.rfind("["));
  CHECK(count_of(scene.read("run/run.log"), "step 3/5") == 1);
}

TEST_CASE("other ranks and quiet runs") {
  RunLog nothing;
  nothing.note("x");
  nothing.step(example());
  nothing.write_resolved("x");
  Scene scene;
  RunLogOptions options = scene.options();
  options.quiet = true;
  options.json = false;
  {
    RunLog log(options);
    log.note("x");
    log.step(example());
    log.warn("y");
  }
  CHECK(scene.read("screen") == "warning: y\n");
  CHECK(count_of(scene.read("run/run.log"), "step 120/18865") == 1);
  CHECK_FALSE(fs::exists(scene.path("run/log.jsonl")));
}

}  // namespace t3d
