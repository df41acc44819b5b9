// Event files byte by byte. The bytes are those that TensorBoard's own writer makes of the same
// messages (tensorboard 2.21, protobuf 7.36).
#include "io/log/event_file.hpp"

#include <fmt/format.h>

#include <fstream>

#include "io/posix_file.hpp"
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
