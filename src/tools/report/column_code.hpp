// Columns of a log as few bytes for a page: losses, whole numbers and decimals of six digits
// exactly. The page's decode.js undoes it.
//
// Of each column, without its missing rows:
//   whole  round(value * per): 32-bit differences to a prediction, zigzag, one plane of bytes after
//          the other, the lowest first; `planes` of them, the others are zero
//   short  32-bit floats of decimals of six digits, four planes; six digits of them are the value
//   real   64-bit floats, eight planes
// Where rows are missing, a bit for each row of the log says which are there, the lowest first.
// Planes of one kind stand together, those of all columns one after the other: they are alike, and
// are deflated better so.
#pragma once
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/log/log_columns.hpp"

namespace t3d {

/// Losses; of all other values that are no whole numbers six digits are kept.
[[nodiscard]] bool is_kept_whole(const std::string& key);
/// To six digits, unless it is a whole number.
[[nodiscard]] double short_decimal(double value);

class ColumnCoder {
 public:
  /// `rows`: of the log.
  explicit ColumnCoder(std::size_t rows) : rows_(rows) {}
  /// A column with values.
  void add(const LogColumn& column);
  /// {"heads": of the columns in their order, "parts": lengths of what `bytes` is made of}
  [[nodiscard]] nlohmann::ordered_json head() const;
  [[nodiscard]] std::string bytes() const;

 private:
  void put_missing(const LogColumn& column);
  void put_wholes(nlohmann::ordered_json& head, const std::vector<double>& values, double per);

  std::size_t rows_;
  nlohmann::ordered_json heads_ = nlohmann::ordered_json::array();
  /// Planes of whole, short and real, and the bits of rows.
  std::array<std::string, 4 + 4 + 8 + 1> parts_;
};

}  // namespace t3d
