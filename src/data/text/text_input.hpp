// The files of text that a list of names means.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct TextInput {
  std::string path;
  index_t bytes = 0;   // as it lies
  double changed = 0;  // seconds since 1970
  bool lines = false;  // JSONL: a document is a line, an object of JSON
  bool compressed = false;
};

/// Names, globs and folders (all files below, but those whose name begins with "."), each expanded
/// in sorted order. *.jsonl and *.ndjson are JSONL, anything else is text; with .zst behind it, it
/// is compressed. Error(no_input) when a name means nothing; Error(config) for formats that are
/// neither (parquet, gzip, ...).
[[nodiscard]] std::vector<TextInput> list_texts(const std::vector<std::string>& names);

}  // namespace t3d
