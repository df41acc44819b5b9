// master.h5: what people and their tools open. Every tensor whole, as a virtual data set over the
// node files beside it, the run's texts under "run/", step and run as attributes. Copied without
// the node files it reads as NaN.
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/hdf5/h5_file.hpp"

namespace t3d {
namespace {

using Sources = std::map<std::string, std::vector<H5Source>>;

Sources sources_of(const std::vector<IndexLines>& indexes, const Manifest& manifest,
                   const TensorNames& names) {
  Sources sources;
  for (index_t number = 0; number < std::ssize(indexes); ++number)
    for (const auto& [name, pieces] : indexes[static_cast<std::size_t>(number)].read(names))
      for (const ManifestPiece& piece : pieces)
        sources[name].push_back({manifest.files[static_cast<std::size_t>(number)].name,
                                 "/" + dataset_name(name, piece.box), piece.box});
  return sources;
}

/// Some tensors at a time: their boxes are in memory together. Of each index is kept where the
/// lines of its tensors are.
void add_tensors(const H5File& file, const std::string& folder, const Manifest& manifest,
                 index_t most_boxes) {
  std::vector<IndexLines> indexes;
  for (index_t number = 0; number < std::ssize(manifest.files); ++number)
    indexes.emplace_back(folder, manifest, number);
  TensorNames names;
  index_t boxes = 0;
  const auto add = [&] {
    if (names.empty()) return;
    for (const auto& [name, sources] : sources_of(indexes, manifest, names)) {
      const ManifestTensor& tensor = manifest.tensors.at(name);
      file.create_virtual(name, tensor.dtype, tensor.rows, tensor.cols, tensor.vector, sources);
    }
    names.clear();
    boxes = 0;
  };
  for (const auto& [name, tensor] : manifest.tensors) {
    const index_t more = boxes_of(manifest, tensor);
    if (more == 0) continue;
    if (boxes + more > most_boxes) add();
    names.insert(name);
    boxes += more;
  }
  add();
}

}  // namespace

ManifestFile write_master(const std::string& folder, const Manifest& manifest, bool verify,
                          index_t most_boxes) {
  const std::string path = folder + "/" + kMasterName;
  H5File file = H5File::create(path);
  file.write_attribute("step", std::int64_t{manifest.state.step});
  file.write_attribute("run_id", manifest.state.run_id);
  file.write_attribute("read_me", std::string("the values lie in the node files beside this file: "
                                              "copy the whole folder; alone it reads as NaN"));
  for (const auto& [name, text] : manifest.state.texts) file.write_text("run/" + name, text);
  add_tensors(file, folder, manifest, most_boxes);
  file.close();
  sync_path(path);
  ManifestFile entry;
  entry.name = kMasterName;
  entry.bytes = file_size(path);
  if (!verify) return entry;
  entry.crc = file_crc32c(path);
  H5File again = H5File::open(path);
  for (const auto& [name, tensor] : manifest.tensors)
    if (boxes_of(manifest, tensor) > 0 && !again.has(name))
      throw_error(ExitCode::io, "{} lacks {} when read again", path, name);
  again.close();
  return entry;
}

}  // namespace t3d
