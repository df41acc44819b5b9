// Reads cluster.toml: every fault of the file once, with its place and a hint.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/config_load.hpp"
#include "config/table_list.hpp"
#include "config/toml_input.hpp"
#include "core/levenshtein.hpp"
#include "core/utf8.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/cluster_keys.hpp"
#include "forecast/cluster/operator_terms.hpp"

namespace t3d {
namespace {

constexpr const char* kHelp = "docs/15-cluster-file.md lists all keys";
constexpr std::size_t kMostSamples = 400;  // of one table: estimates solve as many equations
const std::vector<std::string> kTables{"cluster", "storage", "startup", "scheduler", "end"};
const std::vector<std::string> kLists{"class",  "level",    "partition",
                                      "factor", "operator", "collective"};

class ClusterReader {
 public:
  explicit ClusterReader(std::string file_name) : file_name_(std::move(file_name)) {}

  Cluster read(const std::string& text, std::vector<std::string>* notes) {
    const InputDocument document = parse(text);
    known_tables(document);
    read_tables(document);
    // In this order: later lists name elements of earlier ones.
    for (const std::string& list : kLists)
      for (const InputElement& element : document.elements)
        if (element.array == list) add(element);
    if (cluster_.classes.empty() && !has_faults_in("class"))
      fault({file_name_, 0, 0}, "there is no [[class]]", "write one for each kind of node");
    const bool ends = document.tables.contains("end");
    if (has_end_ && !ends) faults_.push_back(cut());
    if (!faults_.empty()) throw ConfigErrors(std::move(faults_));
    if (!has_end_ && !ends && notes != nullptr)
      notes->push_back(
          fmt::format("{} has no mark at its end (an older file, or a person's): "
                      "whether it was cut is not known",
                      file_name_));
    return std::move(cluster_);
  }

 private:
  [[nodiscard]] Fault cut() const {
    return {{file_name_, 0, 0},
            "the file was cut: [end], its last line, is missing",
            "take a whole copy; or remove `has_end = true` if this is all"};
  }
  /// Cut inside a line it is no TOML, which is not what its reader should be told alone.
  [[nodiscard]] InputDocument parse(const std::string& text) const {
    try {
      return parse_toml(text, file_name_);
    } catch (const ConfigErrors& errors) {
      if (text.find("\nhas_end = true") == std::string::npos || text.find("\n[end]") < text.size())
        throw;
      std::vector<Fault> faults = errors.faults();
      faults.push_back(cut());
      throw ConfigErrors(std::move(faults));
    }
  }
  void fault(const Where& where, std::string what, std::string hint = "") {
    faults_.push_back({where, std::move(what), std::move(hint)});
  }
  [[nodiscard]] bool has_faults_in(const std::string& list) const { return faulty_.contains(list); }

  void known_tables(const InputDocument& document) {
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto unknown = [&](const Where& where, const std::string& name, bool list) {
      const std::string shown = printable(name, 100);
      if (is_in(kTables, name))
        return fault(where, fmt::format("[[{}]] is no list", shown),
                     fmt::format("write [{}], once", name));
      if (is_in(kLists, name))
        return fault(where, fmt::format("[{}] is a list", shown),
                     fmt::format("write [[{}]], once for each", name));
      const auto near = nearest_word(name, list ? kLists : kTables);
      const auto bracketed = [list](const std::string& word) {
        return list ? fmt::format("[[{}]]", word) : fmt::format("[{}]", word);
      };
      fault(where, fmt::format("there is no {}", bracketed(shown)),
            near ? fmt::format("did you mean {}?", bracketed(*near)) : kHelp);
    };
    for (const auto& [name, where] : document.tables)
      if (!is_in(kTables, name)) unknown(where, name, false);
    for (const InputElement& element : document.elements)
      if (!is_in(kLists, element.array)) unknown(element.where, element.array, true);
    for (const InputEntry& entry : document.entries)
      if (entry.table.empty()) top_key(entry);
  }

  void top_key(const InputEntry& entry) {
    if (entry.key == "has_end") {
      has_end_ = entry.value.kind == InputValue::Kind::boolean && entry.value.boolean;
      if (!has_end_) fault(entry.where, "has_end cannot be anything but true", "or leave it out");
      return;
    }
    if (entry.key != "version")
      fault(entry.where,
            fmt::format("there is no key {} above the tables", printable(entry.key, 100)), kHelp);
    else if (entry.value.kind != InputValue::Kind::integer || entry.value.integer != 1)
      fault(entry.where, fmt::format("version cannot be {}", entry.value.describe()),
            "this program reads files of version = 1");
  }

  void read_tables(const InputDocument& document) {
    StorageEntry storage;
    NumberRows starts;
    table("end", {}, document);
    table("cluster", cluster_keys(cluster_), document);
    table("storage", storage_keys(storage), document);
    table("startup", startup_keys(starts), document);
    table("scheduler", scheduler_keys(cluster_.scheduler), document);
    cluster_.storage = storage.storage;
    cluster_.storage.writes = rates("storage", "writes", storage.writes, document);
    cluster_.storage.reads = rates("storage", "reads", storage.reads, document);
    for (const StorageRate& rate : rates("startup", "starts", starts, document))
      cluster_.startup.starts.push_back({rate.processes, rate.bytes_per_second, rate.error});
  }

  void table(const std::string& name, const std::vector<Key>& keys, const InputDocument& document) {
    std::vector<InputEntry> entries;
    for (const InputEntry& entry : document.entries)
      if (entry.table == name) entries.push_back(entry);
    set_keys(name, keys, entries, kHelp, unused_, faults_);
  }

  /// Rows [count, number, error] by ascending count.
  std::vector<StorageRate> rates(const std::string& table, const std::string& key,
                                 const NumberRows& rows, const InputDocument& document) {
    std::vector<StorageRate> rates;
    for (const std::vector<double>& row : rows) {
      const bool whole = row.size() == 3 && row[0] >= 1 && row[0] <= 1e9 &&
                         row[0] == static_cast<double>(static_cast<index_t>(row[0]));
      if (!whole || row[1] <= 0 ||
          (!rates.empty() && row[0] <= static_cast<double>(rates.back().processes))) {
        for (const InputEntry& entry : document.entries)
          if (entry.table == table && entry.key == key)
            fault(entry.where,
                  fmt::format("{}.{}: row {} does not fit", table, key, rates.size() + 1),
                  "rows are [count, number > 0, standard error], by ascending whole counts");
        return {};
      }
      rates.push_back({static_cast<index_t>(row[0]), row[1], row[2]});
    }
    return rates;
  }

  void add(const InputElement& element) {
    element_ = &element;
    const std::size_t before = faults_.size();
    if (element.array == "class")
      add_class();
    else if (element.array == "level")
      add_level();
    else if (element.array == "partition")
      add_partition();
    else if (element.array == "factor")
      add_factor();
    else if (element.array == "operator")
      add_operator();
    else
      add_collective();
    if (faults_.size() > before) faulty_.insert(element.array);
  }

  /// False where something is wrong with a value: then nothing more is said of this element.
  bool set(const std::vector<Key>& keys) {
    const std::size_t before = faults_.size();
    set_keys(element_->array, keys, element_->entries, kHelp, unused_, faults_);
    return faults_.size() == before;
  }
  /// At the key of this element, or where it begins.
  void fault_at(const std::string& key, std::string what, std::string hint = "") {
    const auto entry = std::find_if(element_->entries.begin(), element_->entries.end(),
                                    [&](const InputEntry& one) { return one.key == key; });
    fault(entry == element_->entries.end() ? element_->where : entry->where, std::move(what),
          std::move(hint));
  }
  [[nodiscard]] bool good_name(const std::string& name) {
    const bool good =
        !name.empty() && is_utf8(name) && std::none_of(name.begin(), name.end(), is_control);
    if (!good)
      fault_at("name", fmt::format("this [[{}]] has no name", element_->array),
               "write name = \"...\", without control characters");
    return good;
  }

  /// What a job plan takes, too.
  [[nodiscard]] bool zero_or(const std::string& key, double value, double least, double most,
                             const char* zero) {
    if (value == 0 || (value >= least && value <= most)) return true;
    fault_at(key, fmt::format("{}.{} cannot be {:g}", element_->array, key, value),
             fmt::format("write 0 ({}), or from {:g} to {:g}", zero, least, most));
    return false;
  }

  void add_class() {
    NodeClass own;
    const bool fits = set(class_keys(own));
    names_.insert(own.name);  // also of one with faults: what names it is no further fault
    if (!fits || !good_name(own.name)) return;
    if (!zero_or("hazard_scale_hours", own.hazard_scale_hours, 1e-3, 1e9, "never lost") ||
        !zero_or("return_hours", own.return_hours, 1e-6, 2.7e5, "not known"))
      return;
    if (own.nodes == 0)
      return fault_at("nodes", fmt::format("class {} has no nodes", printable(own.name, 100)),
                      "write nodes = 1 or more, or remove the class");
    if (cluster_.find_class(own.name))
      return fault_at("name", fmt::format("two [[class]] have the name \"{}\"", own.name),
                      "give each a name of its own");
    cluster_.classes.push_back(std::move(own));
  }

  bool known_class(const std::string& key, const std::string& name) {
    if (names_.contains(name)) return true;
    const std::vector<std::string> names(names_.begin(), names_.end());
    const auto near = nearest_word(name, names);
    fault_at(key, fmt::format("there is no class \"{}\"", printable(name, 100)),
             near ? fmt::format("did you mean \"{}\"?", *near) : "write its [[class]]");
    return false;
  }

  void add_level() {
    Level own;
    const bool fits = set(level_keys(own));
    level_names_.insert({own.name, own.node_class});
    if (!fits || !good_name(own.name)) return;
    if (!own.node_class.empty() && !known_class("class", own.node_class)) return;
    if (own.ranks > 0 && own.nodes != 1)
      return fault_at("ranks", "ranks are for levels inside a node", "write nodes = 1, too");
    for (const Level& other : cluster_.levels)
      if (other.name == own.name && other.node_class == own.node_class)
        return fault_at("name", fmt::format("two [[level]] have the name \"{}\"", own.name),
                        "give each a name or a class of its own");
    cluster_.levels.push_back(std::move(own));
  }

  void add_partition() {
    SchedulerPartition own;
    if (!set(partition_keys(own)) || !good_name(own.name)) return;
    for (const std::string& name : own.classes)
      if (!known_class("classes", name)) return;
    if (!zero_or("time_limit_seconds", own.time_limit_seconds, 60, 1e9, "none")) return;
    for (const SchedulerPartition& other : cluster_.scheduler.partitions)
      if (other.name == own.name)
        return fault_at("name", fmt::format("two [[partition]] have the name \"{}\"", own.name),
                        "give each a name of its own");
    cluster_.scheduler.partitions.push_back(std::move(own));
  }

  void add_factor() {
    FactorEntry own;
    if (!set(factor_keys(own)) || !known_class("class", own.node_class)) return;
    if (own.factors.steps == 0) return fault_at("steps", "of no steps", "write steps = 1 or more");
    for (NodeClass& one : cluster_.classes) {
      if (one.name != own.node_class) continue;
      if (one.factors.steps > 0)
        return fault_at("class", "a second [[factor]] of this class", "remove one of them");
      one.factors = std::move(own.factors);
    }
  }

  bool good_fit(const Fit& fit, const TableForm& form, const NumberRows& samples) {
    if (fit.terms.empty() && samples.empty()) {
      fault_at("terms", "there are neither terms nor samples", "write one of them");
      return false;
    }
    for (const auto& [key, list] : {std::pair{"terms", &fit.terms}, {"term_errors", &fit.errors}})
      if (!list->empty() && list->size() != form.terms.size()) {
        fault_at(key, fmt::format("{}.{} has {} numbers", element_->array, key, list->size()),
                 fmt::format("write {}: {}", form.terms.size(), fmt::join(form.terms, ", ")));
        return false;
      }
    if (!fit.terms.empty() && *std::max_element(fit.terms.begin(), fit.terms.end()) <= 0) {
      fault_at("terms", "all terms are 0: this would take no time", "write at least one");
      return false;
    }
    return true;
  }

  /// Nothing where they are not of this form.
  std::vector<Sample> samples_of(const NumberRows& rows, const TableForm& form) {
    const std::size_t columns = form.columns.size();
    const auto wrong = [&](std::size_t at) {
      fault_at("samples", fmt::format("{}.samples: row {} does not fit", element_->array, at + 1),
               fmt::format("rows are [{}, seconds > 0, standard error]; extents are 1 or more, "
                           "transposes 0 or 1",
                           fmt::join(form.columns, ", ")));
      return std::vector<Sample>();
    };
    if (rows.size() > kMostSamples) {
      fault_at("samples", fmt::format("{} samples are too many", rows.size()),
               fmt::format("keep {} at most", kMostSamples));
      return {};
    }
    std::vector<Sample> samples;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::vector<double>& row = rows[at];
      if (row.size() != columns + 2) return wrong(at);
      Sample& sample = samples.emplace_back();
      for (std::size_t column = 0; column < columns; ++column) {
        const bool flag = std::string_view(form.columns[column]).starts_with("transpose");
        sample.shape[column] = row[column];
        if (flag ? row[column] != 0 && row[column] != 1 : row[column] < 1 || row[column] > 1e18)
          return wrong(at);
      }
      sample.seconds = row[columns];
      sample.error = row[columns + 1];
      if (sample.seconds < 1e-12 || sample.seconds > 1e12) return wrong(at);
    }
    return samples;
  }

  void add_operator() {
    OperatorEntry own;
    if (!set(operator_keys(own)) || !known_class("class", own.node_class)) return;
    const TableForm form = form_of(own.table.kind);
    if (!good_fit(own.table.fit, form, own.samples)) return;
    own.table.samples = samples_of(own.samples, form);
    for (NodeClass& node_class : cluster_.classes) {
      if (node_class.name != own.node_class) continue;
      for (const OperatorTable& other : node_class.operators)
        if (other.kind == own.table.kind && other.format == own.table.format)
          return fault_at("kind", "this operator of this class is there twice",
                          "remove one of them");
      node_class.operators.push_back(std::move(own.table));
    }
  }

  void add_collective() {
    CollectiveEntry own;
    if (!set(collective_keys(own))) return;
    if (!level_names_.contains({own.level, own.node_class}))
      return fault_at("level",
                      fmt::format("there is no level \"{}\" of class \"{}\"",
                                  printable(own.level, 100), printable(own.node_class, 100)),
                      "write its [[level]]");
    if (!good_fit(own.table.fit, collective_form(), own.samples)) return;
    own.table.samples = samples_of(own.samples, collective_form());
    for (Level& level : cluster_.levels) {
      if (level.name != own.level || level.node_class != own.node_class) continue;
      for (const CollectiveTable& other : level.collectives)
        if (other.verb == own.table.verb)
          return fault_at("verb", "this verb of this level is there twice", "remove one of them");
      level.collectives.push_back(std::move(own.table));
    }
  }

  std::string file_name_;
  bool has_end_ = false;  // the file says that it ends with [end]
  Cluster cluster_;
  Config unused_;  // what slots of other lists point into
  const InputElement* element_ = nullptr;
  std::set<std::string> names_;
  std::set<std::pair<std::string, std::string>> level_names_;
  std::set<std::string> faulty_;
  std::vector<Fault> faults_;
};

}  // namespace

Cluster parse_cluster(const std::string& text, const std::string& file_name,
                      std::vector<std::string>* notes) {
  return ClusterReader(file_name).read(text, notes);
}

Cluster load_cluster(const std::string& path, std::vector<std::string>* notes) {
  return parse_cluster(read_input(path, "cluster's"), path, notes);
}

}  // namespace t3d
