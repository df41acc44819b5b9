#include "data/corpus_agreement.hpp"

#include <optional>
#include <sstream>

#include "comm/agree.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"

namespace t3d {
namespace {

/// One line a file.
std::string listing(const TokenSource& corpus) {
  std::string text;
  for (const CorpusFile& file : corpus.files())
    text += fmt::format("{} of {} bytes and {} tokens, checksum {:08x}\n", file.path, file.bytes,
                        file.tokens, file.checksum);
  return text;
}

/// The first lines in which two listings differ.
std::string first_difference(const std::string& here, const std::string& there) {
  std::istringstream own(here), first(there);
  std::string mine, other;
  while (mine == other && (own.good() || first.good())) {
    if (!std::getline(own, mine)) mine = "no further file";
    if (!std::getline(first, other)) other = "no further file";
  }
  return fmt::format("{}, but rank 0 has {}", mine, other);
}

}  // namespace

void agree_on_corpus(Communicator& world, const TokenSource& corpus, const std::string& key) {
  const std::string here = listing(corpus);
  const std::uint64_t hash = stream_of(here);
  std::uint64_t first = hash;
  world.broadcast({&first, DType::i32, 1, 2}, 0).wait_host();
  double differing = hash == first ? 0 : 1;
  world.all_reduce({&differing, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  if (differing == 0) return;
  const std::string there = broadcast_text(world, here);
  const std::string node = broadcast_text(world, host_name());
  std::optional<Error> fault;
  if (hash != first)
    fault = Error(ExitCode::config,
                  fmt::format("{} names other files on {} of {} ranks than on rank 0 (node {}): "
                              "rank {} (node {}) has {}",
                              key, differing, world.size(), node, world.rank(), host_name(),
                              first_difference(here, there)));
  agree(world, fault);
}

}  // namespace t3d
