// [[data.source]]: the sources of a mixture; [[data.validation]]: validation sets with names.
#pragma once
#include "config/table_list.hpp"

namespace t3d {

[[nodiscard]] TableList data_source_list();
[[nodiscard]] TableList validation_list();

/// The name of a source: what is written, else its number.
[[nodiscard]] std::string source_name(const DataConfig& data, std::size_t at);
/// data.train, or what all sources read.
[[nodiscard]] std::vector<std::string> train_files(const DataConfig& data);

}  // namespace t3d
