// The lines of a table of texts, with names in the first one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

class TraceLines {
 public:
  /// `text` and `source` must live as long. Cells are divided by '|' where the first line has one,
  /// else by commas outside of brackets and double quotes.
  TraceLines(std::string_view text, std::string source);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// The column of this name; Error(config) where there is none.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  /// Goes to the next line that is not empty; false at the end. Error(config) when it has another
  /// number of cells than the first.
  bool next();
  [[nodiscard]] std::string_view cell(std::size_t column) const { return cells_[column]; }
  /// Finite.
  [[nodiscard]] double number(std::size_t column) const;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    refuse_line(fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void refuse_line(const std::string& what) const;
  bool take_line(std::string_view& line);
  void divide(std::string_view line);

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  index_t line_ = 0;
  char divider_ = ',';
  std::vector<std::string> names_;
  std::vector<std::string_view> cells_;
};

}  // namespace t3d
