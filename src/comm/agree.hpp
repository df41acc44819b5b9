// Collective failure: work that one rank cannot do must end with the same Error on every rank, and
// nobody may be left waiting. Each rank attempts its local work; then all agree.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace t3d {

/// Runs local `work` (no communication in it) unless there is a fault already, and keeps what it
/// throws. A missing file is an I/O fault here.
template <class Work>
void attempt(std::optional<Error>& fault, const Work& work) {
  if (fault) return;
  try {
    work();
  } catch (const Error& error) {
    const bool missing = error.code() == ExitCode::no_input;
    fault = missing ? Error(ExitCode::io, error.what()) : error;
  } catch (const std::exception& error) {
    const Error known = as_error(error);  // out of memory is no damage of a file
    fault =
        Error(known.code() == ExitCode::unavailable ? known.code() : ExitCode::io, known.what());
  }
}

/// The fault with this rank and its node, where there are others.
[[nodiscard]] Error on_this_rank(const Communicator& group, const Error& fault);

/// Collective. Throws the fault of the lowest rank that has one, on every rank.
void agree(Communicator& group, const std::optional<Error>& fault);

/// Collective. Everybody's number, by rank, on every rank.
[[nodiscard]] std::vector<double> all_gather_numbers(Communicator& group, double number);
/// Collective. Everybody's text, on every rank.
[[nodiscard]] std::vector<std::string> all_gather_texts(Communicator& group,
                                                        const std::string& text);
/// Makes one text of those of two ranks, or of what was made of several that follow each other.
using JoinTexts = std::function<std::string(const std::string& lower, const std::string& higher)>;
/// Collective. What `join` makes of everybody's text, in the order of ranks, on rank 0; elsewhere
/// something. Over a tree: no rank receives more than log2(ranks) messages, one at a time. What
/// `join` throws is kept in `fault` of the rank that it happens on, for agree().
[[nodiscard]] std::string join_texts_of_ranks(Communicator& group, std::string text,
                                              const JoinTexts& join, std::optional<Error>& fault);
/// Collective. Everybody's text on rank 0; nothing elsewhere. Over the same tree.
[[nodiscard]] std::vector<std::string> gather_texts(Communicator& group, const std::string& text);
/// Collective. The text of `root`.
[[nodiscard]] std::string broadcast_text(Communicator& group, const std::string& text,
                                         int root = 0);

}  // namespace t3d
