#include "config/config_load.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "config/config_schema.hpp"
#include "config/foreign_names.hpp"
#include "config/presets.hpp"
#include "config/table_list.hpp"
#include "core/levenshtein.hpp"
#include "core/utf8.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr std::size_t kLongName = 100;  // of a key or table, in messages

std::string did_you_mean(const std::optional<std::string>& word) {
  return word ? fmt::format("did you mean {}?", *word) : "";
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableHelp& table : config_tables()) names.push_back(table.name);
  return names;
}

bool is_table(const std::string& name) {
  const auto& tables = config_tables();
  return std::any_of(tables.begin(), tables.end(),
                     [&](const TableHelp& table) { return table.name == name; });
}

std::vector<std::string> list_names() {
  std::vector<std::string> names;
  for (const TableList& list : table_lists()) names.push_back(list.name);
  return names;
}

/// The key that the user may have meant: the same name elsewhere, or the nearest here, or anywhere.
std::string hint_for_key(const InputEntry& entry) {
  std::vector<std::string> here, everywhere;
  for (const Key& key : config_keys()) {
    if (key.name == entry.key) return did_you_mean(key.full_name());
    if (key.table == entry.table) here.push_back(key.name);
    everywhere.push_back(key.full_name());
  }
  if (auto ours = key_for_foreign(entry.key)) return did_you_mean(ours);
  if (auto near = nearest_word(entry.key, here)) return did_you_mean(entry.table + "." + *near);
  if (auto near = nearest_word(entry.name(), everywhere)) return did_you_mean(near);
  return "transformer3d --defaults lists all keys";
}

class Loader {
 public:
  Loader(std::string file_name, const std::vector<std::string>& overrides,
         const InputWorld& outside)
      : file_name_(std::move(file_name)), overrides_(overrides), outside_(outside) {
    const ModelConfig* base = outside.base;
    if (base == nullptr) return;
    config_.model = *base;
    // It allows that, however short the sequences will be.
    config_.model.max_context = std::max(base->max_context, base->context);
    has_base_ = true;
  }

  Config load(const std::string& text) {
    read(text);
    apply_preset();
    for (const InputEntry& entry : entries_) apply(entry);
    for (const InputElement& element : elements_) apply(element);
    for (const auto& [key, note] : notes_)
      if (!note.empty()) config_.notes.push_back(note);
    require();
    fill_computed_defaults(config_, file_name_);
    add(path_faults(config_, origins_, file_name_, faulty_));
    add(cross_faults(config_, origins_, file_name_, faulty_));
    if (outside_.more) add(outside_.more(config_, origins_));
    if (!outside_.init.what.empty() && (lacks_base_ || !faults_.empty())) add_init_fault();
    if (!faults_.empty()) throw ConfigErrors(std::move(faults_));
    return std::move(config_);
  }
  [[nodiscard]] const Origins& origins() const { return origins_; }

 private:
  void read(const std::string& text) {
    collect([&] {
      InputDocument document = parse_toml(text, file_name_);
      entries_ = std::move(document.entries);
      elements_ = std::move(document.elements);
      tables_ = std::move(document.tables);
    });
    if (!faults_.empty()) throw ConfigErrors(std::move(faults_));  // nothing else can be judged
    check_tables();
    for (const std::string& assignment : overrides_) {
      collect([&] { entries_.push_back(parse_override(assignment)); });
    }
  }

  void check_tables() {
    std::vector<std::pair<Where, std::string>> unknown;
    for (const auto& [table, where] : tables_)
      if (!is_table(table)) unknown.emplace_back(where, table);
    std::sort(unknown.begin(), unknown.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.line, a.first.column) < std::tie(b.first.line, b.first.column);
    });
    for (const auto& [where, table] : unknown) no_table(where, table);
  }

  void add_init_fault() {
    Fault fault = outside_.init;
    const auto given = origins_.find("init.from");
    fault.where = given == origins_.end() ? Where{file_name_, 0, 0} : given->second;
    // The place names the key where it stands on the command line.
    if (!fault.where.source.ends_with("init.from")) fault.what = "init.from: " + fault.what;
    faults_.push_back(std::move(fault));
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
    // What the weights are of says more than a name.
    if (has_base_) return;
    if (const Preset* preset = find_preset(probe.model.preset)) config_.model = preset->model;
  }

  void apply(const InputEntry& entry) {
    if (entry.table.empty()) return apply_top(entry);
    const Key* key = find_key(entry.name());
    if (!key) return apply_unknown(entry);
    origins_[key->full_name()] = entry.where;
    if (const auto problem = set_value(*key, entry, config_)) {
      fault(entry, problem->what, problem->hint);
      faulty_.insert(key->full_name());
    }
    std::string& note = notes_[key->full_name()];
    note.clear();  // an entry before this one does not count
    for (const auto& [before, now] : key->old_words)
      if (before == (entry.bare.empty() ? entry.value.text : entry.bare))
        note = fmt::format("{} = \"{}\" is of an earlier version and is read as \"{}\"",
                           key->full_name(), before, now);
  }

  void apply_unknown(const InputEntry& entry) {
    if (const std::string_view why = why_removed(entry.name()); !why.empty()) {
      notes_[entry.name()] = fmt::format("{} is no longer read: {}", entry.name(), why);
    } else if (is_table(entry.table)) {
      fault(entry, fmt::format("there is no key {}", printable(entry.name(), kLongName)),
            wants_hint() ? hint_for_key(entry) : "");
    } else if (!tables_.contains(entry.table)) {
      no_table(entry.where, entry.table);  // else it was told once, for all its keys
    }
  }

  void apply(const InputElement& element) {
    if (const TableList* list = find_list(element.array))
      return add_element(*list, element, config_, faults_);
    const bool table = is_table(element.array);
    faults_.push_back({element.where,
                       fmt::format("there is no [[{}]]", printable(element.array, kLongName)),
                       table ? fmt::format("write [{}], once", element.array)
                             : did_you_mean(nearest_word(element.array, list_names()))});
  }

  void apply_top(const InputEntry& entry) {
    if (is_table(entry.key)) {
      fault(entry, fmt::format("{} must be a table", entry.key),
            fmt::format("write [{}]", entry.key));
    } else if (entry.key != "version") {
      fault(entry,
            fmt::format("there is no key {} above the tables", printable(entry.key, kLongName)),
            wants_hint() ? hint_for_key(entry) : "");
    } else if (entry.value.kind != InputValue::Kind::integer || entry.value.integer != 1) {
      fault(entry, fmt::format("version cannot be {}", entry.value.describe()),
            "this program reads inputs of version = 1");
    }
  }

  void fault(const InputEntry& entry, std::string what, std::string hint) {
    faults_.push_back({entry.where, std::move(what), std::move(hint)});
  }
  void no_table(const Where& where, const std::string& table) {
    if (const TableList* list = find_list(table)) {
      faults_.push_back({where, fmt::format("[{}] is a list", table),
                         fmt::format("write [[{}]], once {}", table, list->each)});
      return;
    }
    faults_.push_back({where, fmt::format("there is no table [{}]", printable(table, kLongName)),
                       faults_.size() < ConfigErrors::kShown
                           ? did_you_mean(nearest_word(table, table_names()))
                           : ""});
  }
  void add(std::vector<Fault> faults) {
    std::move(faults.begin(), faults.end(), std::back_inserter(faults_));
  }
  /// A hint takes long to find; later faults of keys are not shown.
  [[nodiscard]] bool wants_hint() { return hints_++ < ConfigErrors::kShown; }

  void require() {
    for (const Key& key : config_keys()) {
      if (!key.required || faulty_.contains(key.full_name()) || !is_empty(key)) continue;
      if (key.full_name() == "data.train" && !config_.data.sources.empty()) continue;
      const bool no_base = key.table == "model" && !outside_.init.what.empty();
      lacks_base_ = lacks_base_ || no_base;
      const bool excused = no_base || (key.table == "model" && faulty_.contains("model.preset"));
      faulty_.insert(key.full_name());
      if (excused) continue;
      const auto table = tables_.find(key.table);
      faults_.push_back(
          {table == tables_.end() ? Where{file_name_, 0, 0} : table->second,
           fmt::format("{} is missing", key.full_name()),
           key.table == "model" ? "write it, or name a model.preset or init.from" : "write it"});
    }
  }

  [[nodiscard]] bool is_empty(const Key& key) const {
    return value_text(key, config_) == value_text(key, Config{});
  }

  std::string file_name_;
  const std::vector<std::string>& overrides_;
  std::vector<InputEntry> entries_;
  std::vector<InputElement> elements_;
  std::map<std::string, Where> tables_;
  Config config_;
  Origins origins_;
  std::set<std::string> faulty_;
  std::vector<Fault> faults_;
  std::size_t hints_ = 0;                     // to unknown keys
  std::map<std::string, std::string> notes_;  // by key; may be empty
  bool has_base_ = false;
  const InputWorld& outside_;
  bool lacks_base_ = false;  // keys are missing that init.from would have given
};

}  // namespace

std::string read_input(const std::string& path, std::string_view whose) {
  std::optional<FileReader> file;
  try {
    file.emplace(path);
  } catch (const Error& error) {
    throw_error(ExitCode::no_input, "cannot read the {} file: {}", whose, error.what());
  }
  return read_text(*file);
}

Config parse_config(const std::string& text, const std::string& file_name,
                    const std::vector<std::string>& overrides, Origins* origins,
                    const InputWorld& outside) {
  Loader loader(file_name, overrides, outside);
  Config config = loader.load(text);
  if (origins) *origins = loader.origins();
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides,
                   Origins* origins) {
  return parse_config(read_input(path), path, overrides, origins);
}

}  // namespace t3d
