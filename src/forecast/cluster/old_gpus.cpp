#include "forecast/cluster/old_gpus.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace t3d {
namespace {

/// How a name goes on after the maker's and the family's words.
constexpr std::array<std::string_view, 26> kOld{
    {"V100",     "P100",     "P40",      "P4",       "T4",        "K80",      "K40",
     "K20",      "M60",      "M40",      "TITAN V",  "TITAN RTX", "TITAN X",  "RTX 2060",
     "RTX 2070", "RTX 2080", "RTX 3000", "RTX 4000", "RTX 5000",  "RTX 6000", "RTX 8000",
     "GTX 1060", "GTX 1070", "GTX 1080", "GTX 1650", "GTX 1660"}};

/// A word of its own, or with a letter behind it as in "V100S" and "K20Xm".
bool names(std::string_view device, std::string_view model) {
  const std::size_t at = device.find(model);
  if (at == std::string_view::npos) return false;
  if (at > 0 && device[at - 1] != ' ') return false;
  const std::string_view rest = device.substr(at + model.size());
  return rest.empty() || std::isdigit(static_cast<unsigned char>(rest.front())) == 0;
}

}  // namespace

bool is_old_gpu(std::string_view device) {
  if (device.starts_with("NVIDIA RTX ")) return false;  // "NVIDIA RTX 5000 Ada Generation"
  return std::any_of(kOld.begin(), kOld.end(),
                     [&](std::string_view model) { return names(device, model); });
}

}  // namespace t3d
