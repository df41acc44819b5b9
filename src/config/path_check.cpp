// Names and paths of the run: they stand in names of files, in JSON and in TOML.
#include <algorithm>
#include <array>

#include "config/config_check.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

struct NamedText {
  const char* key;
  const std::string* text;
};

}  // namespace

std::vector<Fault> path_faults(const Config& config, const Origins& origins,
                               const std::string& file_name, const std::set<std::string>& faulty) {
  const std::array<NamedText, 4> all{{{"run.name", &config.run.name},
                                      {"run.dir", &config.run.dir},
                                      {"checkpoint.dir", &config.checkpoint.dir},
                                      {"checkpoint.restart", &config.checkpoint.restart}}};
  for (const auto& [key, text] : all) {  // the later ones are computed from the earlier
    if (faulty.contains(key)) return {};
    const bool lines = std::any_of(text->begin(), text->end(), is_control);
    if (!lines && is_utf8(*text)) continue;
    const auto given = origins.find(key);
    const Where place = given == origins.end() ? Where{file_name, 0, 0} : given->second;
    return {{place,
             fmt::format("{} cannot be \"{}\": {}", key, printable(*text),
                         lines ? "it has a control character" : "it is not UTF-8"),
             given == origins.end() ? fmt::format("it comes from the file's name; write {}", key)
                                    : "rename the folder, or use a link with another name"}};
  }
  return {};
}

}  // namespace t3d
