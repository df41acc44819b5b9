// Columns as bytes come back as they were: decoded here as the page does it.
#include "tools/report/column_code.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "support/catch.hpp"

namespace t3d {
namespace {

/// One coded column, decoded.
class Decoded {
 public:
  explicit Decoded(const LogColumn& column, std::size_t rows) {
    ColumnCoder coder(rows);
    coder.add(column);
    const auto json = coder.head();
    head_ = json["heads"][0];
    bytes_ = coder.bytes();
    std::size_t begin = 0;
    for (const auto& length : json["parts"]) {
      begins_.push_back(begin);
      begin += length.get<std::size_t>();
    }
    CHECK(begin == bytes_.size());
    count_ = head_.value("count", rows);
    const std::string code = head_["code"];
    if (code == "whole") wholes();
    if (code == "short") shorts();
    if (code == "real") reals();
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  [[nodiscard]] std::string code() const { return head_["code"]; }
  [[nodiscard]] std::size_t bytes() const { return bytes_.size(); }
  [[nodiscard]] bool has_row(std::size_t row) const {
    return (byte(16, row / 8) >> row % 8 & 1U) != 0;
  }

 private:
  [[nodiscard]] std::uint64_t byte(std::size_t part, std::size_t at) const {
    return static_cast<unsigned char>(bytes_[begins_[part] + at]);
  }
  template <class Number>
  [[nodiscard]] Number number(std::size_t first, std::size_t planes, std::size_t at) const {
    std::uint64_t bits = 0;
    for (std::size_t plane = 0; plane < planes; ++plane)
      bits |= byte(first + plane, at) << 8 * plane;
    Number out{};
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  void wholes() {
    double mean = head_["first"];
    for (std::size_t at = 0; at < count_; ++at) {
      const auto bits = number<std::uint32_t>(0, head_["planes"], at);
      const auto difference = (bits >> 1U) ^ (bits & 1U ? ~std::uint32_t{0} : 0);
      const auto expected =
          static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(mean + 0.5)));
      const double whole = static_cast<std::int32_t>(expected + difference);
      mean += (whole - mean) * head_["takes"].get<double>();
      values_.push_back(whole / head_["per"].get<double>());
    }
  }
  void shorts() {
    for (std::size_t at = 0; at < count_; ++at)
      values_.push_back(short_decimal(static_cast<double>(number<float>(4, 4, at))));
  }
  void reals() {
    for (std::size_t at = 0; at < count_; ++at) values_.push_back(number<double>(8, 8, at));
  }

  nlohmann::ordered_json head_;
  std::string bytes_;
  std::vector<std::size_t> begins_;
  std::size_t count_ = 0;
  std::vector<double> values_;
};

LogColumn column_of(const std::string& key, const std::vector<double>& values) {
  LogColumn column{key, -1, {}, values};
  for (std::size_t row = 0; row < values.size(); ++row)
    column.rows.push_back(static_cast<std::uint32_t>(row));
  return column;
}

Decoded decoded(const std::string& key, const std::vector<double>& values) {
  return Decoded(column_of(key, values), values.size());
}

}  // namespace

TEST_CASE("decimals with a common last place come back exactly, as whole numbers") {
  const std::vector<double> times{412.3, 99.87, 0, 1234, 0.05, 412.2};
  const Decoded own = decoded("rank_milliseconds.own", times);
  CHECK(own.code() == "whole");
  CHECK(own.values() == times);
  const std::vector<double> extremes{2147483647, -2147483647, 2147483647, 0, -2147483647};
  CHECK(decoded("tokens", extremes).code() == "whole");
  CHECK(decoded("tokens", extremes).values() == extremes);
  std::vector<double> steady(1000, 17.5);
  CHECK(decoded("x", steady).bytes() == 0);
  steady[500] = 21.25;
  CHECK(decoded("x", steady).values() == steady);
}

TEST_CASE("losses and large whole numbers are kept to the last bit") {
  const std::vector<double> losses{5.535871023622652, -0.0, 1e-300, 3};
  const Decoded loss = decoded("loss", losses);
  CHECK(loss.code() == "real");
  CHECK(std::memcmp(loss.values().data(), losses.data(), 4 * sizeof(double)) == 0);
  CHECK(decoded("valid_losses.news", losses).values()[2] == 1e-300);
  const std::vector<double> bytes{3932160000, 9007199254740991, 1e20, 2.5};
  CHECK(decoded("bytes_by_axis.j", bytes).values() == bytes);
  const std::vector<double> tokens{12345678, 0.001234567};
  CHECK(decoded("tokens", tokens).values() == std::vector<double>{12345678, 0.00123457});
}

TEST_CASE("of other values six digits come back") {
  const std::vector<double> seconds{0.13764945000002626, 9.084700013772817e-05, 123.45678,
                                    1.0109999948326731e-06};
  const std::vector<double> six{0.137649, 9.0847e-05, 123.457, 1.011e-06};
  const Decoded phase = decoded("phase_seconds.read", seconds);
  CHECK(phase.values() == six);
  CHECK(phase.code() == "short");
  CHECK(decoded("seconds", {0.13764945000002626, 0.0987654321}).code() == "whole");
  CHECK(decoded("lr", {0.002999537388717002}).values() == std::vector<double>{0.00299954});
  const std::vector<double> wild{1e-300, 1e300, -7.25};
  CHECK(decoded("noise_scale_sequences", wild).values() == wild);
}

TEST_CASE("which rows are there is known") {
  const LogColumn column{"valid_loss", -1, {1, 8, 9}, {4.5, 3.5, 2.5}};
  const Decoded valid(column, 11);
  CHECK(valid.values() == std::vector<double>{4.5, 3.5, 2.5});
  for (std::size_t row = 0; row < 11; ++row)
    CHECK(valid.has_row(row) == (row == 1 || row == 8 || row == 9));
}

}  // namespace t3d
