#include "config/data_lists.hpp"

#include <algorithm>

#include "core/utf8.hpp"

namespace t3d {
namespace {

template <class Element, class Field>
Key list_key(const char* table, std::vector<Element> DataConfig::*list, const char* name,
             Field Element::*field, const char* help, const char* fallback, Range range = {}) {
  Key key;
  key.table = table;
  key.name = name;
  key.help = help;
  key.fallback = fallback;
  key.range = range;
  key.slot = [list, field](Config& config) -> Slot { return &((config.data.*list).back().*field); };
  return key;
}

/// All but keys, words and check.
template <class Element>
TableList list_of(const char* name, std::vector<Element> DataConfig::*list) {
  TableList made;
  made.name = name;
  made.size = [list](const Config& config) { return (config.data.*list).size(); };
  made.append = [list](Config& config) { (config.data.*list).emplace_back(); };
  made.only = [list](const Config& config, std::size_t at) {
    Config one;
    (one.data.*list).push_back((config.data.*list)[at]);
    return one;
  };
  return made;
}

/// Names are shown, stand in JSON, and tell elements apart.
template <class Element, class NameOf>
std::optional<Problem> name_problem(const char* list, const std::vector<Element>& all,
                                    const NameOf& name_of) {
  const std::string name = name_of(all.size() - 1);
  if (!is_utf8(name) || std::any_of(name.begin(), name.end(), is_control))
    return Problem{fmt::format("a name cannot be \"{}\"", printable(name, 100)),
                   "write UTF-8 without control characters"};
  for (std::size_t at = 0; at + 1 < all.size(); ++at)
    if (name_of(at) == name)
      return Problem{fmt::format("two [[{}]] have the name \"{}\"", list, name),
                     "give each a name of its own"};
  return std::nullopt;
}

}  // namespace

TableList data_source_list() {
  constexpr double kMost = 1e12;
  TableList list = list_of("data.source", &DataConfig::sources);
  list.help =
      "A mixture, instead of data.train: one [[data.source]] for each of its sources. In any "
      "window "
      "of samples each source is within 2 samples of its share by weight; each is read in epochs "
      "of "
      "its own.";
  list.each = "for each source";
  const auto key = [&](const char* name, auto field, const char* help, const char* fallback,
                       Range range = {}) {
    list.keys.push_back(
        list_key("data.source", &DataConfig::sources, name, field, help, fallback, range));
  };
  key("files", &DataSource::files, "Token files: one name or pattern, or a list of them.",
      "required");
  key("weight", &DataSource::weight, "Its share of the samples, relative to the other weights.",
      "1", {0, kMost, true, false});
  key("name", &DataSource::name,
      "Decides how its samples are shuffled; adding another source does not change that.",
      "its number in the list");
  list.check = [](const Config& config, std::string&) -> std::optional<Problem> {
    const DataConfig& data = config.data;
    if (data.sources.back().files.empty())
      return Problem{"this [[data.source]] has no files", "write files = \"NAME\""};
    return name_problem("data.source", data.sources,
                        [&](std::size_t at) { return source_name(data, at); });
  };
  return list;
}

TableList validation_list() {
  TableList list = list_of("data.validation", &DataConfig::validations);
  list.help =
      "Validation sets with names: one [[data.validation]] for each, and a loss for each, besides "
      "that of data.valid.";
  list.each = "for each validation set";
  const auto key = [&](const char* name, auto field, const char* help) {
    list.keys.push_back(
        list_key("data.validation", &DataConfig::validations, name, field, help, "required"));
  };
  key("files", &ValidationSet::files, "Token files: one name or pattern, or a list of them.");
  key("name", &ValidationSet::name, "What its loss is called on the screen and in log.jsonl.");
  list.check = [](const Config& config, std::string&) -> std::optional<Problem> {
    const ValidationSet& last = config.data.validations.back();
    if (last.files.empty() || last.name.empty())
      return Problem{
          "this [[data.validation]] has no " + std::string(last.files.empty() ? "files" : "name"),
          "write files and name"};
    return name_problem("data.validation", config.data.validations,
                        [&](std::size_t at) { return config.data.validations[at].name; });
  };
  return list;
}

std::string source_name(const DataConfig& data, std::size_t at) {
  const std::string& name = data.sources[at].name;
  return name.empty() ? std::to_string(at + 1) : name;
}

std::vector<std::string> train_files(const DataConfig& data) {
  std::vector<std::string> files = data.train;
  for (const DataSource& source : data.sources)
    files.insert(files.end(), source.files.begin(), source.files.end());
  return files;
}

}  // namespace t3d
