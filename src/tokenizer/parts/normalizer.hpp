// Normalizers: the text before it is cut into words. Valid UTF-8 in, valid UTF-8 out.
#pragma once
#include <memory>
#include <string>

#include "tokenizer/parts/json_part.hpp"

namespace t3d::tok {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// True when the first character is gone: then no other one stands where the user's text began.
  virtual bool apply(std::string& text) const = 0;
};

/// By "type". Error(io) naming the part.
[[nodiscard]] std::unique_ptr<Normalizer> make_normalizer(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Normalizer> make_bert_normalizer(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Normalizer> make_precompiled(const JsonPart& part);

}  // namespace t3d::tok
