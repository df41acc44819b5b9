// master.h5: what people and their tools open. Every tensor whole, as a virtual data set over the
// node files beside it, the run's texts under "run/", step and run as attributes. Copied without
// the node files it reads as NaN.
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/hdf5/h5_file.hpp"

namespace t3d {
namespace {

void add_tensor(const H5File& file, const Manifest& manifest, const std::string& name,
                const ManifestTensor& tensor) {
  std::vector<H5Source> sources;
  for (const ManifestPiece& piece : tensor.pieces)
    sources.push_back({manifest.files[static_cast<std::size_t>(piece.file)].name,
                       "/" + dataset_name(name, piece.box), piece.box});
  if (!sources.empty())
    file.create_virtual(name, tensor.dtype, tensor.rows, tensor.cols, tensor.vector, sources);
}

}  // namespace

ManifestFile write_master(const std::string& folder, const Manifest& manifest, bool verify) {
  const std::string path = folder + "/" + kMasterName;
  H5File file = H5File::create(path);
  file.write_attribute("step", std::int64_t{manifest.state.step});
  file.write_attribute("run_id", manifest.state.run_id);
  file.write_attribute("read_me", std::string("the values lie in the node files beside this file: "
                                              "copy the whole folder; alone it reads as NaN"));
  for (const auto& [name, text] : manifest.state.texts) file.write_text("run/" + name, text);
  for (const auto& [name, tensor] : manifest.tensors) add_tensor(file, manifest, name, tensor);
  file.close();
  sync_path(path);
  ManifestFile entry{kMasterName, file_size(path), -1, 0, 0, 0};
  if (!verify) return entry;
  entry.crc = file_crc32c(path);
  H5File again = H5File::open(path);
  for (const auto& [name, tensor] : manifest.tensors)
    if (!tensor.pieces.empty() && !again.has(name))
      throw_error(ExitCode::io, "{} lacks {} when read again", path, name);
  again.close();
  return entry;
}

}  // namespace t3d
