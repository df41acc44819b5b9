#include "data/file_list.hpp"

#include <glob.h>

#include <filesystem>

#include "core/error.hpp"

namespace t3d {

std::vector<std::string> list_files(const std::vector<std::string>& patterns) {
  if (patterns.empty()) throw_error(ExitCode::config, "no files are named");
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    std::error_code unreachable;  // then glob() says what there is to say
    if (std::filesystem::exists(pattern, unreachable)) {
      paths.push_back(pattern);  // also with letters that mean something in patterns
      continue;
    }
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t n = 0; status == 0 && n < found.gl_pathc; ++n)
      paths.emplace_back(found.gl_pathv[n]);
    ::globfree(&found);
    if (status != 0) throw_error(ExitCode::no_input, "{} does not exist", pattern);
  }
  return paths;
}

}  // namespace t3d
