#include "data/text/text_input.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "data/file_list.hpp"
#include "data/text/input_stream.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

void check_format(const std::string& path) {
  constexpr std::array<std::string_view, 8> kNoText{".parquet", ".arrow", ".gz", ".bz2",
                                                    ".xz",      ".zip",   ".h5", ".json"};
  for (const std::string_view ending : kNoText)
    if (path.ends_with(ending))
      throw_error(ExitCode::config,
                  "{} is neither text nor JSONL: {} is not read; make .jsonl or .jsonl.zst of it",
                  path, ending);
}

TextInput input_of(const std::string& path) {
  check_format(path);
  TextInput input;
  input.path = path;
  input.bytes = FileReader(path).size();
  input.changed = file_time(path).value_or(0);
  input.compressed = is_compressed(path);
  const std::string plain = input.compressed ? path.substr(0, path.size() - 4) : path;
  input.lines = plain.ends_with(".jsonl") || plain.ends_with(".ndjson");
  return input;
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  const fs::path root = fs::canonical(folder);
  std::set<fs::path> seen{root};  // links may lead in a circle
  // What lies in the folder itself is read there, whatever order the system lists names in.
  const auto leads_inside = [&](const fs::directory_entry& entry) {
    return entry.is_symlink() && !fs::relative(entry.path(), root).native().starts_with("..");
  };
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink);
  for (const fs::recursive_directory_iterator end; at != end; ++at) {
    const bool hidden = at->path().filename().string().starts_with('.');
    if (!hidden && at->is_symlink() && !fs::exists(at->path()))
      throw_error(ExitCode::no_input, "{} is a link to a file that is not there",
                  at->path().string());
    if (at->is_directory() &&
        (hidden || leads_inside(*at) || !seen.insert(fs::canonical(at->path())).second))
      at.disable_recursion_pending();
    if (!hidden && at->is_regular_file()) paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw_error(ExitCode::no_input, "there are no files in {}", folder);
  return paths;
}

}  // namespace

std::vector<TextInput> list_texts(const std::vector<std::string>& names) {
  std::vector<TextInput> inputs;
  for (const std::string& path : list_files(names)) {
    if (!is_folder(path)) {
      inputs.push_back(input_of(path));
      continue;
    }
    for (const std::string& file : files_below(path)) inputs.push_back(input_of(file));
  }
  return inputs;
}

}  // namespace t3d
