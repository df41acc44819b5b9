// Rows of a table by id, learned positions, and the gradient of the table.
// - embed_gather, put_rows, add_positions: one pass in 16-byte packs of the activation's type.
// - embed_scatter_add: tokens are sorted by table row on the device (id_sort.cu); a warp adds the
//   tokens of a window of 32 places in the sorted order, run by run. A run inside its window goes
//   straight to the table; the parts of a run that crosses windows go to scratch memory, and a
//   second kernel adds them in order, so that a very frequent token is shared by many warps. No
//   atomics; the order depends on the ids alone. Four tokens' rows, and the table rows they may
//   end, are loaded together.
// Bytes per element, with s the size of T: gather s + 4, positions 2s (the table stays in the
// cache), scatter s + 8 at most (less where ids repeat). Speed not measured.
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/id_sort.cuh"

namespace t3d::cuda {
namespace {

template <class From, class To>
inline constexpr int kWidest = kPack<From> > kPack<To> ? kPack<From> : kPack<To>;

template <class Table, class T>
struct Gather {
  static constexpr int kWidth = kWidest<Table, T>, kItems = 4;
  const std::int32_t* ids;
  index_t row0, table_rows;
  Matrix<const Table> table;
  Matrix<T> out;

  template <int N>
  struct Item {
    Elements<Table, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    const index_t from = ids[row] - row0;
    const bool found = from >= 0 && from < table_rows;
    item.x.clear();
    if (found) item.x.load(table.at(from, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    float number[N];
#pragma unroll
    for (int i = 0; i < N; ++i) number[i] = item.x[i];
    Elements<T, N> to;
    to.assign(number);
    to.store(out.at(row, col), valid);
  }
};

template <class Table, class T>
struct AddPositions {
  static constexpr int kWidth = kWidest<Table, T>, kItems = 2;
  Matrix<const Table> table;
  unsigned first, length;
  Matrix<T> x;

  template <int N>
  struct Item {
    Elements<Table, N> table;
    Elements<T, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.table.load(table.at((first + static_cast<unsigned>(row)) % length, col), valid);
    item.x.load(x.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    float sum[N];
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] = item.x[i] + item.table[i];
    item.x.assign(sum);
    item.x.store(x.at(row, col), valid);
  }
};

template <class From, class T>
struct PutRows {
  static constexpr int kWidth = kWidest<From, T>, kItems = 4;
  const std::int32_t* places;
  Matrix<const From> from;
  Matrix<T> to;

  template <int N>
  struct Item {
    Elements<From, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.load(from.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    const index_t place = places[row];
    if (place < 0) return;
    float number[N];
#pragma unroll
    for (int i = 0; i < N; ++i) number[i] = item.x[i];
    Elements<T, N> packed;
    packed.assign(number);
    packed.store(to.at(place, col), valid);
  }
};

constexpr int kWindow = kWarp, kTokensInFlight = 4;

template <class T>
struct ScatterArgs {
  const std::int32_t *rows, *positions;  // sorted; row `ignored` is not in the table
  int count, ignored;
  Matrix<const T> dx;
  Matrix<float> table;
  int cols;
  float*
      partial;  // [windows, 2, cols]: the run that begins before the window, the one that leaves it
};

/// A window's runs of equal rows, one place per lane.
struct Window {
  int row, position;
  unsigned begins, ends;  // lanes where a run begins or ends, the neighbouring windows considered
};
template <class T>
__device__ __forceinline__ Window window_of(const ScatterArgs<T>& a, int window, int lane) {
  const int at = window * kWindow + lane;
  const bool valid = at < a.count;
  Window w{};
  w.row = valid ? a.rows[at] : a.ignored;
  w.position = valid ? a.positions[at] : 0;
  const bool begins = !valid || at == 0 || a.rows[at - 1] != w.row;
  const bool ends = !valid || at + 1 == a.count || a.rows[at + 1] != w.row;
  w.begins = __ballot_sync(kAllLanes, begins), w.ends = __ballot_sync(kAllLanes, ends);
  return w;
}

template <int N, class T>
__global__ void __launch_bounds__(kElementThreads) scatter_windows(ScatterArgs<T> a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int window =
      static_cast<int>(blockIdx.x) * kElementWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (window * index_t{kWindow} >= a.count) return;
  const Window own = window_of(a, window, lane);
  const int col = (static_cast<int>(blockIdx.y) * kWarp + lane) * N;
  const bool here = col < a.cols;
  float sum[N] = {};
  bool whole = false;  // the run began in this window
  for (int first = 0; first < kWindow; first += kTokensInFlight) {
    Elements<T, N> dx[kTokensInFlight];
    Elements<float, N> table[kTokensInFlight];
    int row[kTokensInFlight];
#pragma unroll
    for (int j = 0; j < kTokensInFlight; ++j) {
      row[j] = __shfl_sync(kAllLanes, own.row, first + j);
      const int position = __shfl_sync(kAllLanes, own.position, first + j);
      if (row[j] == a.ignored || !here) continue;
      dx[j].load(a.dx.at(position, col));
      if ((own.ends >> (first + j) & 1U) != 0) table[j].load(a.table.at(row[j], col));
    }
#pragma unroll
    for (int j = 0; j < kTokensInFlight; ++j) {
      if (row[j] == a.ignored || !here) continue;
      const bool begins = (own.begins >> (first + j) & 1U) != 0;
      const bool ends = (own.ends >> (first + j) & 1U) != 0;
      whole = begins || whole;
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] = begins ? dx[j][i] : sum[i] + dx[j][i];
      if (!ends && first + j + 1 < kWindow) continue;
      Elements<float, N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) out.word[i] = ends && whole ? table[j][i] + sum[i] : sum[i];
      const index_t slot = index_t{2} * window + (whole ? 1 : 0);
      out.store(ends && whole ? a.table.at(row[j], col) : a.partial + slot * a.cols + col);
      whole = false;  // what follows up to the next beginning is nothing
    }
  }
}

/// Adds the parts of the run that leaves `window` = blockIdx.x, if there is one. The block's warps
/// take equal stretches of the following windows.
template <class T>
__global__ void __launch_bounds__(kElementThreads) join_windows(ScatterArgs<T> a) {
  __shared__ float shared[kElementThreads];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int window = static_cast<int>(blockIdx.x);
  const Window own = window_of(a, window, lane);
  const int row = __shfl_sync(kAllLanes, own.row, kWindow - 1);
  const bool leaves = own.ends >> (kWindow - 1) == 0;
  if (!leaves || own.begins == 0 || row == a.ignored) return;  // nothing, or it began before
  // How many of the following windows begin with the run's row: rows are sorted, so a count by 32s.
  int more = 0;
  for (bool all = true; all;) {
    const index_t at = (window + 1 + more + lane) * index_t{kWindow};
    const unsigned same =
        __ballot_sync(kAllLanes, at < a.count && a.rows[min(at, index_t{a.count} - 1)] == row);
    more += __popc(same);
    all = same == kAllLanes;
  }
  const int share = (more + kElementWarps - 1) / kElementWarps;
  for (int tile = static_cast<int>(blockIdx.y) * kWarp; tile < a.cols;
       tile += static_cast<int>(gridDim.y) * kWarp) {
    const int col = tile + lane;
    float sum = 0;
    if (col < a.cols)
#pragma unroll 4
      for (int w = warp * share; w < min(more, (warp + 1) * share); ++w)
        sum += a.partial[index_t{2} * (window + 1 + w) * a.cols + col];
    shared[thread] = sum;
    __syncthreads();
    if (warp == 0 && col < a.cols) {
      float total = a.partial[(index_t{2} * window + 1) * a.cols + col];
      for (int w = 0; w < kElementWarps; ++w) total += shared[w * kWarp + lane];
      *a.table.at(row, col) += total;
    }
    __syncthreads();
  }
}

template <int N, class T>
void run_scatter(Queue& queue, const ScatterArgs<T>& args, index_t windows) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = blocks_for(windows, kElementWarps);
  shape.blocks_y = blocks_for(args.cols, kWarp * N);
  launch(queue, shape, scatter_windows<N, T>, args);
  shape.blocks_x = windows;
  shape.blocks_y = std::min<index_t>(4, blocks_for(args.cols, kWarp));  // most find nothing to do
  launch(queue, shape, join_windows<T>, args);
}

}  // namespace

void CudaOps::embed_gather(Queue& queue, ConstTensorView ids, index_t row0, ConstTensorView table,
                           TensorView out) {
  visit_activation(table.dtype, [&]<class Table>(Table) {
    visit_activation(out.dtype, [&]<class T>(T) {
      const Gather<Table, T> op{ids.as<std::int32_t>(), row0, table.rows, matrix_of<Table>(table),
                                matrix_of<T>(out)};
      for_each_element(queue, op, out.rows, out.cols, fit_packs({table, out}, op.kWidth));
    });
  });
}

void CudaOps::put_rows(Queue& queue, ConstTensorView places, ConstTensorView from, TensorView to) {
  if (from.empty()) return;
  visit_activation(from.dtype, [&]<class From>(From) {
    visit_activation(to.dtype, [&]<class T>(T) {
      const PutRows<From, T> op{places.as<std::int32_t>(), matrix_of<From>(from), matrix_of<T>(to)};
      for_each_element(queue, op, from.rows, from.cols, fit_packs({from, to}, op.kWidth));
    });
  });
}

void CudaOps::add_positions(Queue& queue, ConstTensorView table, index_t first_row, index_t length,
                            TensorView x) {
  if (x.empty()) return;
  T3D_CHECK(x.rows + length < index_t{1} << 31, "{} rows, length {}", x.rows, length);
  visit_activation(table.dtype, [&]<class Table>(Table) {
    visit_activation(x.dtype, [&]<class T>(T) {
      const AddPositions<Table, T> op{matrix_of<Table>(table),
                                      static_cast<unsigned>(first_row % length),
                                      static_cast<unsigned>(length), matrix_of<T>(x)};
      for_each_element(queue, op, x.rows, x.cols, fit_packs({table, x}, op.kWidth));
    });
  });
}

void CudaOps::embed_scatter_add(Queue& queue, ConstTensorView ids, index_t row0, ConstTensorView dx,
                                TensorView dtable) {
  if (dx.empty() || dtable.empty()) return;
  const SortedIds sorted = sort_ids(device_, queue, ids, row0, dtable.rows);
  const index_t windows = blocks_for(dx.rows, kWindow);
  const Tensor partial(device_, DType::f32, 2 * windows, dx.cols, MemoryKind::workspace);
  visit_activation(dx.dtype, [&]<class T>(T) {
    const ScatterArgs<T> args{sorted.rows.view().template as<std::int32_t>(),
                              sorted.positions.view().template as<std::int32_t>(),
                              static_cast<int>(dx.rows),
                              static_cast<int>(dtable.rows),
                              matrix_of<T>(dx),
                              matrix_of<float>(dtable),
                              static_cast<int>(dx.cols),
                              partial.view().template as<float>()};
    if (fit_whole_packs({dx, dtable, partial}, dx.cols, kPack<T>))
      run_scatter<kPack<T>>(queue, args, windows);
    else
      run_scatter<1>(queue, args, windows);
  });
}

}  // namespace t3d::cuda
