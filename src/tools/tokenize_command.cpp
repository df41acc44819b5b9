// `transformer3d tokenize`: the work is the ranks' (data/tokenize.hpp), the words are rank 0's.
#include <fmt/ranges.h>

#include "io/output.hpp"
#include "io/partial_file.hpp"
#include "run/setup.hpp"
#include "sched/stop_signal.hpp"
#include "tools/commands.hpp"

namespace t3d {
namespace {

constexpr double kNoLimit = 1e9;  // seconds: how long a tokenizer's training takes, nobody knows

std::string report(const TokenizeResult& result) {
  std::string text = fmt::format("{}: {} tokens\n", result.train_path, result.train_tokens);
  if (!result.valid_path.empty())
    text += fmt::format("{}: {} tokens\n", result.valid_path, result.valid_tokens);
  text += fmt::format("vocabulary {}, {} document{}, {} bytes of text", result.vocab,
                      result.documents, result.documents == 1 ? "" : "s", result.text_bytes);
  if (result.bytes_per_second > 0)
    text += fmt::format(", {:.1f} MB/s of input by {} thread{}", result.bytes_per_second / 1e6,
                        result.workers, result.workers == 1 ? "" : "s");
  text += "\n";
  if (result.parts_reused > 0)
    text += fmt::format("{} of {} parts were there from a command that did not end\n",
                        result.parts_reused, result.parts);
  if (result.bad_lines > 0)
    text += fmt::format("{} bad line{} left out; the first: {}\n", result.bad_lines,
                        result.bad_lines == 1 ? " was" : "s were", result.first_bad_line);
  return text;
}

}  // namespace

int run_tokenize(Communicator& world, const CommandLine& command) {
  die_of_stop_signals([] {
    remove_partial_files();
    clear_unfinished_parts();
  });
  world.set_watchdog(kNoLimit);
  const TokenizeCommand& wish = command.tokenize;
  const TokenizeResult result = tokenize_corpus(
      world, wish.inputs, wish.prefix, wish.options,
      [](const std::string& text) { fmt::print(stderr, "transformer3d: {}\n", text); });
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    for (const std::string& warning : result.warnings)
      fmt::print(stderr, "transformer3d: warning: {}\n", warning);
    for (const std::string& note : result.notes)
      fmt::print(stderr, "transformer3d: note: {}\n", note);
    if (!result.older_valid.empty())
      fmt::print(stderr,
                 "transformer3d: warning: {} {} of an earlier command, whose texts are in {} now: "
                 "remove {}, or call again with --valid\n",
                 fmt::join(result.older_valid, ", "), result.older_valid.size() == 1 ? "is" : "are",
                 result.train_path, result.older_valid.size() == 1 ? "it" : "them");
    write_output(report(result));
    flush_output();
  });
  return 0;
}

}  // namespace t3d
