// The weights of a checkpoint, by one process.
#include <algorithm>

#include "comm/agree.hpp"
#include "core/copy_rows.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/checkpoint_read.hpp"
#include "io/weights/safetensors.hpp"
#include "io/weights/weight_source.hpp"

namespace t3d {
namespace {

class CheckpointWeights final : public WeightSource {
 public:
  CheckpointWeights(const std::string& path, const WeightNeeds& needs)
      : path_(path),
        manifest_(parse_manifest(read_manifest_text(path), path + "/" + kManifestName)),
        indexes_(manifest_, path, names_of(needs)) {
    check_files(manifest_, path);
    std::string faults;
    for (const WholeTensor& tensor : needs.tensors) {
      const std::string fault = fault_of(tensor, needs.grow_vocabulary);
      if (!fault.empty()) faults += "\n  " + fault;
    }
    if (!faults.empty())
      throw_error(ExitCode::config, "{} does not hold the weights of this model{}", path, faults);
  }

  [[nodiscard]] index_t vocabulary() const override {
    return manifest_.tensors.at("wte.weight").rows;
  }

  void read(const std::string& name, const Box& box, DType to, void* out,
            index_t ld) const override {
    const ManifestTensor& stored = manifest_.tensors.at(name);
    Box there = box;
    there.rows = std::min(box.row1(), stored.rows) - box.row0;
    if (there.empty()) return;
    if (stored.dtype == to && (ld == box.cols || there.rows == 1))
      return load(name, stored, there, out);
    std::vector<std::byte> raw(static_cast<std::size_t>(there.count() * size_of(stored.dtype)));
    load(name, stored, there, raw.data());
    std::vector<std::byte> numbers(static_cast<std::size_t>(there.count() * size_of(to)));
    convert_numbers(stored.dtype, raw.data(), to, numbers.data(), there.count());
    const index_t width = box.cols * size_of(to);
    copy_rows(static_cast<std::byte*>(out), ld * size_of(to), numbers.data(), width, there.rows,
              width);
  }

 private:
  static TensorNames names_of(const WeightNeeds& needs) {
    TensorNames names{"wte.weight"};  // vocabulary() looks at it; never empty, which means all
    for (const WholeTensor& tensor : needs.tensors) names.insert(tensor.name);
    return names;
  }

  [[nodiscard]] std::string fault_of(const WholeTensor& tensor, bool grow) const {
    const auto found = manifest_.tensors.find(tensor.name);
    if (found == manifest_.tensors.end()) return tensor.name + " is not there";
    const ManifestTensor& stored = found->second;
    const bool fewer_tokens = grow && tensor.vocabulary && stored.rows < tensor.rows;
    const bool longer = tensor.name == "wpe.weight" && stored.rows > tensor.rows;
    if (stored.cols == tensor.cols && (stored.rows == tensor.rows || fewer_tokens || longer))
      return {};
    return fmt::format("{} is {} x {}, {} x {} wanted", tensor.name, stored.rows, stored.cols,
                       tensor.rows, tensor.cols);
  }

  void load(const std::string& name, const ManifestTensor& stored, const Box& box,
            void* out) const {
    load_parts(manifest_, path_,
               {{name, stored.dtype, stored.rows, stored.cols, stored.vector, out, {{box, 0}}}}, {},
               &indexes_);
  }

  std::string path_;
  Manifest manifest_;
  mutable IndexCache indexes_;
};

}  // namespace

void read_together(Communicator& world, const std::function<void()>& read) {
  const auto all = checkpoint_group(world);
  std::optional<Error> fault;
  attempt(fault, read);
  agree(*all, fault);
}

std::unique_ptr<WeightSource> open_checkpoint_weights(const std::string& path,
                                                      const WeightNeeds& needs) {
  return std::make_unique<CheckpointWeights>(path, needs);
}

}  // namespace t3d
