// Stop strings end a text wherever the borders of its pieces are.
#include "tools/generate/stop_strings.hpp"

#include "support/catch.hpp"

using namespace t3d;

namespace {

/// What is shown of `text` that comes in pieces of `size` bytes, and whether it was stopped.
std::pair<std::string, bool> stopped(const std::string& text, std::size_t size,
                                     const std::vector<std::string>& stops) {
  StopStrings filter(stops);
  std::string shown;
  for (std::size_t at = 0; at < text.size() && !filter.stopped(); at += size)
    shown += filter.add(text.substr(at, size));
  if (!filter.stopped()) shown += filter.rest();
  return {shown, filter.stopped()};
}

}  // namespace

TEST_CASE("stop strings end a text wherever its pieces end") {
  for (std::size_t size = 1; size < 12; ++size) {
    INFO("pieces of " << size);
    using Shown = std::pair<std::string, bool>;
    CHECK(stopped("one two three", size, {"two"}) == Shown{"one ", true});
    CHECK(stopped("one two three", size, {"three", "wo t"}) == Shown{"one t", true});
    CHECK(stopped("one two thre", size, {"three"}) == Shown{"one two thre", false});
    CHECK(stopped("aaab", size, {"aab"}) == Shown{"a", true});
    CHECK(stopped("abcabd", size, {"abd", "bcx"}) == Shown{"abc", true});
    CHECK(stopped("stop", size, {"stop"}) == Shown{"", true});
    CHECK(stopped("text", size, {}) == Shown{"text", false});
  }
}

TEST_CASE("nothing is shown that may be the begin of a stop string") {
  StopStrings filter({"\n\n", "END"});
  CHECK(filter.add("a\n") == "a");
  CHECK(filter.add("b E") == "\nb ");
  CHECK(filter.add("N") == "");
  CHECK(filter.add("X") == "ENX");
  CHECK(filter.rest().empty());
}

TEST_CASE("a special token ends a text by its name and is not shown") {
  StopStrings end({"<|im_end|>"});
  CHECK(end.add("hello") == "hello");
  CHECK(end.add_special("<|im_end|>").empty());
  CHECK(end.stopped());
  // Beside text, and where it is no stop string.
  StopStrings both({".</s>", "xy"});
  CHECK(both.add("a.").append(both.add_special("<s>")) == "a.");
  CHECK(both.add("b.").append(both.add_special("</s>")) == "b");
  CHECK(both.stopped());
  StopStrings parted({"xy"});
  CHECK(parted.add("x").append(parted.add_special("</s>")).append(parted.add("y")) == "xy");
  CHECK(!parted.stopped());
}
