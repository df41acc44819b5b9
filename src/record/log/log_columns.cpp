#include "record/log/log_columns.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "io/posix_file.hpp"
#include "record/log/log_lines.hpp"

namespace t3d {
namespace {

constexpr double kMostStep = 9e15;  // a whole number, in a double too
constexpr std::string_view kRanks = "rank_milliseconds.";
constexpr std::string_view kOwn = "rank_milliseconds.own";
constexpr std::string_view kMeasured = "rank_milliseconds.measured_step";

index_t lines_of(const std::string& path) {
  LogLines reader(path);
  index_t lines = 0;
  while (reader.next()) ++lines;
  return lines;
}

struct LoggedNumber {
  std::size_t column = 0;
  double value = 0;
};

/// The columns by key and index.
class ColumnTable {
 public:
  explicit ColumnTable(std::vector<LogColumn>& columns) : columns_(columns) {}

  /// Of the columns of a key, by index from -1.
  using Places = std::vector<std::size_t>;
  Places& places_of(const std::string& key) { return places_[key]; }

  std::size_t column(Places& places, const std::string& key, index_t index) {
    const auto at = static_cast<std::size_t>(index + 1);
    if (at >= places.size()) places.resize(at + 1, kNone);
    if (places[at] == kNone) {
      places[at] = columns_.size();
      columns_.push_back({key, index, {}, {}});
    }
    return places[at];
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<LogColumn>& columns_;
  std::unordered_map<std::string, Places> places_;
};

/// Hears one line at a time and keeps its numbers: those of the record, of an object in it, and of
/// a list of either.
class RecordHearer : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RecordHearer(ColumnTable& table) : table_(table) {}

  void begin() {
    numbers_.clear();
    depth_ = 0;
    list_depth_ = -1;
    step_.reset();
    emulated_ = is_object_ = false;
  }
  [[nodiscard]] const std::vector<LoggedNumber>& numbers() const { return numbers_; }
  [[nodiscard]] const std::optional<double>& step() const { return step_; }
  [[nodiscard]] bool emulated() const { return emulated_; }

  bool null() override { return skip(); }
  bool boolean(bool value) override {
    if (value && depth_ == 1 && key_ == "emulated") emulated_ = true;
    return skip();
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 1 && list_depth_ < 0 && key_ == "step") step_ = static_cast<double>(value);
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t&) override { return skip(); }
  bool binary(binary_t&) override { return skip(); }
  bool start_object(std::size_t) override {
    if (depth_++ == 0) is_object_ = true;
    return true;
  }
  bool end_object() override {
    --depth_;
    return skip();
  }
  bool key(string_t& key) override {
    if (list_depth_ >= 0) return true;  // of an object in a list
    if (depth_ == 1) top_ = key_ = key;
    if (depth_ == 2) key_ = top_ + "." + key;
    if (depth_ <= 2) places_ = &table_.places_of(key_);
    return true;
  }
  bool start_array(std::size_t) override {
    if (list_depth_ < 0) {
      list_depth_ = depth_;
      index_ = 0;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (depth_ != list_depth_) return skip();
    list_depth_ = -1;
    if (counted()) add(-1, static_cast<double>(index_));
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  /// Lists whose length says more than what is in them.
  [[nodiscard]] bool counted() const { return key_ == "left_out"; }
  bool skip() {
    if (list_depth_ >= 0 && depth_ == list_depth_ + 1) ++index_;
    return true;
  }
  bool number(double value) {
    const int place = list_depth_ >= 0 ? list_depth_ : depth_;
    const bool is_own = list_depth_ < 0 || depth_ == list_depth_ + 1;
    if (is_object_ && place >= 1 && place <= 2 && is_own && !(list_depth_ >= 0 && counted()))
      add(list_depth_ >= 0 ? index_ : -1, value);
    return skip();
  }
  void add(index_t index, double value) {
    numbers_.push_back({table_.column(*places_, key_, index), value});
  }

  ColumnTable& table_;
  ColumnTable::Places* places_ = nullptr;
  std::string top_, key_;
  int depth_ = 0, list_depth_ = -1;  // containers that are open; in which the list stands
  index_t index_ = 0;                // in the list
  std::vector<LoggedNumber> numbers_;
  std::optional<double> step_;
  bool emulated_ = false, is_object_ = false;
};

class ColumnReader {
 public:
  ColumnReader(LogColumns& out, const LogLimits& limits)
      : out_(out), limits_(limits), table_(out.columns), hearer_(table_) {}

  void read(const std::string& path) {
    const index_t lines = lines_of(path);
    out_.step_stride = std::max<index_t>(1, (lines + limits_.rows - 1) / limits_.rows);
    LogLines reader(path);
    while (const auto line = reader.next()) {
      take(*line, out_.lines % out_.step_stride == 0 || out_.lines + 1 == lines);
      ++out_.lines;
    }
    out_.cut = reader.has_rest();
    std::erase_if(out_.columns, [](const LogColumn& column) { return column.values.empty(); });
  }

 private:
  void take(std::string_view line, bool wanted) {
    hearer_.begin();
    const bool whole = nlohmann::json::sax_parse(line.begin(), line.end(), &hearer_);
    if (!whole || !hearer_.step()) {
      ++out_.no_records;
      return;
    }
    if (!out_.steps.empty() && *hearer_.step() <= out_.steps.back()) {
      ++out_.out_of_order;
      return;
    }
    out_.emulated |= hearer_.emulated();
    const auto hole = out_.missing.add(static_cast<index_t>(std::min(*hearer_.step(), kMostStep)));
    if (hole && out_.missing.ranges().back() == *hole) add_hole(*hole);
    if (wanted || has_validation()) add_row();
  }

  [[nodiscard]] bool has_validation() const {
    return std::any_of(hearer_.numbers().begin(), hearer_.numbers().end(),
                       [&](const LoggedNumber& number) {
                         return out_.columns[number.column].key.starts_with("valid_loss");
                       });
  }

  void add_hole(const StepRange& hole) {
    for (const index_t step : {hole.first, hole.last}) {
      const auto number = static_cast<double>(step);
      if (!out_.steps.empty() && out_.steps.back() == number) continue;
      LogColumn& steps = out_.columns[table_.column(table_.places_of("step"), "step", -1)];
      steps.rows.push_back(static_cast<std::uint32_t>(out_.steps.size()));
      steps.values.push_back(number);
      out_.steps.push_back(number);
      ++out_.hole_rows;
    }
  }

  void add_row() {
    const auto row = static_cast<std::uint32_t>(out_.steps.size());
    out_.steps.push_back(*hearer_.step());
    // Times of no step: nothing was measured yet.
    bool measured = true;
    for (const LoggedNumber& number : hearer_.numbers())
      if (out_.columns[number.column].key == kMeasured && number.value == 0) measured = false;
    for (const LoggedNumber& number : hearer_.numbers()) {
      LogColumn& column = out_.columns[number.column];
      if (column.key.starts_with(kRanks)) {
        if (!measured) continue;
        if (column.index >= 0 && !has_room(column.key == kOwn, row)) continue;
      }
      column.rows.push_back(row);
      column.values.push_back(number.value);
    }
    thin(true, own_values_, limits_.own_values, out_.rank_stride);
    thin(false, part_values_, 4 * limits_.part_values, out_.part_stride);
  }

  bool has_room(bool own, std::uint32_t row) {
    if (row % (own ? out_.rank_stride : out_.part_stride) != 0) return false;
    ++(own ? own_values_ : part_values_);
    return true;
  }

  /// Every other one of the values goes when there are too many.
  void thin(bool own, index_t& values, index_t most, index_t& stride) {
    while (values > most) {
      stride *= 2;
      values = 0;
      for (LogColumn& column : out_.columns) {
        if (column.index < 0 || !column.key.starts_with(kRanks) || (column.key == kOwn) != own)
          continue;
        std::size_t kept = 0;
        for (std::size_t at = 0; at < column.rows.size(); ++at) {
          if (column.rows[at] % stride != 0) continue;
          column.rows[kept] = column.rows[at];
          column.values[kept++] = column.values[at];
        }
        column.rows.resize(kept);
        column.values.resize(kept);
        values += static_cast<index_t>(kept);
      }
    }
  }

  LogColumns& out_;
  LogLimits limits_;
  ColumnTable table_;
  RecordHearer hearer_;
  index_t own_values_ = 0, part_values_ = 0;
};

}  // namespace

const LogColumn* LogColumns::find(const std::string& key, index_t index) const {
  for (const LogColumn& column : columns)
    if (column.index == index && column.key == key) return &column;
  return nullptr;
}

LogColumns read_log_columns(const std::string& path, const LogLimits& limits) {
  LogColumns columns;
  if (path_exists(path)) ColumnReader(columns, limits).read(path);
  return columns;
}

}  // namespace t3d
