// The texts to continue: from the command line, from a file or from standard input.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "tools/command_line.hpp"

namespace t3d {

/// One on each line that is not empty; or, where the first of those begins with '{', JSON lines:
/// an object with a text in the field "prompt" each. A byte-order mark is passed over. `name`: of
/// the source, for messages. Error(config) that names the line where one is no such object or no
/// UTF-8.
[[nodiscard]] std::vector<std::string> parse_prompts(std::istream& lines, const std::string& name);

/// Those of --prompt, then those of --prompts; a newline where neither was given. Error(no_input)
/// or Error(io) where the file cannot be read, Error(config) where it holds no prompt or one of
/// --prompt is no UTF-8.
[[nodiscard]] std::vector<std::string> read_prompts(const GenerateCommand& wish);

}  // namespace t3d
