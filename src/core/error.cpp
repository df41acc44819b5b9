#include "core/error.hpp"

#include <string_view>

namespace t3d {

void check_failed(const char* file, int line, const char* condition, const std::string& text) {
  std::string_view path(file);
  if (const auto at = path.rfind("src/"); at != std::string_view::npos) path.remove_prefix(at);
  throw_error(ExitCode::internal, "internal error at {}:{}: {} does not hold: {}", path, line,
              condition, text);
}

}  // namespace t3d
