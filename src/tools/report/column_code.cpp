#include "tools/report/column_code.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace t3d {
namespace {

constexpr double kMostWhole = 2147483647;  // in 32 bits
constexpr int kMostDecimals = 12;

/// value * per, where value is the double nearest to that number / per.
std::optional<double> whole_of(double value, double per) {
  const double number = std::nearbyint(value * per);
  if (!(std::abs(number) <= kMostWhole) || number / per != value) return std::nullopt;
  if (number == 0 && std::signbit(value)) return std::nullopt;
  return number;
}

/// The least power of ten by which all values are whole numbers; nothing where there is none.
std::optional<double> common_factor(const std::vector<double>& values) {
  double per = 1;
  int decimals = 0;
  for (const double value : values)
    while (!whole_of(value, per)) {
      if (++decimals > kMostDecimals) return std::nullopt;
      per *= 10;
    }
  for (const double value : values)  // the largest ones may be too large now
    if (!whole_of(value, per)) return std::nullopt;
  return per;
}

/// Follows the values; what it expects is a whole number. `part`: how much of a change it takes
/// over, 1 = the last value is expected; a power of two, so that every machine rounds alike.
class RunningPrediction {
 public:
  RunningPrediction(double first, double part) : mean_(first), part_(part) {}
  [[nodiscard]] double next() const { return std::floor(mean_ + 0.5); }
  void see(double value) { mean_ += (value - mean_) * part_; }

 private:
  double mean_, part_;
};

std::vector<std::uint32_t> differences(const std::vector<double>& wholes, double part) {
  RunningPrediction prediction(wholes.front(), part);
  std::vector<std::uint32_t> out;
  out.reserve(wholes.size());
  for (const double whole : wholes) {
    // Wraps around at 32 bits, as it does in the page.
    const auto difference =
        static_cast<std::uint32_t>(static_cast<std::int64_t>(whole - prediction.next()));
    out.push_back(difference << 1U ^ (difference >> 31U ? ~std::uint32_t{0} : 0));
    prediction.see(whole);
  }
  return out;
}

double bits_of(const std::vector<std::uint32_t>& numbers) {
  double bits = 0;
  for (const std::uint32_t number : numbers) bits += std::bit_width(number);
  return bits;
}

constexpr std::size_t kWholes = 0, kShorts = 4, kReals = 8, kRows = 16;  // first of the parts

template <class Number, class Parts>
void put_planes(Parts& parts, std::size_t first, const std::vector<Number>& numbers, int planes) {
  for (int plane = 0; plane < planes; ++plane) {
    std::string& part = parts[first + static_cast<std::size_t>(plane)];
    for (const Number number : numbers) part.push_back(static_cast<char>(number >> (8 * plane)));
  }
}

template <class Bits, class Number>
std::vector<Bits> bits_as(const std::vector<double>& values) {
  std::vector<Bits> bits;
  bits.reserve(values.size());
  for (const double value : values) bits.push_back(std::bit_cast<Bits>(static_cast<Number>(value)));
  return bits;
}

/// Six digits come back from a float of any usual size; of whole numbers there may be more.
bool fit_floats(const std::vector<double>& values) {
  for (const double value : values) {
    const double size = std::abs(value);
    if (value != 0 && !(size > 1e-37 && size < 1e38)) return false;
    if (value == std::nearbyint(value) && size > 999'999) return false;
  }
  return true;
}

}  // namespace

bool is_kept_whole(const std::string& key) {
  return key == "loss" || key.starts_with("valid_loss");
}

double short_decimal(double value) {
  if (value == std::nearbyint(value)) return value;
  std::array<char, 32> text{};
  const auto end = fmt::format_to_n(text.data(), text.size(), "{:.5e}", value).out;
  double rounded = value;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

void ColumnCoder::add(const LogColumn& column) {
  nlohmann::ordered_json head{{"key", column.key}};
  if (column.index >= 0) head["index"] = column.index;
  if (column.values.size() < rows_) {
    head["count"] = column.values.size();
    put_missing(column);
  }
  std::vector<double> values = column.values;
  const bool rounded = !is_kept_whole(column.key);
  if (rounded)
    for (double& value : values) value = short_decimal(value);
  if (const auto per = common_factor(values)) {
    put_wholes(head, values, *per);
  } else if (rounded && fit_floats(values)) {
    head["code"] = "short";
    put_planes(parts_, kShorts, bits_as<std::uint32_t, float>(values), 4);
  } else {
    head["code"] = "real";
    put_planes(parts_, kReals, bits_as<std::uint64_t, double>(values), 8);
  }
  heads_.push_back(std::move(head));
}

void ColumnCoder::put_missing(const LogColumn& column) {
  std::string bits((rows_ + 7) / 8, '\0');
  for (const std::uint32_t row : column.rows)
    bits[row / 8] = static_cast<char>(static_cast<unsigned char>(bits[row / 8]) | 1U << row % 8);
  parts_[kRows] += bits;
}

void ColumnCoder::put_wholes(nlohmann::ordered_json& head, const std::vector<double>& values,
                             double per) {
  std::vector<double> wholes;
  wholes.reserve(values.size());
  for (const double value : values) wholes.push_back(*whole_of(value, per));
  constexpr std::array takes{1.0, 0.125};
  std::array<std::vector<std::uint32_t>, takes.size()> tries;
  for (std::size_t at = 0; at < takes.size(); ++at) tries[at] = differences(wholes, takes[at]);
  const std::size_t best = bits_of(tries[1]) < bits_of(tries[0]) ? 1 : 0;
  std::uint32_t all = 0;
  for (const std::uint32_t number : tries[best]) all |= number;
  const int planes = static_cast<int>(std::bit_width(all) + 7) / 8;
  head["code"] = "whole";
  head["per"] = per;
  head["first"] = wholes.front();
  head["takes"] = takes[best];
  head["planes"] = planes;
  put_planes(parts_, kWholes, tries[best], planes);
}

nlohmann::ordered_json ColumnCoder::head() const {
  nlohmann::ordered_json lengths = nlohmann::ordered_json::array();
  for (const std::string& part : parts_) lengths.push_back(part.size());
  return {{"heads", heads_}, {"parts", lengths}};
}

std::string ColumnCoder::bytes() const {
  std::string all;
  for (const std::string& part : parts_) all += part;
  return all;
}

}  // namespace t3d
