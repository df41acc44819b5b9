#include "run/data_files.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "core/levenshtein.hpp"
#include "data/file_list.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostNames = 10'000;  // of a folder, looked at for a likely one

/// The file of that folder whose name is nearest.
std::string hint_for_file(const std::string& path) {
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.has_parent_path() ? wanted.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code unreachable;
  std::filesystem::directory_iterator entry(folder, unreachable);
  for (;
       !unreachable && entry != std::filesystem::directory_iterator() && names.size() < kMostNames;
       entry.increment(unreachable))
    names.push_back(entry->path().filename().string());
  if (const auto near = nearest_word(wanted.filename().string(), names))
    return "did you mean " + (wanted.has_parent_path() ? (folder / *near).string() : *near) + "?";
  if (!std::filesystem::exists(folder, unreachable))
    return "there is no folder " + folder.string() +
           "; names are relative to the folder in which the command was called";
  return "transformer3d tokenize makes token files from texts; names are relative to the folder "
         "in which the command was called";
}

}  // namespace

std::vector<Fault> missing_data_files(const Config& config, const Origins& origins,
                                      const std::string& file_name) {
  std::vector<Fault> faults;
  const auto look = [&](const std::string& key, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      try {
        (void)list_files({pattern});
      } catch (const Error& error) {
        if (error.code() != ExitCode::no_input) throw;
        const auto given = origins.find(key);
        faults.push_back({given == origins.end() ? Where{file_name, 0, 0} : given->second,
                          key + ": " + error.what(), hint_for_file(pattern)});
      }
    }
  };
  look("data.train", config.data.train);
  look("data.valid", config.data.valid);
  for (const DataSource& source : config.data.sources) look("data.source.files", source.files);
  for (const ValidationSet& set : config.data.validations) look("data.validation.files", set.files);
  return faults;
}

}  // namespace t3d
