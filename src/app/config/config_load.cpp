#include "app/config/config_load.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "app/config/config_schema.hpp"
#include "app/config/presets.hpp"
#include "core/levenshtein.hpp"

namespace t3d {
namespace {

std::string did_you_mean(const std::optional<std::string>& word) {
  return word ? fmt::format("did you mean {}?", *word) : "";
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableHelp& table : config_tables()) names.push_back(table.name);
  return names;
}

bool is_table(const std::string& name) { return !keys_of(name).empty(); }

/// The key that the user may have meant: the same name elsewhere, or the nearest here, or anywhere.
std::string hint_for_key(const InputEntry& entry) {
  std::vector<std::string> here, everywhere;
  for (const Key& key : config_keys()) {
    if (key.name == entry.key) return did_you_mean(key.full_name());
    if (key.table == entry.table) here.push_back(key.name);
    everywhere.push_back(key.full_name());
  }
  if (auto near = nearest_word(entry.key, here)) return did_you_mean(entry.table + "." + *near);
  if (auto near = nearest_word(entry.name(), everywhere)) return did_you_mean(near);
  return "transformer3d --defaults lists all keys";
}

class Loader {
 public:
  Loader(std::string file_name, const std::vector<std::string>& overrides)
      : file_name_(std::move(file_name)), overrides_(overrides) {}

  Config load(const std::string& text) {
    read(text);
    apply_preset();
    for (const InputEntry& entry : entries_) apply(entry);
    require();
    fill_computed_defaults(config_, file_name_);
    for (Fault& fault : cross_faults(config_, origins_, file_name_, faulty_)) {
      faults_.push_back(std::move(fault));
    }
    if (!faults_.empty()) throw ConfigErrors(std::move(faults_));
    return std::move(config_);
  }
  [[nodiscard]] const Origins& origins() const { return origins_; }

 private:
  void read(const std::string& text) {
    collect([&] {
      InputDocument document = parse_toml(text, file_name_);
      entries_ = std::move(document.entries);
      tables_ = std::move(document.tables);
    });
    if (!faults_.empty()) throw ConfigErrors(std::move(faults_));  // nothing else can be judged
    for (const auto& [table, where] : tables_) {
      if (is_table(table)) continue;
      faults_.push_back({where, fmt::format("there is no table [{}]", table),
                         did_you_mean(nearest_word(table, table_names()))});
    }
    for (const std::string& assignment : overrides_) {
      collect([&] { entries_.push_back(parse_override(assignment)); });
    }
  }

  template <class Step>
  void collect(Step step) {
    try {
      step();
    } catch (const ConfigErrors& errors) {
      faults_.insert(faults_.end(), errors.faults().begin(), errors.faults().end());
    }
  }

  /// The preset comes first, wherever it is written: the other keys win over it. A fault in its
  /// name is told by apply().
  void apply_preset() {
    Config probe;
    for (const InputEntry& entry : entries_) {
      if (entry.name() == "model.preset") (void)set_value(*find_key("model.preset"), entry, probe);
    }
    if (const Preset* preset = find_preset(probe.model.preset)) config_.model = preset->model;
  }

  void apply(const InputEntry& entry) {
    if (entry.table.empty()) return apply_top(entry);
    const Key* key = find_key(entry.name());
    if (!key) {
      // An unknown table was told once, for all its keys.
      if (is_table(entry.table)) {
        fault(entry, fmt::format("there is no key {}", entry.name()), hint_for_key(entry));
      } else if (!tables_.contains(entry.table)) {
        fault(entry, fmt::format("there is no table [{}]", entry.table),
              did_you_mean(nearest_word(entry.table, table_names())));
      }
      return;
    }
    origins_[key->full_name()] = entry.where;
    if (const auto problem = set_value(*key, entry, config_)) {
      fault(entry, problem->what, problem->hint);
      faulty_.insert(key->full_name());
    }
  }

  void apply_top(const InputEntry& entry) {
    if (is_table(entry.key)) {
      fault(entry, fmt::format("{} must be a table", entry.key),
            fmt::format("write [{}]", entry.key));
    } else if (entry.key != "version") {
      fault(entry, fmt::format("there is no key {} above the tables", entry.key),
            hint_for_key(entry));
    } else if (entry.value.kind != InputValue::Kind::integer || entry.value.integer != 1) {
      fault(entry, fmt::format("version cannot be {}", entry.value.describe()),
            "this program reads inputs of version = 1");
    }
  }

  void fault(const InputEntry& entry, std::string what, std::string hint) {
    faults_.push_back({entry.where, std::move(what), std::move(hint)});
  }

  void require() {
    for (const Key& key : config_keys()) {
      if (!key.required || faulty_.contains(key.full_name()) || !is_empty(key)) continue;
      const bool excused = key.table == "model" && faulty_.contains("model.preset");
      faulty_.insert(key.full_name());
      if (excused) continue;
      const auto table = tables_.find(key.table);
      faults_.push_back({table == tables_.end() ? Where{file_name_, 0, 0} : table->second,
                         fmt::format("{} is missing", key.full_name()),
                         key.table == "model" ? "write it, or name a model.preset" : "write it"});
    }
  }

  [[nodiscard]] bool is_empty(const Key& key) const {
    return value_text(key, config_) == value_text(key, Config{});
  }

  std::string file_name_;
  const std::vector<std::string>& overrides_;
  std::vector<InputEntry> entries_;
  std::map<std::string, Where> tables_;
  Config config_;
  Origins origins_;
  std::set<std::string> faulty_;
  std::vector<Fault> faults_;
};

}  // namespace

Config parse_config(const std::string& text, const std::string& file_name,
                    const std::vector<std::string>& overrides, Origins* origins) {
  Loader loader(file_name, overrides);
  Config config = loader.load(text);
  if (origins) *origins = loader.origins();
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides,
                   Origins* origins) {
  std::ifstream file(path);
  const bool folder = std::filesystem::is_directory(path);
  if (folder || !file) {
    throw_error(ExitCode::no_input, "cannot read the input file {}: {}", path,
                folder ? "it is a folder" : std::strerror(errno));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path, overrides, origins);
}

}  // namespace t3d
