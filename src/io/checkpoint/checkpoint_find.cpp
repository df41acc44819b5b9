// Choosing a checkpoint: the newest that is whole, and a word about each that is not.
#include "comm/agree.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/checkpoint_history.hpp"
#include "io/checkpoint/checkpoint_read.hpp"
#include "io/checkpoint/cover_sum.hpp"
#include "io/checkpoint/file_index.hpp"

namespace t3d {
namespace {

/// `lines` of rank 0, on every rank; the work of rank 0 may throw.
template <class Work>
std::vector<std::string> lines_of_rank_0(Communicator& all, const Work& work) {
  std::string text;
  std::optional<Error> fault;
  attempt(fault, [&] {
    if (all.rank() == 0)
      for (const std::string& line : work()) text += line + "\n";
  });
  agree(all, fault);
  text = broadcast_text(all, text);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

void name_unpublished(const History& history, index_t step, const Warn& warn) {
  for (const std::string& path : history.without_manifest(step))
    warn(fmt::format("passing over {}: it has no {}", path, kManifestName));
}

/// False, and a word of it, when the collective `read` finds damage. A checkpoint that cannot be
/// read ends the search: it may be whole.
template <class Read>
bool is_whole(const std::string& path, const Warn& warn, const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::io) throw;
    if (error.refused())
      throw AgreedError(ExitCode::io,
                        fmt::format("checkpoint {} cannot be read, and no older one is taken "
                                    "unasked (-r PATH takes one that you choose): {}",
                                    path, error.what()));
    if (warn) warn(fmt::format("passing over checkpoint {}: {}", path, error.what()));
    return false;
  }
}

/// The first candidate whose manifest and sizes are right and of which the collective `use`,
/// called with its path and its manifest, says so too.
template <class Use>
std::optional<CheckpointInfo> first_whole(Communicator& all, const std::string& dir,
                                          const Warn& warn, const Use& use) {
  std::optional<History> history;  // of rank 0
  const auto paths = lines_of_rank_0(all, [&] { return history.emplace(dir).candidates(); });
  for (const std::string& path : paths) {
    Manifest manifest;
    if (!is_whole(path, warn, [&] { manifest = read_manifest(all, path); })) continue;
    if (!use(path, manifest)) continue;
    if (history && warn) name_unpublished(*history, manifest.state.step, warn);
    return CheckpointInfo{path, std::move(manifest.state)};
  }
  if (paths.empty()) return std::nullopt;
  throw AgreedError(ExitCode::io,
                    fmt::format("no valid checkpoint in {}: all {} that could be continued are "
                                "damaged (-r PATH takes one that you choose)",
                                dir, paths.size()));
}

/// Only rank 0 speaks.
Warn of_rank_0(const Communicator& all, const Warn& warn) {
  return all.rank() == 0 ? warn : Warn();
}

}  // namespace

std::optional<CheckpointInfo> find_checkpoint(Communicator& world, const std::string& dir,
                                              const Warn& warn) {
  const auto all = checkpoint_group(world);
  return first_whole(*all, dir, of_rank_0(*all, warn),
                     [](const std::string&, const Manifest&) { return true; });
}

std::optional<CheckpointInfo> load_newest(Communicator& world, const std::string& dir,
                                          const PartsOf& parts_of, const Warn& warn,
                                          const std::string& optional_prefix) {
  const auto all = checkpoint_group(world);
  const Warn heard = of_rank_0(*all, warn);
  return first_whole(*all, dir, heard, [&](const std::string& path, const Manifest& manifest) {
    const std::vector<TensorPart> parts = parts_of({path, manifest.state});
    return is_whole(path, heard, [&] { load_from(*all, manifest, path, parts, optional_prefix); });
  });
}

Lineage next_lineage(Communicator& world, const std::string& dir,
                     const std::optional<CheckpointInfo>& from, const Warn& warn) {
  const auto all = checkpoint_group(world);
  const auto lines = lines_of_rank_0(*all, [&] {
    const History history(dir);
    const Lineage next = history.next(from ? &*from : nullptr);
    auto others = history.others(next.number);
    if (from) std::erase(others, from->path);  // what this run goes on from
    if (!others.empty() && warn)
      warn(
          fmt::format("of earlier starts of this run, before it was started over, went back or "
                      "passed over a damaged one: {}; this run does not continue or remove them. "
                      "Remove what you do not need; -r PATH goes back to one",
                      list_of(others)));
    return std::vector<std::string>{std::to_string(next.number), std::to_string(next.parent_step),
                                    std::to_string(next.parent_lineage), next.parent_run,
                                    next.parent};
  });
  Lineage lineage{std::stoll(lines.at(0)), lines.at(4), lines.at(3)};
  lineage.parent_step = std::stoll(lines.at(1));
  lineage.parent_lineage = std::stoll(lines.at(2));
  return lineage;
}

CheckpointInfo open_checkpoint(Communicator& world, const std::string& path) {
  const auto all = checkpoint_group(world);
  return {path, read_manifest(*all, path).state};
}

std::string describe_checkpoint(const std::string& path, bool verify) {
  const Manifest manifest = parse_manifest(read_manifest_text(path), path + "/" + kManifestName);
  check_files(manifest, path);
  double bytes = 0;
  std::map<std::string, CoverSum> covers;
  for (index_t number = 0; number < std::ssize(manifest.files); ++number) {
    const ManifestFile& file = manifest.files[static_cast<std::size_t>(number)];
    bytes += static_cast<double>(file.bytes) + static_cast<double>(file.index_bytes);
    if (!verify) continue;
    const std::string name = path + "/" + file.name;
    std::uint32_t crc = 0;
    if (file.name == kMasterName) {
      crc = file_crc32c(name);
    } else {
      const FileIndex index = read_index(path, manifest, number);
      for (const auto& [tensor, pieces] : index)
        for (const ManifestPiece& piece : pieces)
          covers[tensor] = covers[tensor] + cover_sum(piece.box);
      crc = verify_node_file(path, manifest, number, index);
    }
    if (file.crc >= 0 && file.crc != crc)
      throw_error(ExitCode::io, "{} is damaged (the CRC of the file does not match)", name);
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string fault = cover_sum_fault(covers[name], tensor.rows, tensor.cols);
    if (verify && !fault.empty()) throw_error(ExitCode::io, "{}: {}: {}", path, name, fault);
  }
  std::string text = fmt::format("{}: step {}, run {}, {} in {}, {}{}\n", path, manifest.state.step,
                                 manifest.state.run_id, counted(manifest.tensors.size(), "tensor"),
                                 counted(manifest.files.size(), "file"), format_bytes(bytes),
                                 verify ? ", verified" : "");
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string shape = tensor.vector ? fmt::format("{}", tensor.cols)
                                            : fmt::format("{} x {}", tensor.rows, tensor.cols);
    text += fmt::format("  {:<48} {:>16}  {}  {}\n", name, shape, name_of(tensor.dtype),
                        counted(boxes_of(manifest, tensor), "box", "boxes"));
  }
  for (const auto& [name, content] : manifest.state.texts)
    text += fmt::format("{}:\n{}\n", name, content);
  return text;
}

}  // namespace t3d
