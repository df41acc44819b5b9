#include "core/box.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace t3d {
namespace {

/// Merges boxes above each other that have the same columns; true when any were.
bool merge_rows(std::vector<Box>& boxes) {
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.col0, a.cols, a.row0) < std::tie(b.col0, b.cols, b.row0);
  });
  std::vector<Box> merged;
  for (const Box& box : boxes) {
    const bool extends = !merged.empty() && merged.back().col0 == box.col0 &&
                         merged.back().cols == box.cols && merged.back().row1() == box.row0;
    if (extends)
      merged.back().rows += box.rows;
    else
      merged.push_back(box);
  }
  const bool any = merged.size() < boxes.size();
  boxes = std::move(merged);
  return any;
}

void transpose(std::vector<Box>& boxes) {
  for (Box& box : boxes) box = {box.col0, box.row0, box.cols, box.rows};
}

/// Also for numbers whose sums overflow.
bool inside(const Box& box, index_t rows, index_t cols) {
  const auto fits = [](index_t first, index_t count, index_t extent) {
    return first >= 0 && count <= extent && first <= extent - count;
  };
  return fits(box.row0, box.rows, rows) && fits(box.col0, box.cols, cols);
}

struct Edge {
  index_t row = 0;
  bool opens = false;
  const Box* box = nullptr;
};

}  // namespace

Box intersect(const Box& a, const Box& b) {
  const index_t row0 = std::max(a.row0, b.row0);
  const index_t col0 = std::max(a.col0, b.col0);
  const index_t rows = std::min(a.row1(), b.row1()) - row0;
  const index_t cols = std::min(a.col1(), b.col1()) - col0;
  if (rows <= 0 || cols <= 0) return {};
  return {row0, col0, rows, cols};
}

std::vector<Box> merge_boxes(std::vector<Box> boxes) {
  std::erase_if(boxes, [](const Box& box) { return box.empty(); });
  bool any = true;
  while (any) {
    any = merge_rows(boxes);
    transpose(boxes);
    any = merge_rows(boxes) || any;
    transpose(boxes);
  }
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.row0, a.col0) < std::tie(b.row0, b.col0);
  });
  return boxes;
}

std::string cover_fault(const std::vector<Box>& boxes, index_t rows, index_t cols) {
  index_t all = 0;
  if (rows < 0 || cols < 0 || __builtin_mul_overflow(rows, cols, &all))
    return fmt::format("{} x {} elements cannot be counted", rows, cols);
  std::vector<Edge> edges;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    if (!inside(box, rows, cols))
      return fmt::format("box {} lies outside {} x {}", describe(box), rows, cols);
    edges.push_back({box.row0, true, &box});
    edges.push_back({box.row1(), false, &box});
  }
  // Sweep over the rows with the set of open column ranges; ends come before starts of one row.
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.row, a.opens) < std::tie(b.row, b.opens);
  });
  std::map<index_t, const Box*> open;  // by first column
  for (const Edge& edge : edges) {
    if (!edge.opens) {
      open.erase(edge.box->col0);
      continue;
    }
    const auto right = open.lower_bound(edge.box->col0);
    const Box* hit = nullptr;
    if (right != open.end() && right->first < edge.box->col1()) hit = right->second;
    if (right != open.begin() && std::prev(right)->second->col1() > edge.box->col0)
      hit = std::prev(right)->second;
    if (hit != nullptr)
      return fmt::format("boxes {} and {} overlap", describe(*hit), describe(*edge.box));
    open.emplace(edge.box->col0, edge.box);
  }
  index_t covered = 0;  // no more than all: nothing is in two boxes
  for (const Box& box : boxes)
    if (!box.empty()) covered += box.count();
  if (covered == all) return {};
  return fmt::format("{} of {} elements are in no box", all - covered, all);
}

std::string describe(const Box& box) {
  return fmt::format("{}+{}x{}+{}", box.row0, box.rows, box.col0, box.cols);
}

}  // namespace t3d
