#include "hetero/speed/speeds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/parse_json.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<const char*, kWorkClasses> kClassNames{"matmul", "attention", "whole",
                                                            "streamed"};

/// Beyond these nothing was measured, and products of them are numbers still. Work is flops and
/// bytes, or a rate of them; errors are relative.
constexpr double kLeastWork = 1e-6, kMostWork = 1e24, kLeastSeconds = 1e-15, kMostSeconds = 1e9;
constexpr double kMostRelativeError = 1e9;

OrderedJson json_of(const TimeCurve& curve) {
  if (curve.stated()) return curve.points().front().work;
  OrderedJson points = OrderedJson::array();
  for (const TimeCurve::Point& point : curve.points())
    points.push_back({point.work, point.seconds});
  return points;
}

OrderedJson json_of(const RankSpeed& rank) {
  OrderedJson json;
  json["node"] = rank.node;
  json["device"] = rank.device;
  json["free_bytes"] = rank.free_bytes;
  json["error"] = rank.error;
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
    json[kClassNames[kind]] = json_of(rank.curves[kind]);
  return json;
}

OrderedJson json_of(const LinkSpeed& link) {
  return {{"alpha_seconds", link.alpha_seconds},
          {"beta_seconds_per_byte", link.beta_seconds_per_byte}};
}

/// One value of the file, and where it stands for messages.
class Field {
 public:
  Field(const OrderedJson& json, std::string source, std::string path)
      : json_(json), source_(std::move(source)), path_(std::move(path)) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw_error(ExitCode::config, "{}: {}: {}", source_, path_.empty() ? "speeds" : path_,
                printable(fmt::format(text, std::forward<Args>(args)...)));
  }
  [[nodiscard]] const OrderedJson& json() const { return json_; }
  [[nodiscard]] bool has(const std::string& name) const { return json_.contains(name); }
  [[nodiscard]] Field member(const std::string& name) const {
    if (!has(name)) refuse("'{}' is missing", name);
    return {json_[name], source_, path_.empty() ? name : path_ + "." + name};
  }
  [[nodiscard]] Field element(std::size_t at) const {
    return {json_[at], source_, fmt::format("{}[{}]", path_, at)};
  }

  void expect_object(std::initializer_list<const char*> names) const {
    if (!json_.is_object()) refuse("expected an object {{...}}, got {}", shown());
    for (const auto& item : json_.items())
      if (std::find(names.begin(), names.end(), item.key()) == names.end())
        refuse("unknown field '{}'", item.key());
  }
  void expect_list() const {
    if (!json_.is_array()) refuse("expected a list [...], got {}", shown());
  }
  /// 0 to `most`.
  [[nodiscard]] double number(double most) const {
    if (!json_.is_number()) refuse("expected a number, got {}", shown());
    const auto value = json_.get<double>();
    if (!std::isfinite(value) || value < 0) refuse("{} is not finite and >= 0", value);
    if (value > most) refuse("{} is more than {}", value, most);
    return value;
  }
  [[nodiscard]] double positive(double least, double most) const {
    const double value = number(most);
    if (value == 0) refuse("must be greater than 0");
    if (value < least) refuse("{} is less than {}", value, least);
    return value;
  }
  [[nodiscard]] index_t bytes() const {
    if (!json_.is_number_integer()) refuse("expected a whole number of bytes, got {}", shown());
    const bool huge = json_.is_number_unsigned() && json_.get<std::uint64_t>() >> 63 != 0;
    if (huge || json_.get<index_t>() < 0) refuse("{} is not a number of bytes", shown());
    return json_.get<index_t>();
  }
  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) refuse("expected a text \"...\", got {}", shown());
    return json_.get<std::string>();
  }

 private:
  [[nodiscard]] std::string shown() const {
    const std::string all = json_.dump();
    return printable(all, 40);
  }

  const OrderedJson& json_;
  std::string source_, path_;
};

TimeCurve curve_of(const Field& field) {
  if (field.json().is_number()) {
    if (field.number(kMostWork) == 0) return {};
    return TimeCurve::of_rate(field.positive(kLeastWork, kMostWork));
  }
  if (!field.json().is_array()) field.refuse("expected a rate or a list of points [work, seconds]");
  TimeCurve curve;
  for (std::size_t at = 0; at < field.json().size(); ++at) {
    const Field point = field.element(at);
    if (!point.json().is_array() || point.json().size() != 2)
      point.refuse("expected a point [work, seconds]");
    curve.add(point.element(0).positive(kLeastWork, kMostWork),
              point.element(1).positive(kLeastSeconds, kMostSeconds));
  }
  return curve;
}

RankSpeed rank_of(const Field& field) {
  field.expect_object({"node", "device", "free_bytes", "error", kClassNames[0], kClassNames[1],
                       kClassNames[2], kClassNames[3]});
  RankSpeed rank;
  if (field.has("node")) rank.node = field.member("node").text();
  if (field.has("device")) rank.device = field.member("device").text();
  if (field.has("free_bytes")) rank.free_bytes = field.member("free_bytes").bytes();
  if (field.has("error")) rank.error = field.member("error").number(kMostRelativeError);
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
    rank.curves[kind] = curve_of(field.member(kClassNames[kind]));
  return rank;
}

LinkSpeed link_of(const Field& field) {
  field.expect_object({"alpha_seconds", "beta_seconds_per_byte"});
  return {field.member("alpha_seconds").number(kMostSeconds),
          field.member("beta_seconds_per_byte").number(kMostSeconds)};
}

bool has_speed(const RankSpeed& rank) {
  return std::any_of(rank.curves.begin(), rank.curves.end(),
                     [](const TimeCurve& curve) { return !curve.empty(); });
}

Speeds speeds_of(const Field& field) {
  field.expect_object({"ranks", "inside", "between"});
  Speeds speeds;
  const Field ranks = field.member("ranks");
  ranks.expect_list();
  for (std::size_t at = 0; at < ranks.json().size(); ++at)
    speeds.ranks.push_back(rank_of(ranks.element(at)));
  if (std::none_of(speeds.ranks.begin(), speeds.ranks.end(), has_speed))
    ranks.refuse("none of {} ranks has any speed", speeds.ranks.size());
  if (field.has("inside")) speeds.inside = link_of(field.member("inside"));
  if (field.has("between")) speeds.between = link_of(field.member("between"));
  return speeds;
}

}  // namespace

const char* name_of(WorkClass work) { return kClassNames[static_cast<std::size_t>(work)]; }

double work_of(const StepWork& work, WorkClass kind) {
  const std::array<index_t, kWorkClasses> all{work.matmul, work.attention, work.whole,
                                              work.streamed};
  return static_cast<double>(all[static_cast<std::size_t>(kind)]);
}

double RankSpeed::seconds(const StepWork& work) const {
  double sum = 0;
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
    sum += seconds(static_cast<WorkClass>(kind), work);
  return sum;
}

bool RankSpeed::trusts(const StepWork& work) const {
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
    const double amount = work_of(work, static_cast<WorkClass>(kind));
    if (curves[kind].trusted(amount) < amount) return false;
  }
  return true;
}

namespace {

constexpr double kErrors = 2;
/// Of large models there may be too few samples to tell an error: a rank of a third of the others'
/// speed shows even so.
constexpr double kMostError = 0.2;

/// The slowest rank needs at most (1 + tolerance) times the seconds of the fastest, where both may
/// be off by so many standard errors.
bool alike(const std::vector<RankSpeed>& ranks, const StepWork& work, double tolerance,
           double errors) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const RankSpeed& rank : ranks) {
    const double seconds = rank.seconds(work);
    if (!std::isfinite(seconds)) return false;
    const double error = errors * std::min(rank.error, kMostError);
    least = std::min(least, seconds * (1 + error));
    most = std::max(most, seconds * (1 - error));
  }
  return most <= (1 + tolerance) * least;
}

}  // namespace

bool Speeds::equal(const StepWork& work, double tolerance) const {
  return alike(ranks, work, tolerance, kErrors);
}

bool Speeds::doubtful(const StepWork& work, double tolerance) const {
  return alike(ranks, work, tolerance, kErrors) && !alike(ranks, work, tolerance, 0);
}

void Speeds::take_better(const Speeds& again) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (again.ranks[rank].error < ranks[rank].error) ranks[rank] = again.ranks[rank];
}

void Speeds::join(const Speeds& more) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RankSpeed& known = ranks[rank];
    const RankSpeed& other = more.ranks[rank];
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
      if (other.curves[kind].stated()) continue;
      for (const TimeCurve::Point& point : other.curves[kind].points())
        known.curves[kind].add(point.work, point.seconds);
    }
    known.error = std::max(known.error, other.error);
    known.free_bytes = other.free_bytes;
  }
  inside = more.inside;
  between = more.between;
}

std::string Speeds::text() const {
  const auto dump = [](const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  std::string text = "{\"ranks\": [";
  for (std::size_t at = 0; at < ranks.size(); ++at)
    text += (at == 0 ? "\n " : ",\n ") + dump(json_of(ranks[at]));
  return text + "],\n\"inside\": " + dump(json_of(inside)) +
         ",\n\"between\": " + dump(json_of(between)) + "}\n";
}

Speeds parse_speeds(const std::string& text, const std::string& source) {
  OrderedJson json;
  try {
    json = parse_json<OrderedJson>(text, source);
  } catch (const OrderedJson::exception& error) {
    throw_error(ExitCode::config, "{}: not JSON: {}", source, printable(error.what(), 300));
  }
  return speeds_of({json, source, ""});
}

}  // namespace t3d
