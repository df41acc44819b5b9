#include "record/study/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using RooflineJson = nlohmann::ordered_json;

constexpr std::size_t kMatmulColumns = 5, kAttentionColumns = 5;
/// Beyond these nothing was measured, and their quotients have logarithms still.
constexpr double kLeast = 1e-15, kMost = 1e24;

RooflineJson point_json(const RooflinePoint& point) {
  return {{"kind", point.kind},   {"shape", point.shape}, {"times", point.times},
          {"flops", point.flops}, {"bytes", point.bytes}, {"seconds", point.seconds},
          {"error", point.error}};
}

RooflinePoint point_of(const RooflineJson& json) {
  RooflinePoint point{json.at("kind"),  json.at("shape"),   json.at("times"), json.at("flops"),
                      json.at("bytes"), json.at("seconds"), json.at("error")};
  for (const double number : {point.flops, point.bytes, point.seconds})
    if (!(number >= kLeast && number <= kMost))
      throw_error(ExitCode::io, "a {} with {:g} flops, bytes or seconds", point.kind, number);
  if (point.is_matmul() && point.shape.size() < kMatmulColumns)
    throw_error(ExitCode::io, "a matmul without its extents");
  return point;
}

}  // namespace

double Roofline::allowed(double intensity) const {
  return std::min(matmul_rate, stream_rate * intensity);
}

double Roofline::ridge() const { return stream_rate > 0 ? matmul_rate / stream_rate : 0; }

std::string use_of(const RooflinePoint& point) {
  if (!point.is_matmul()) {
    std::string words = point.kind;
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
  }
  if (point.shape[3] != 0) return "weight gradient";
  return point.shape[4] != 0 ? "forward" : "input gradient";
}

std::string shape_text(const RooflinePoint& point) {
  const std::vector<double>& x = point.shape;
  if (point.is_matmul()) return fmt::format("{:g} x {:g} x {:g}", x[0], x[1], x[2]);
  if (x.size() == kAttentionColumns)
    return fmt::format("{:g} x {:g}, {:g} heads of {:g}", x[0], x[1], x[2], x[4]);
  if (x.size() == 2) return fmt::format("{:g} x {:g}", x[0], x[1]);
  return x.empty() ? "" : format_bytes(x[0]);
}

std::string roofline_text(const Roofline& roofline) {
  RooflineJson json{{"format", 1},
                    {"name", roofline.name},
                    {"plan", roofline.plan},
                    {"processor", roofline.processor},
                    {"device", roofline.device},
                    {"number_format", roofline.number_format},
                    {"ranks", roofline.ranks},
                    {"threads", roofline.threads},
                    {"emulated", roofline.emulated},
                    {"matmul_flops_per_second", roofline.matmul_rate},
                    {"stream_bytes_per_second", roofline.stream_rate},
                    {"vendor_peak_flops_per_second", nullptr},
                    {"operators", RooflineJson::array()},
                    {"notes", roofline.notes}};
  if (roofline.vendor_peak > 0) json["vendor_peak_flops_per_second"] = roofline.vendor_peak;
  for (const RooflinePoint& point : roofline.points) json["operators"].push_back(point_json(point));
  return json.dump(1, ' ', false, RooflineJson::error_handler_t::replace) + "\n";
}

Roofline parse_roofline(const std::string& text, const std::string& source) {
  try {
    const RooflineJson json = RooflineJson::parse(text);
    Roofline roofline;
    roofline.name = json.at("name");
    roofline.plan = json.at("plan");
    roofline.processor = json.at("processor");
    roofline.device = json.at("device");
    roofline.number_format = json.at("number_format");
    roofline.ranks = json.at("ranks");
    roofline.threads = json.at("threads");
    roofline.emulated = json.at("emulated");
    roofline.matmul_rate = json.at("matmul_flops_per_second");
    roofline.stream_rate = json.at("stream_bytes_per_second");
    const RooflineJson& peak = json.at("vendor_peak_flops_per_second");
    if (!peak.is_null()) roofline.vendor_peak = peak;
    for (const double rate : {roofline.matmul_rate, roofline.stream_rate, roofline.vendor_peak})
      if (!(rate >= 0 && rate <= kMost)) throw_error(ExitCode::io, "a rate of {:g}", rate);
    for (const RooflineJson& point : json.at("operators"))
      roofline.points.push_back(point_of(point));
    for (const RooflineJson& note : json.at("notes")) roofline.notes.push_back(note);
    return roofline;
  } catch (const std::exception& error) {
    throw_error(ExitCode::io, "{} is no measurement of operators ({})", source, error.what());
  }
}

}  // namespace t3d
