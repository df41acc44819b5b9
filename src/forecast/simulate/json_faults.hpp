// Reading a JSON document whose faults are all to be told at once: each value knows where it
// stands, and what is wrong with it goes into one list.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "core/utf8.hpp"

namespace t3d {

/// A value of the document. Reading a wrong one adds a fault and gives the fallback.
class JsonValue {
 public:
  using Json = nlohmann::ordered_json;
  JsonValue(const Json& json, std::string path, std::vector<std::string>& faults)
      : json_(json), path_(std::move(path)), faults_(faults) {}

  void fault(const std::string& text) const {
    faults_.push_back((path_.empty() ? "" : path_ + ": ") + printable(text, 200));
  }
  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] bool has(const char* name) const {
    return json_.is_object() && json_.contains(name);
  }
  /// It is there.
  [[nodiscard]] JsonValue member(const char* name) const {
    return {json_[name], path_.empty() ? name : path_ + "." + name, faults_};
  }
  [[nodiscard]] JsonValue element(std::size_t at) const {
    return {json_[at], fmt::format("{}[{}]", path_, at), faults_};
  }

  /// An object with the first `needed` of these members and no others.
  bool expect_object(std::initializer_list<const char*> names, std::size_t needed) const {
    if (!json_.is_object()) return expected("an object {...}");
    for (const auto& item : json_.items())
      if (std::find(names.begin(), names.end(), item.key()) == names.end())
        fault(fmt::format("unknown field '{}'", item.key()));
    for (std::size_t at = 0; at < needed; ++at)
      if (!has(names.begin()[at])) fault(fmt::format("'{}' is missing", names.begin()[at]));
    return true;
  }
  /// A list of 1 to `most` entries.
  bool expect_list(std::size_t most) const {
    if (!json_.is_array()) return expected("a list [...]");
    if (json_.empty()) fault("the list is empty");
    if (json_.size() > most) fault(fmt::format("{} entries, at most {}", json_.size(), most));
    return !json_.empty() && json_.size() <= most;
  }
  [[nodiscard]] double number(double least, double most, double fallback = 0) const {
    if (!json_.is_number()) return expected("a number") ? 0 : fallback;
    const auto value = json_.get<double>();
    if (value >= least && value <= most) return value;
    fault(fmt::format("{:g} is not from {:g} to {:g}", value, least, most));
    return fallback;
  }
  [[nodiscard]] index_t count(index_t least, index_t most) const {
    if (!json_.is_number_integer()) return expected("a whole number") ? 0 : least;
    const bool huge = json_.is_number_unsigned() && json_.get<std::uint64_t>() >> 62 != 0;
    const index_t value = huge ? std::numeric_limits<index_t>::max() : json_.get<index_t>();
    if (value >= least && value <= most) return value;
    fault(fmt::format("{} is not from {} to {}", json_.dump(), least, most));
    return least;
  }
  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) return expected("a text \"...\"") ? "" : "";
    return json_.get<std::string>();
  }
  [[nodiscard]] bool flag() const {
    if (!json_.is_boolean()) return expected("true or false");
    return json_.get<bool>();
  }

 private:
  bool expected(const char* what) const {
    fault(fmt::format("expected {}, got {}", what, printable(json_.dump(), 40)));
    return false;
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string>& faults_;
};

}  // namespace t3d
