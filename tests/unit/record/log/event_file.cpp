// Event files byte by byte. The bytes are those that TensorBoard's own writer makes of the same
// messages (tensorboard 2.21, protobuf 7.36).
#include "record/log/event_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "io/posix_file.hpp"
#include "record/log/event_log.hpp"
#include "support/bytes_read.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string step(index_t number) {
  return tf_record(scalar_event(1.5, number, {{"step/loss", 1.0}}));
}

}  // namespace

TEST_CASE("records are those of TensorBoard's own writer") {
  CHECK(hex(tf_record(version_event(1.5))) ==
        "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  CHECK(hex(tf_record(start_event(1.5, 7))) ==
        "0f000000000000006d532b0909000000000000f83f10073a020801774771c7");
  CHECK(hex(tf_record(scalar_event(2.25, 300, {{"step/loss", 0.25}, {"b", -3}}))) ==
        "2a00000000000000ae8d91f509000000000000024010ac022a1c0a100a09737465702f6c6f737315"
        "0000803e0a080a016215000040c09c24a37a");
}

TEST_CASE("events are cut back to a step") {
  const test::ScratchFolder folder("events");
  const std::string path = folder.path() + "/events";
  const std::string head = tf_record(version_event(1.5)) + tf_record(start_event(1.5, 1));
  const std::string text = head + step(1) + step(2) + step(300);
  write_text_durably(path, text);
  const auto bytes_until = [&](index_t last) { return find_events(path, last).bytes; };
  CHECK(bytes_until(300) == std::ssize(text));
  CHECK(bytes_until(299) == std::ssize(head + step(1) + step(2)));
  CHECK(bytes_until(1) == std::ssize(head + step(1)));
  CHECK_FALSE(find_events(path, 0).has_steps);
  CHECK(first_event_step(path) == 1);
  std::vector<index_t> steps;
  for_each_event_step(path, [&](index_t number) { steps.push_back(number); });
  CHECK(steps == std::vector<index_t>{1, 2, 300});
  write_text_durably(path, head);
  CHECK_FALSE(find_events(path, 9).has_steps);
  write_text_durably(path, "");
  CHECK_FALSE(find_events(path, 9).has_steps);
}

TEST_CASE("of long events a start reads the beginning and the end") {
  const test::ScratchFolder folder("events");
  const auto name = [&](int number) {
    return fmt::format("{}/events.out.tfevents.{:010}.transformer3d", folder.path(), number);
  };
  write_text_durably(name(1), tf_record(version_event(1.5)));
  write_text_durably(name(2), tf_record(start_event(1.5, 3)) + step(3) + step(5));
  const std::vector<EventScalar> many(2000, {"a scalar of a step", 0.5});
  std::vector<std::size_t> ends;
  std::string text = tf_record(start_event(1.5, 7));
  for (index_t number = 7; number < 1007; ++number) {
    if (number != 1000) text += tf_record(scalar_event(1.5, number, many));
    ends.push_back(text.size());
  }
  write_text_durably(name(3), text);  // 60 MB
  index_t before = test::bytes_read_so_far();
  for (const index_t last : {6, 7, 500, 999, 1006, 5000})
    CHECK(find_events(name(3), last).bytes ==
          (last == 6 ? 0  // the life begins at 7
                     : static_cast<index_t>(
                           ends[static_cast<std::size_t>(std::min<index_t>(last, 1006) - 7)])));
  CHECK(test::bytes_read_so_far() - before < 6 * 20'000'000);
  before = test::bytes_read_so_far();
  const StepsThere steps = logged_events(folder.path(), 2'000'000);
  CHECK(steps.first == 3);
  CHECK(steps.missing.last() == 1006);
  CHECK(steps.missing.ranges() == std::vector<StepRange>{{1000, 1000}});
  CHECK(test::bytes_read_so_far() - before < 8'000'000);
  CHECK(logged_events(folder.path()).missing.count() == 1);
  CHECK(logged_events(folder.path(), std::ssize(text) + 60).missing.ranges().front() ==
        StepRange{6, 6});
}

TEST_CASE("what follows a torn or damaged event is left out") {
  const test::ScratchFolder folder("events");
  const std::string path = folder.path() + "/events";
  const std::string text = step(1) + step(2) + step(3);
  const std::size_t size = text.size() / 3;
  const auto check = [&](const std::string& damaged) {
    std::ofstream(path) << damaged;
    CHECK(find_events(path, 9).bytes == std::ssize(step(1)));
  };
  for (std::size_t bytes = size; bytes < 2 * size; ++bytes) check(text.substr(0, bytes));
  for (std::size_t at = size; at < 2 * size; ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    check(damaged);
  }
}

}  // namespace t3d
