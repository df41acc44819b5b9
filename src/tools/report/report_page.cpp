#include "tools/report/report_page.hpp"

#include <cstdint>

#include "core/error.hpp"
#include "t3d_report_page.hpp"

namespace t3d {
namespace {

/// JSON that cannot end the element that it stands in.
std::string json_for_page(const ReportJson& json) {
  const std::string text = json.dump(-1, ' ', false, ReportJson::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char letter : text)
    if (letter == '<')
      safe += "\\u003c";
    else
      safe += letter;
  return safe;
}

void add_block(std::string& page, const std::string& id, const std::string& bytes) {
  page += "<script type=\"text/plain\" id=\"" + id + "\">" + base64_of(bytes) + "</script>\n";
}

/// What stands for {{name}} in the template.
std::string part_of(const std::string& name, const std::string& data) {
  if (name == "style") return kReportStyle;
  if (name == "script") return kReportScript;
  if (name == "data") return data;
  throw_error(ExitCode::internal, "the page knows no {}", name);
}

}  // namespace

std::string base64_of(std::string_view bytes) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t byte = 0; byte < 3; ++byte)
      three = three << 8U | (byte < count ? static_cast<unsigned char>(bytes[at + byte]) : 0U);
    for (std::size_t letter = 0; letter < 4; ++letter)
      text += letter <= count ? kLetters[three >> (18 - 6 * letter) & 63U] : '=';
  }
  return text;
}

std::string report_page(ReportJson report, const std::vector<ReportRun>& runs) {
  report["runs"] = ReportJson::array();
  for (const ReportRun& run : runs) report["runs"].push_back(run.json);
  std::string data =
      "<script type=\"application/json\" id=\"report\">" + json_for_page(report) + "</script>\n";
  for (std::size_t at = 0; at < runs.size(); ++at)
    add_block(data, fmt::format("steps-{}", at), runs[at].steps);
  for (std::size_t at = 0; at < runs.size(); ++at)
    add_block(data, fmt::format("ranks-{}", at), runs[at].ranks);

  std::string page = kReportMark;
  const std::string_view frame = kReportFrame;
  for (std::size_t at = 0; at < frame.size();) {
    const std::size_t open = std::min(frame.find("{{", at), frame.size());
    page += frame.substr(at, open - at);
    if (open == frame.size()) break;
    const std::size_t close = frame.find("}}", open);
    page += part_of(std::string(frame.substr(open + 2, close - open - 2)), data);
    at = close + 2;
  }
  return page;
}

}  // namespace t3d
