#include "data/text/json_line.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

constexpr std::size_t kShown = 100;  // bytes of what is not understood

/// The wanted strings of the outermost object; nothing else of the line is kept.
class FieldPicker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FieldPicker(const std::string& name) : names_{&name, nullptr} {}
  FieldPicker(const std::string& prompt, const std::string& completion)
      : names_{&prompt, &completion} {}

  struct Field {
    bool there = false, text = false;
    std::string value;
  };
  [[nodiscard]] Field& field(std::size_t n) { return fields_[n]; }
  [[nodiscard]] bool object() const { return object_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& value) override {
    if (wanted_ < 2) fields_[wanted_] = {true, true, std::move(value)};
    return done();
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) object_ = true;
    return deeper();
  }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool end_array() override { return shallower(); }
  bool key(string_t& name) override {
    wanted_ = kNone;
    for (std::size_t n = 0; depth_ == 1 && n < 2; ++n)
      if (names_[n] != nullptr && *names_[n] == name) wanted_ = n;
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    fault_ = error.what();
    return false;
  }

 private:
  static constexpr std::size_t kNone = 2;
  bool other() {
    if (wanted_ < 2) fields_[wanted_] = {true, false, {}};
    return done();
  }
  bool done() {
    wanted_ = kNone;
    return true;
  }
  bool deeper() {
    ++depth_;
    return other();
  }
  bool shallower() {
    --depth_;
    return true;
  }

  const std::string* names_[2];
  Field fields_[2];
  std::size_t wanted_ = kNone;
  int depth_ = 0;
  bool object_ = false;
  std::string fault_;
};

std::string take(FieldPicker& picker, std::size_t n, const std::string& name) {
  FieldPicker::Field& field = picker.field(n);
  if (!field.there) throw_error(ExitCode::config, "there is no field \"{}\"", name);
  if (!field.text) throw_error(ExitCode::config, "the field \"{}\" is no text", name);
  return std::move(field.value);
}

/// "[json.exception.parse_error.101] parse error at ...": what follows the bracket.
std::string_view plain(std::string_view text) {
  const auto end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

}  // namespace

JsonDocument parse_json_line(std::string_view line, const JsonFields& fields) {
  const bool pair = !fields.completion.empty();
  FieldPicker picker =
      pair ? FieldPicker(fields.prompt, fields.completion) : FieldPicker(fields.text);
  const bool sound = nlohmann::json::sax_parse(line.begin(), line.end(), &picker);
  if (!sound)
    throw_error(ExitCode::config, "not JSON: {}", printable(plain(picker.fault()), 2 * kShown));
  if (!picker.object())
    throw_error(ExitCode::config, "not an object of JSON: {}", printable(line, kShown));
  JsonDocument document;
  if (pair) document.prompt = take(picker, 0, fields.prompt);
  document.text = pair ? take(picker, 1, fields.completion) : take(picker, 0, fields.text);
  return document;
}

}  // namespace t3d
