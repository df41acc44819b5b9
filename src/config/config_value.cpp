// Values of keys: from the input into a Config (types, ranges, words), and back to TOML text.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "config/config_schema.hpp"
#include "config/foreign_names.hpp"
#include "config/table_list.hpp"
#include "config/toml_input.hpp"
#include "core/levenshtein.hpp"

namespace t3d {
namespace {

using Kind = InputValue::Kind;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string item_text(const std::string& item) { return toml_string(item); }
std::string item_text(double item) { return fmt::format("{}", item); }
std::string item_text(index_t item) { return fmt::format("{}", item); }
std::string item_text(int item) { return fmt::format("{}", item); }

template <class List>
std::string list_text(const List& list) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += ", ";
    out += item_text(item);
  }
  return "[" + out + "]";
}

/// A line for each row.
std::string rows_text(const NumberRows& rows) {
  std::string out;
  for (const auto& row : rows) out += "\n  " + list_text(row) + ",";
  return rows.empty() ? "[]" : "[" + out + "\n]";
}

/// Reads one entry for one key: the first problem met stays.
class Reader {
 public:
  Reader(const Key& key, const InputEntry& entry) : key_(key), entry_(entry) {}

  void operator()(bool* out) {
    if (need(entry_.value, Kind::boolean)) *out = entry_.value.boolean;
  }
  void operator()(index_t* out) { integer(entry_.value, *out); }
  void operator()(int* out) { integer(entry_.value, *out); }
  void operator()(double* out) { number(entry_.value, *out); }

  void operator()(std::string* out) {
    if (const auto text = allowed_text_value()) *out = *text;
  }
  void operator()(const WordSlot& out) {
    if (const auto word = allowed_text_value()) out.set(*word);
  }

  void operator()(std::vector<std::string>* out) {
    std::vector<std::string> list;
    if (entry_.value.kind == Kind::list) {
      for (const InputValue& item : entry_.value.items) {
        if (!need(item, Kind::text)) return;
        list.push_back(item.text);
      }
    } else if (!entry_.bare.empty()) {
      list.push_back(entry_.bare);
    } else {
      if (!need(entry_.value, Kind::text)) return;
      if (!entry_.value.text.empty()) list.push_back(entry_.value.text);
    }
    *out = std::move(list);
  }

  void operator()(std::vector<int>* out) {
    numbers(*out, [this](const InputValue& item, int& x) { return integer(item, x); });
  }
  void operator()(std::vector<double>* out) {
    numbers(*out, [this](const InputValue& item, double& x) { return number(item, x); });
  }

  void operator()(NumberRows* out) {
    if (!need(entry_.value, Kind::list)) return;
    NumberRows rows;
    for (const InputValue& item : entry_.value.items) {
      if (!need(item, Kind::list)) return;
      std::vector<double>& row = rows.emplace_back();
      for (const InputValue& one : item.items)
        if (!number(one, row.emplace_back())) return;
    }
    *out = std::move(rows);
  }

  void operator()(const CountSlot& out) {
    *out.automatic = is_auto();
    if (*out.automatic)
      *out.count = 1;  // not what stood there before
    else
      integer(entry_.value, *out.count);
  }

  void operator()(MeshConfig* out) {
    const InputValue& value = entry_.value;
    if (is_auto()) {
      out->cuboid_auto = true;
      return;
    }
    std::array<index_t, 3> shape{};
    if (value.kind != Kind::list || value.items.size() != shape.size()) return wrong_type(value);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!integer(value.items[axis], shape[axis])) return;
    }
    out->cuboid_auto = false;
    out->cuboid = shape;
  }

  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }

 private:
  [[nodiscard]] bool is_auto() const {
    return entry_.value.kind == Kind::text && entry_.value.text == "auto";
  }

  /// The text of the entry, where it is one of the key's words.
  std::optional<std::string> allowed_text_value() {
    const bool bare = !entry_.bare.empty();
    if (!bare && !need(entry_.value, Kind::text)) return std::nullopt;
    std::string word = bare ? entry_.bare : entry_.value.text;
    for (const auto& [before, now] : key_.old_words)
      if (word == before) word = now;
    const bool known = key_.words.empty() ||
                       std::find(key_.words.begin(), key_.words.end(), word) != key_.words.end();
    if (known) return word;
    std::string hint = hint_for_foreign_word(key_.full_name(), word);
    if (const auto near = nearest_word(word, key_.words); near && hint.empty())
      hint = fmt::format("did you mean \"{}\"?", *near);
    fail(fmt::format("{} cannot be \"{}\"", key_.full_name(), word),
         "allowed: " + key_.allowed_text() + (hint.empty() ? "" : "; " + hint));
    return std::nullopt;
  }

  void fail(std::string what, std::string hint) {
    if (!problem_) problem_ = Problem{std::move(what), std::move(hint)};
  }

  void wrong_type(const InputValue& value) {
    fail(fmt::format("{} must be {}, not {}", key_.full_name(), key_.type_text(), value.describe()),
         "");
  }

  bool need(const InputValue& value, Kind kind) {
    if (value.kind == kind) return true;
    wrong_type(value);
    return false;
  }

  bool in_range(double x) {
    if (key_.range.holds(x)) return true;
    fail(fmt::format("{} cannot be {}", key_.full_name(), x), "allowed: " + key_.range.text());
    return false;
  }

  template <class Integer>
  bool integer(const InputValue& value, Integer& out) {
    index_t x = value.integer;
    // 1e5 is a float to TOML; as a count it is meant as 100000.
    if (value.kind == Kind::real && std::abs(value.real) < 1e15 &&
        std::floor(value.real) == value.real) {
      x = static_cast<index_t>(value.real);
    } else if (!need(value, Kind::integer)) {
      return false;
    }
    if (!in_range(static_cast<double>(x))) return false;
    if (x > std::numeric_limits<Integer>::max()) {
      fail(fmt::format("{} cannot be {}", key_.full_name(), x), "the number is too large");
      return false;
    }
    out = static_cast<Integer>(x);
    return true;
  }

  bool number(const InputValue& value, double& out) {
    if (value.kind != Kind::integer && !need(value, Kind::real)) return false;
    const double x = value.kind == Kind::integer ? static_cast<double>(value.integer) : value.real;
    if (!std::isfinite(x)) {
      fail(fmt::format("{} cannot be {}", key_.full_name(), x), "write a finite number");
      return false;
    }
    if (!in_range(x)) return false;
    out = x;
    return true;
  }

  template <class Number, class Read>
  void numbers(std::vector<Number>& out, Read read) {
    if (!need(entry_.value, Kind::list)) return;
    std::vector<Number> list;
    for (const InputValue& item : entry_.value.items) {
      if (!read(item, list.emplace_back())) return;
    }
    out = std::move(list);
  }

  const Key& key_;
  const InputEntry& entry_;
  std::optional<Problem> problem_;
};

}  // namespace

namespace {
/// 0.5, 4096, 1e8
std::string bound_text(double x) {
  std::string text = fmt::format("{:g}", x);
  if (const auto at = text.find("e+"); at != std::string::npos) {
    text.erase(at + 1, text[at + 2] == '0' ? 2 : 1);
  }
  return text;
}
}  // namespace

bool Range::holds(double x) const {
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string Range::text() const {
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (has_low && has_high) {
    return fmt::format("{} {} x {} {}", bound_text(low),
                       low_open ? "<" : "<=", high_open ? "<" : "<=", bound_text(high));
  }
  if (has_low) return fmt::format("x {} {}", low_open ? ">" : ">=", bound_text(low));
  if (has_high) return fmt::format("x {} {}", high_open ? "<" : "<=", bound_text(high));
  return "";
}

std::string Key::type_text() const {
  Config config;
  return std::visit(
      Overloaded{[](bool*) { return "true or false"; }, [](index_t*) { return "an integer"; },
                 [](int*) { return "an integer"; }, [](double*) { return "a number"; },
                 [](std::string*) { return "a string"; },
                 [](const WordSlot&) { return "a string"; },
                 [](std::vector<std::string>*) { return "a string or a list of strings"; },
                 [](std::vector<int>*) { return "a list of integers"; },
                 [](std::vector<double>*) { return "a list of numbers"; },
                 [](NumberRows*) { return "a list of lists of numbers"; },
                 [](const CountSlot&) { return "\"auto\" or an integer"; },
                 [](MeshConfig*) { return "\"auto\" or three integers [p, q, r]"; }},
      slot(config));
}

std::string Key::allowed_text() const {
  std::string out;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    if (!out.empty()) out += ", ";
    out += word;
  }
  return words.empty() ? range.text() : out;
}

std::string Key::default_text() const {
  if (required) return "required";
  return fallback.empty() ? value_text(*this, Config{}) : fallback;
}

std::optional<Problem> set_value(const Key& key, const InputEntry& entry, Config& config) {
  Reader reader(key, entry);
  std::visit(reader, key.slot(config));
  return reader.problem();
}

std::string value_text(const Key& key, const Config& config) {
  Config copy = config;  // slots point into a Config that may be written
  return std::visit(Overloaded{[](const bool* x) -> std::string { return *x ? "true" : "false"; },
                               [](const std::vector<std::string>* x) { return list_text(*x); },
                               [](const std::vector<int>* x) { return list_text(*x); },
                               [](const std::vector<double>* x) { return list_text(*x); },
                               [](const NumberRows* x) { return rows_text(*x); },
                               [](const MeshConfig* x) {
                                 return x->cuboid_auto ? toml_string("auto") : list_text(x->cuboid);
                               },
                               [](const CountSlot& x) {
                                 return *x.automatic ? toml_string("auto") : item_text(*x.count);
                               },
                               [](const WordSlot& x) { return toml_string(x.get()); },
                               [](const auto* x) { return item_text(*x); }},
                    key.slot(copy));
}

std::vector<std::string> config_differences(const Config& from, const Config& to) {
  std::vector<std::string> lines;
  for (const Key& key : config_keys()) {
    const std::string before = value_text(key, from), after = value_text(key, to);
    if (before != after)
      lines.push_back(fmt::format("{}: {} -> {}", key.full_name(), before, after));
  }
  for (const TableList& list : table_lists())
    for (std::string& difference : list_differences(list, from, to))
      lines.push_back(std::move(difference));
  return lines;
}

}  // namespace t3d
