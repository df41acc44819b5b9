// Reads that fail for a while: how long they are tried again.
#include "io/read_patience.hpp"

#include <cerrno>

#include "core/phase_clock.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

/// A read that fails for so long, or to its end; whether it came to pass.
bool read_failing(double seconds) {
  Tries tries;
  const double end = PhaseClock::now() + seconds;
  while (PhaseClock::now() < end)
    if (!tries.again(EIO, "file")) return false;
  return true;
}

}  // namespace

TEST_CASE("all reads of a start have one time, however many fail") {
  std::vector<std::string> said;
  ReadPatience patience({2, {}, [&](const std::string& text) { said.push_back(text); }});
  const ReadPatience::Scope scope(patience);
  const double begin = PhaseClock::now();
  for (int read = 0; read < 3; ++read) CHECK(read_failing(0.3));
  CHECK_FALSE(patience.ran_out());
  CHECK_FALSE(read_failing(60));
  CHECK(patience.ran_out());
  CHECK_FALSE(read_failing(60));
  const double seconds = PhaseClock::now() - begin;
  CHECK(seconds >= 2);
  CHECK(seconds < 3.5);
  CHECK(said.size() == 4);
  CHECK(said.front().find("for up to 2 s") != std::string::npos);
}

TEST_CASE("what does not pass, and what nobody is patient with, is told at once") {
  ReadPatience patience({60, {}, {}});
  Tries none;
  CHECK_FALSE(none.again(EIO, "file"));  // outside a start
  CHECK(errno == EIO);
  const ReadPatience::Scope scope(patience);
  CHECK_FALSE(Tries().again(ENOENT, "file"));
  CHECK_FALSE(patience.ran_out());
}

}  // namespace t3d
