#include "tools/output_files.hpp"

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "io/output_folder.hpp"

namespace t3d {

void check_replaced(const std::string& folder, const OutputFiles& files,
                    const std::vector<std::string>& read) {
  check_output_folder(folder);
  const std::filesystem::path inside = folder;
  std::error_code none;
  for (const std::string& name : files.written)
    for (const std::string& own : read)
      if (std::filesystem::equivalent(inside / name, own, none))
        throw_error(ExitCode::usage, "-o: {} would be written over; name another folder", own);
  const auto is_there = [&](const std::string& name) {
    return std::filesystem::exists(inside / name, none);
  };
  const auto found = std::find_if(files.written.begin(), files.written.end(), is_there);
  if (found != files.written.end() &&
      std::none_of(files.marks.begin(), files.marks.end(), is_there))
    throw_error(ExitCode::usage, "-o: {} has a file {} that no {} wrote; name another folder",
                folder, *found, files.command);
}

}  // namespace t3d
