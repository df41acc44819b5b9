// Choosing a checkpoint: the newest that is whole, and a word about each that is not.
#include "comm/agree.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/checkpoint_read.hpp"

namespace t3d {
namespace {

/// Published folders, newest first, as rank 0 sees them.
std::vector<std::string> candidates(Communicator& all, const std::string& dir) {
  std::string lines;
  if (all.rank() == 0)
    for (const CheckpointFolder& folder : list_checkpoints(dir))
      if (folder.published) lines += folder.path + "\n";
  lines = broadcast_text(all, std::move(lines));
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
    paths.push_back(lines.substr(at, lines.find('\n', at) - at));
  return paths;
}

/// The first candidate on which the collective `use` does not find damage.
template <class Use>
std::optional<CheckpointInfo> first_whole(Communicator& all, const std::string& dir,
                                          const std::function<void(const std::string&)>& warn,
                                          const Use& use) {
  const auto paths = candidates(all, dir);
  for (const std::string& path : paths) {
    try {
      return CheckpointInfo{path, use(path)};
    } catch (const Error& error) {
      if (error.code() != ExitCode::io) throw;
      if (all.rank() == 0 && warn)
        warn(fmt::format("passing over checkpoint {}: {}", path, error.what()));
    }
  }
  if (paths.empty()) return std::nullopt;
  throw_error(ExitCode::io, "no valid checkpoint in {}: all {} are damaged", dir, paths.size());
}

}  // namespace

std::optional<CheckpointInfo> find_checkpoint(Communicator& world, const std::string& dir,
                                              const std::function<void(const std::string&)>& warn) {
  const auto all = checkpoint_group(world);
  return first_whole(*all, dir, warn,
                     [&](const std::string& path) { return read_manifest(*all, path).state; });
}

std::optional<CheckpointInfo> load_newest(Communicator& world, const std::string& dir,
                                          std::vector<TensorPart>& parts,
                                          const std::function<void(const std::string&)>& warn,
                                          const std::string& optional_prefix) {
  const auto all = checkpoint_group(world);
  return first_whole(*all, dir, warn, [&](const std::string& path) {
    return load_from(*all, path, parts, optional_prefix);
  });
}

CheckpointInfo open_checkpoint(Communicator& world, const std::string& path) {
  const auto all = checkpoint_group(world);
  return {path, read_manifest(*all, path).state};
}

std::string describe_checkpoint(const std::string& path, bool verify) {
  const Manifest manifest = parse_manifest(read_manifest_text(path), path + "/" + kManifestName);
  check_files(manifest, path);
  double bytes = 0;
  for (index_t number = 0; number < std::ssize(manifest.files); ++number) {
    const ManifestFile& file = manifest.files[static_cast<std::size_t>(number)];
    bytes += static_cast<double>(file.bytes);
    if (!verify) continue;
    const std::string name = path + "/" + file.name;
    const bool master = file.name == kMasterName;
    const std::uint32_t crc = master ? file_crc32c(name) : verify_node_file(path, manifest, number);
    if (file.crc >= 0 && file.crc != crc)
      throw_error(ExitCode::io, "{} is damaged (the CRC of the file does not match)", name);
  }
  std::string text =
      fmt::format("{}: step {}, run {}, {} tensors in {} files, {}{}\n", path, manifest.state.step,
                  manifest.state.run_id, manifest.tensors.size(), manifest.files.size(),
                  format_bytes(bytes), verify ? ", verified" : "");
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string shape = tensor.vector ? fmt::format("{}", tensor.cols)
                                            : fmt::format("{} x {}", tensor.rows, tensor.cols);
    text += fmt::format("  {:<48} {:>16}  {}  {} boxes\n", name, shape, name_of(tensor.dtype),
                        tensor.pieces.size());
  }
  for (const auto& [name, content] : manifest.state.texts)
    text += fmt::format("{}:\n{}\n", name, content);
  return text;
}

}  // namespace t3d
