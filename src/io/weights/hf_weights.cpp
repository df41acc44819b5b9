// The tensors of a Hugging Face folder as ours: checked against the model, read by box.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "io/weights/hf_config.hpp"
#include "io/weights/hf_folder.hpp"
#include "io/weights/hf_layout.hpp"
#include "io/weights/weight_source.hpp"

namespace t3d {
namespace {

constexpr index_t kReadNumbers = index_t{4} << 20;  // of a transposed matrix at once
constexpr std::size_t kShown = 20;                  // faults of a list

std::string shape_text(const std::vector<index_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void say(const std::string& what, const std::vector<std::string>& list,
         std::vector<std::string>& faults) {
  if (list.empty()) return;
  std::string text = what;
  for (std::size_t at = 0; at < std::min(list.size(), kShown); ++at) text += "\n    " + list[at];
  if (list.size() > kShown) text += fmt::format("\n    and {} more", list.size() - kShown);
  faults.push_back(std::move(text));
}

class HfWeights final : public WeightSource {
 public:
  HfWeights(const std::string& folder, const WeightNeeds& needs) : folder_(folder) {
    std::vector<HfTensor> wanted = hf_tensors(needs.model);
    std::vector<std::string> missing, shapes;
    std::map<std::string, bool> used;
    for (HfTensor& tensor : wanted) {
      const auto [name, place] = find(tensor.name);
      if (place == nullptr) {
        missing.push_back(tensor.name);
        continue;
      }
      used[name] = true;
      take_shape(tensor, *place, needs.grow_vocabulary, shapes);
      tensors_.emplace(tensor.ours, Piece{tensor, place});
    }
    std::vector<std::string> surplus;
    for (const auto& [name, place] : folder_.tensors())
      if (!used.contains(name) && !is_no_weight(name) &&
          !(name == "lm_head.weight" && needs.model.tied_embeddings))
        surplus.push_back(
            fmt::format("{} {}", printable(name, 100), shape_text(place.entry->shape)));
    std::vector<std::string> faults;
    if (needs.model.tied_embeddings && !same_head(needs.model))
      faults.emplace_back(
          "lm_head.weight is not the embedding, though config.json ties them: write "
          "\"tie_word_embeddings\": false");
    say("not there:", missing, faults);
    say("of another shape:", shapes, faults);
    say("left over, which the model does not have:", surplus, faults);
    if (!faults.empty())
      throw_error(ExitCode::config, "{} does not hold the weights of this model\n  {}", folder,
                  fmt::join(faults, "\n  "));
  }

  [[nodiscard]] index_t vocabulary() const override { return vocabulary_; }

  void read(const std::string& name, const Box& box, DType to, void* out,
            index_t ld) const override {
    const auto [first, last] = tensors_.equal_range(name);
    T3D_CHECK(first != last, "no tensor {}", name);
    for (auto at = first; at != last; ++at) {
      const Piece& piece = at->second;
      const Box& own = piece.tensor.box;
      Box common{std::max(box.row0, own.row0), std::max(box.col0, own.col0), 0, 0};
      common.rows = std::min(box.row1(), own.row1()) - common.row0;
      common.cols = std::min(box.col1(), own.col1()) - common.col0;
      if (common.empty()) continue;
      const index_t offset = (common.row0 - box.row0) * ld + common.col0 - box.col0;
      auto* target = static_cast<std::byte*>(out) + offset * size_of(to);
      const Box within{common.row0 - own.row0, common.col0 - own.col0, common.rows, common.cols};
      if (!piece.tensor.transposed)
        read_rows(piece, within, to, target, ld);
      else if (to == DType::f64)
        read_transposed(piece, within, reinterpret_cast<double*>(target), ld);
      else
        read_transposed(piece, within, reinterpret_cast<float*>(target), ld);
    }
  }

 private:
  struct Piece {
    HfTensor tensor;
    const HfFolder::Place* place = nullptr;
  };

  /// A tied model's files may hold the head too; then it must be the embedding.
  [[nodiscard]] bool same_head(const ModelConfig& model) const {
    const auto head = find("lm_head.weight").second;
    const auto table = tensors_.find("wte.weight");
    if (head == nullptr || table == tensors_.end()) return true;
    const HfFolder::Place& own = *table->second.place;
    if (head->entry->shape != own.entry->shape) return false;
    const index_t count = model.hidden * own.entry->shape.front();
    std::vector<double> a(static_cast<std::size_t>(std::min(count, kReadNumbers))), b(a.size());
    for (index_t done = 0; done < count; done += kReadNumbers) {
      const index_t now = std::min(kReadNumbers, count - done);
      own.file->read(*own.entry, done, now, DType::f64, a.data());
      head->file->read(*head->entry, done, now, DType::f64, b.data());
      if (!std::equal(a.begin(), a.begin() + now, b.begin())) return false;
    }
    return true;
  }

  /// Files of the first GPT-2 models leave out the prefix.
  [[nodiscard]] std::pair<std::string, const HfFolder::Place*> find(const std::string& name) const {
    constexpr std::string_view kPrefix = "transformer.";
    for (const std::string& known :
         {name, name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name})
      if (const auto found = folder_.tensors().find(known); found != folder_.tensors().end())
        return {known, &found->second};
    return {name, nullptr};
  }

  /// Tables may have another number of rows, where that is allowed; of those there are, all are
  /// read.
  void take_shape(HfTensor& tensor, const HfFolder::Place& place, bool grow,
                  std::vector<std::string>& faults) {
    std::vector<index_t> wanted = tensor.vector
                                      ? std::vector<index_t>{tensor.cols()}
                                      : std::vector<index_t>{tensor.rows(), tensor.cols()};
    const std::vector<index_t>& shape = place.entry->shape;
    const bool same_columns = shape.size() == 2 && wanted.size() == 2 && shape[1] == wanted[1];
    const bool longer = tensor.positions && same_columns && shape[0] > wanted[0];
    const bool shorter = tensor.vocabulary && grow && same_columns && shape[0] < wanted[0];
    if (shape != wanted && !longer && !shorter)
      faults.push_back(fmt::format("{} is {}, {} wanted", printable(tensor.name, 100),
                                   shape_text(shape), shape_text(wanted)));
    if (shorter) tensor.box.rows = shape[0];
    if (tensor.vocabulary)
      vocabulary_ = vocabulary_ == 0 ? tensor.box.rows : std::min(vocabulary_, tensor.box.rows);
    if (!dtype_of_safetensors(place.entry->dtype))
      faults.push_back(fmt::format("{} is {}, no number of a model", printable(tensor.name, 100),
                                   place.entry->dtype));
  }

  static void read_rows(const Piece& piece, const Box& box, DType to, std::byte* out, index_t ld) {
    const index_t columns = piece.tensor.box.cols;
    const auto& [file, entry] = *piece.place;
    if (box.cols == columns && ld == columns)
      return file->read(*entry, box.row0 * columns, box.count(), to, out);
    for (index_t row = 0; row < box.rows; ++row)
      file->read(*entry, (box.row0 + row) * columns + box.col0, box.cols, to,
                 out + row * ld * size_of(to));
  }

  // Our columns are the file's rows. Some are read at once, and turned.
  template <class T>
  static void read_transposed(const Piece& piece, const Box& box, T* out, index_t ld) {
    const index_t columns = piece.tensor.box.rows;  // of the file
    const auto& [file, entry] = *piece.place;
    const index_t at_once = std::max<index_t>(1, kReadNumbers / box.rows);
    std::vector<T> rows(static_cast<std::size_t>(std::min(at_once, box.cols) * box.rows));
    for (index_t done = 0; done < box.cols; done += at_once) {
      const index_t now = std::min(at_once, box.cols - done);
      for (index_t col = 0; col < now; ++col)
        file->read(*entry, (box.col0 + done + col) * columns + box.row0, box.rows, dtype_of<T>(),
                   rows.data() + col * box.rows);
      for (index_t row = 0; row < box.rows; ++row)
        for (index_t col = 0; col < now; ++col)
          out[row * ld + done + col] = rows[static_cast<std::size_t>(col * box.rows + row)];
    }
  }

  HfFolder folder_;
  std::multimap<std::string, Piece> tensors_;  // by our name
  index_t vocabulary_ = 0;
};

}  // namespace

ModelConfig read_hf_model(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!path_exists(folder)) throw_error(ExitCode::no_input, "there is no {}", folder);
  if (!path_exists(path) && path_exists(folder + "/adapter_config.json"))
    throw_error(
        ExitCode::no_input,
        "{} holds PEFT's adapters alone, which are not read; a run that began with them goes "
        "on from its own checkpoint, others from a merged model",
        folder);
  if (!path_exists(path))
    throw_error(ExitCode::no_input, "{} has no config.json, as a folder of Hugging Face's has{}",
                folder, path_exists(folder + "/MANIFEST.json") ? ": it is a checkpoint" : "");
  return parse_hf_config(read_record_file(path), path);
}

void check_hf_window(const std::string& folder, index_t context) {
  const std::string path = folder + "/config.json";
  const index_t window = parse_hf_window(read_record_file(path), path);
  if (window > 0 && context > window)
    throw_error(ExitCode::config,
                "{}: sliding_window = {} is not computed here, and a context of {} reaches beyond "
                "it: at most {}",
                path, window, context, window);
}

std::unique_ptr<WeightSource> open_hf_weights(const std::string& folder, const WeightNeeds& needs) {
  return std::make_unique<HfWeights>(folder, needs);
}

}  // namespace t3d
