// fill, copy, add and scale for any number formats. One pass; 16-byte packs of the narrower format,
// four of them in flight per thread; contiguous operands count as one long row. Copies between
// equal formats move words and do not look into them. fp64 and int32 (scalars, ids, counters) take
// the same kernels one number at a time: they are rare and short. Bytes per element: fill s, copy
// s + s', add s + 2s', scale 2s, with s and s' the sizes of the two formats. Speed not measured.
#include <type_traits>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

template <class T>
inline constexpr bool kRare = std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>;
/// What arithmetic between two formats is done in.
template <class From, class To>
using Wide = std::conditional_t<kRare<From> || kRare<To>, double, float>;
template <class From, class To>
inline constexpr int kCopyWidth = kRare<From> || kRare<To>
                                      ? 1
                                      : (kPack<From> > kPack<To> ? kPack<From> : kPack<To>);

/// A rare format is the only one of its item.
template <class W, class T, int N>
__device__ __forceinline__ W wide(const Elements<T, N>& x, int i) {
  if constexpr (kRare<T>)
    return static_cast<W>(x.number(i));
  else
    return static_cast<W>(x[i]);
}
template <class W, class T, int N>
__device__ __forceinline__ void narrow(const W (&x)[N], Elements<T, N>& out) {
  if constexpr (std::is_same_v<W, float>)
    out.assign(x);
  else if constexpr (kRare<T>)
    out.word[0] = static_cast<T>(x[0]);
  else
    out.word[0] = from_float<T>(static_cast<float>(x[0]));
}

template <class T>
struct Fill {
  static constexpr int kWidth = kCopyWidth<T, T>, kItems = 4;
  Matrix<T> x;
  double value;

  template <int N>
  struct Item {
    Elements<T, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t, index_t, int) const {
    using W = Wide<T, T>;
    W number[N];
#pragma unroll
    for (int i = 0; i < N; ++i) number[i] = static_cast<W>(value);
    narrow(number, item.x);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.store(x.at(row, col), valid);
  }
};

/// Same format on both sides; Word is an integer of its size.
template <class Word>
struct Move {
  static constexpr int kWidth = kPack<Word>, kItems = 4;
  Matrix<const Word> from;
  Matrix<Word> to;

  template <int N>
  struct Item {
    Elements<Word, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.load(from.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.store(to.at(row, col), valid);
  }
};

template <class From, class To>
struct Convert {
  static constexpr int kWidth = kCopyWidth<From, To>, kItems = 4;
  Matrix<const From> from;
  Matrix<To> to;

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
    using W = Wide<From, To>;
    W number[N];
#pragma unroll
    for (int i = 0; i < N; ++i) number[i] = wide<W>(item.x, i);
    Elements<To, N> out;
    narrow(number, out);
    out.store(to.at(row, col), valid);
  }
};

template <class From, class To>
struct Add {
  static constexpr int kWidth = kCopyWidth<From, To>, kItems = 2;
  Matrix<const From> a;
  Matrix<To> b;

  template <int N>
  struct Item {
    Elements<From, N> a;
    Elements<To, N> b;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.a.load(a.at(row, col), valid);
    item.b.load(b.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    using W = Wide<From, To>;
    W sum[N];
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] = wide<W>(item.b, i) + wide<W>(item.a, i);
    narrow(sum, item.b);
    item.b.store(b.at(row, col), valid);
  }
};

template <class T>
struct Scale {
  using W = Wide<T, T>;
  static constexpr int kWidth = kCopyWidth<T, T>, kItems = 4;
  Matrix<T> x;
  W factor;

  template <int N>
  struct Item {
    Elements<T, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.load(x.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    W product[N];
#pragma unroll
    for (int i = 0; i < N; ++i) product[i] = wide<W>(item.x, i) * factor;
    narrow(product, item.x);
    item.x.store(x.at(row, col), valid);
  }
};

template <class Word>
void move_words(Queue& queue, const ConstTensorView& from, const TensorView& to) {
  const Move<Word> op{matrix_of<Word>(from), matrix_of<Word>(to)};
  for_each_element(queue, op, to.rows, to.cols, fit_packs({from, to}, kPack<Word>));
}

template <class From, class To>
void convert(Queue& queue, const ConstTensorView& from, const TensorView& to) {
  const Convert<From, To> op{matrix_of<From>(from), matrix_of<To>(to)};
  for_each_element(queue, op, to.rows, to.cols, fit_packs({from, to}, op.kWidth));
}

}  // namespace

void CudaOps::fill(Queue& queue, TensorView x, double value) {
  flatten(x);
  visit_any(x.dtype, [&]<class T>(T) {
    const Fill<T> op{matrix_of<T>(x), value};
    for_each_element(queue, op, x.rows, x.cols, fit_packs({x}, op.kWidth));
  });
}

void CudaOps::copy(Queue& queue, ConstTensorView from, TensorView to) {
  flatten(from, to);
  if (from.dtype == to.dtype) switch (size_of(to.dtype)) {
      case 2: return move_words<std::uint16_t>(queue, from, to);
      case 4: return move_words<std::uint32_t>(queue, from, to);
      default: return move_words<std::uint64_t>(queue, from, to);
    }
  visit_any(from.dtype, [&]<class From>(From) {
    visit_any(to.dtype, [&]<class To>(To) {
      if constexpr (!std::is_same_v<From, To>) convert<From, To>(queue, from, to);
    });
  });
}

void CudaOps::add(Queue& queue, ConstTensorView a, TensorView b) {
  flatten(a, b);
  visit_any(a.dtype, [&]<class From>(From) {
    visit_any(b.dtype, [&]<class To>(To) {
      const Add<From, To> op{matrix_of<From>(a), matrix_of<To>(b)};
      for_each_element(queue, op, b.rows, b.cols, fit_packs({a, b}, op.kWidth));
    });
  });
}

void CudaOps::scale(Queue& queue, TensorView x, double factor) {
  flatten(x);
  visit_any(x.dtype, [&]<class T>(T) {
    const Scale<T> op{matrix_of<T>(x), static_cast<Wide<T, T>>(factor)};
    for_each_element(queue, op, x.rows, x.cols, fit_packs({x}, op.kWidth));
  });
}

}  // namespace t3d::cuda
