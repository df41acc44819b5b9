// Policies as words of the command line.
#include <charconv>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "forecast/simulate/job_plan.hpp"

namespace t3d {
namespace {

[[noreturn]] void refuse(std::string_view part) {
  throw_error(ExitCode::usage,
              "'{}' is no policy: recovery=requeue|in_place, copies=1..16, "
              "interval=auto|SECONDS (1 or more), spares=COUNT, sizing=rule|shrink|wait, "
              "divided by commas",
              printable(part, 60));
}

template <class Number>
Number number_of(std::string_view word, Number least, Number most, std::string_view part) {
  Number value{};
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (reason != std::errc{} || end != word.data() + word.size() ||
      !(value >= least && value <= most))
    refuse(part);
  return value;
}

template <Worded Choice>
Choice choice_from(std::string_view word, std::string_view part) {
  const auto choice = choice_of<Choice>(word);
  if (!choice) refuse(part);
  return *choice;
}

}  // namespace

SimulationPolicy parse_policy(const std::string& text, SimulationPolicy base) {
  base.name = text;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::size_t sign = part.find('=');
    if (sign == std::string_view::npos) refuse(part);
    const std::string_view name = part.substr(0, sign), value = part.substr(sign + 1);
    if (name == "recovery")
      base.recovery = choice_from<Recovery>(value, part);
    else if (name == "sizing")
      base.sizing = choice_from<Sizing>(value, part);
    else if (name == "copies")
      base.copies = number_of(value, 1, 16, part);
    else if (name == "spares")
      base.spares = number_of(value, index_t{0}, index_t{1'000'000}, part);
    else if (name == "interval")
      base.interval_seconds = value == "auto" ? 0 : number_of(value, 1.0, 1e9, part);
    else
      refuse(part);
  }
  return base;
}

}  // namespace t3d
