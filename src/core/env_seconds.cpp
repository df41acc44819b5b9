#include "core/env_seconds.hpp"

#include <cstdlib>

namespace t3d {

double env_seconds(const char* name, double fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text || *end != 0 || !(value >= 0) ? fallback : value;
}

}  // namespace t3d
