// The files that a command writes into a folder of the user's choice (-o): what of them may be
// replaced.
#pragma once
#include <string>
#include <vector>

namespace t3d {

struct OutputFiles {
  const char* command;               // that writes them
  std::vector<std::string> written;  // names
  std::vector<std::string> marks;    // of them, those by which its own folder is known
};

/// Before the work. Errors of check_output_folder(); Error(usage) where a file that is `read` would
/// be written over, and where one of the files is there but no mark: it is somebody else's.
void check_replaced(const std::string& folder, const OutputFiles& files,
                    const std::vector<std::string>& read);

}  // namespace t3d
