#include "tokenizer/parts/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "tokenizer/parts/json_part.hpp"

namespace t3d::tok {
namespace {

using Json = nlohmann::json;

/// Takes the parser's events.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(Json& root) : root_(root) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t, const string_t& text) override {
    return put(json_number(text));
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [entry, fresh] = open_.back()->emplace(std::move(name), nullptr);
    if (!fresh) throw_error(ExitCode::io, "not JSON: {} comes twice", in_quotes(entry.key()));
    value_ = &*entry;
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string_view what(error.what());
    const std::size_t from = what.find("] ");  // behind the library's number of the error
    throw_error(ExitCode::io, "not JSON: {}",
                what.substr(from == std::string_view::npos ? 0 : from + 2));
  }

 private:
  static constexpr std::size_t kMaxDepth = 64;

  /// The place of the next value.
  Json& place() {
    if (open_.empty()) return root_;
    if (!open_.back()->is_array()) return *value_;
    open_.back()->push_back(nullptr);
    return open_.back()->back();
  }
  template <class Value>
  bool put(Value&& value) {
    place() = std::forward<Value>(value);
    return true;
  }
  bool open(Json&& empty) {
    if (open_.size() == kMaxDepth)
      throw_error(ExitCode::io, "no tokenizer: more than {} brackets in each other", kMaxDepth);
    Json& node = place();
    node = std::move(empty);
    open_.push_back(&node);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> open_;  // a list grows only while nothing inside it is open
  Json* value_ = nullptr;    // of the last key
};

double scaled(double value, int exponent) {
  constexpr int kLargest = 308;  // powers of ten that are doubles
  const auto power = [](int n) {
    double result = 0;
    const std::string text = fmt::format("1e{}", n);
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  };
  for (; exponent < -kLargest && value != 0; exponent += kLargest) value /= power(kLargest);
  if (exponent > kLargest) return value == 0 ? 0 : std::numeric_limits<double>::infinity();
  return exponent >= 0 ? value * power(exponent) : value / power(-exponent);
}

}  // namespace

double json_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::uint64_t digits = 0;
  int exponent = 0;
  bool fraction = false, full = false;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (!full) digits = digits * 10 + digit;
    if (full != fraction) exponent += full ? 1 : -1;
  }
  if (at < text.size()) {
    int more = 0;
    const char* from = text.data() + at + (text[at + 1] == '+' ? 2 : 1);
    const auto [end, error] = std::from_chars(from, text.data() + text.size(), more);
    if (error != std::errc{}) more = *from == '-' ? -100000 : 100000;
    exponent += std::clamp(more, -100000, 100000);
  }
  const double value = scaled(static_cast<double>(digits), exponent);
  if (!std::isfinite(value)) throw_error(ExitCode::io, "not JSON: {} is too large a number", text);
  return negative ? -value : value;
}

nlohmann::json parse_json(const std::string& text) {
  Json root;
  Builder builder(root);
  Json::sax_parse(text, &builder);
  return root;
}

}  // namespace t3d::tok
