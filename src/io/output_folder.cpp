#include "io/output_folder.hpp"

#include <unistd.h>

#include <filesystem>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {

void check_output_folder(const std::string& folder) {
  std::string there = folder;  // or the nearest above it that is there
  for (std::error_code none; !path_exists(there); there = folder_of(there))
    if (there == "." || std::filesystem::is_symlink(there, none))
      throw_error(ExitCode::io, "{}: {} leads to a folder that is not there", folder, there);
  if (!is_folder(there)) throw_error(ExitCode::io, "{}: {} is no folder", folder, there);
  if (access(there.c_str(), W_OK | X_OK) != 0)
    throw_error(ExitCode::io, "{}: no right to write into {}", folder, there);
}

void check_output_file(const std::string& file) {
  const std::string target = replaceable_file(file);
  if (target.ends_with('/'))
    throw_error(ExitCode::io, "{} is the name of a folder, not of a file", file);
  check_output_folder(folder_of(target));
}

}  // namespace t3d
