// Weights with their adapters added, box by box.
#include <algorithm>
#include <map>

#include "io/weights/weight_source.hpp"

namespace t3d {
namespace {

class MergedWeights final : public WeightSource {
 public:
  MergedWeights(std::unique_ptr<WeightSource> source, const std::vector<AdaptedPart>& parts)
      : source_(std::move(source)) {
    for (const AdaptedPart& part : parts) parts_.emplace(part.weight, part);
  }

  [[nodiscard]] index_t vocabulary() const override { return source_->vocabulary(); }

  void read(const std::string& name, const Box& box, DType to, void* out,
            index_t ld) const override {
    source_->read(name, box, to, out, ld);
    const auto [first, last] = parts_.equal_range(name);
    for (auto part = first; part != last; ++part) {
      if (to == DType::f64)
        add(part->second, box, static_cast<double*>(out), ld);
      else
        add(part->second, box, static_cast<float*>(out), ld);
    }
  }

 private:
  // Sums in fp64, rounded once.
  template <class T>
  void add(const AdaptedPart& part, const Box& box, T* out, index_t ld) const {
    const index_t first = std::max(box.row0, part.row0),
                  end = std::min(box.row1(), part.row0 + part.rows);
    if (first >= end) return;
    const std::vector<double> a = numbers(part.a, {part.low0, box.col0, part.rank, box.cols});
    const std::vector<double> b =
        numbers(part.b, {part.b_row0 + first - part.row0, 0, end - first, part.rank});
    std::vector<double> sums(static_cast<std::size_t>(box.cols));
    for (index_t row = first; row < end; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const double* weights = b.data() + (row - first) * part.rank;
      for (index_t low = 0; low < part.rank; ++low)
        for (index_t col = 0; col < box.cols; ++col)
          sums[static_cast<std::size_t>(col)] +=
              weights[low] * a[static_cast<std::size_t>(low * box.cols + col)];
      T* target = out + (row - box.row0) * ld;
      for (index_t col = 0; col < box.cols; ++col)
        target[col] = static_cast<T>(static_cast<double>(target[col]) +
                                     part.factor * sums[static_cast<std::size_t>(col)]);
    }
  }
  [[nodiscard]] std::vector<double> numbers(const std::string& name, const Box& box) const {
    std::vector<double> all(static_cast<std::size_t>(box.count()));
    source_->read(name, box, DType::f64, all.data(), box.cols);
    return all;
  }

  std::unique_ptr<WeightSource> source_;
  std::multimap<std::string, AdaptedPart> parts_;  // by weight
};

}  // namespace

std::unique_ptr<WeightSource> merge_adapters(std::unique_ptr<WeightSource> source,
                                             const std::vector<AdaptedPart>& parts) {
  if (parts.empty()) return source;
  return std::make_unique<MergedWeights>(std::move(source), parts);
}

}  // namespace t3d
