// The machine instructions that CUDA C++ has no words for: tensor-core products on warps, shared
// memory fragments, asynchronous copies. Every other kernel file is plain CUDA C++, so that
// tests/support/cuda_emulation can put its own version of this one header in front and run the same
// kernels on a host. Fragment layouts: PTX ISA 8.x, "Matrix Fragments for mma.m16n8k16".
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace t3d::cuda::ptx {

/// The block's dynamic shared memory, 128-byte aligned; its size is the launch's `shared_bytes`.
template <class T>
__device__ __forceinline__ T* shared_memory() {
  extern __shared__ __align__(128) unsigned char t3d_shared_memory[];
  return reinterpret_cast<T*>(t3d_shared_memory);
}

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four (two) 8x8 matrices of 16-bit numbers. Lane l names row l % 8 of matrix l / 8 (16 bytes in
/// shared memory, 16-byte aligned) and receives in r[m] the elements (l / 4, 2 (l % 4) + {0, 1}) of
/// matrix m; with _trans those of the transposed matrix.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

/// d[16,8] += a[16,16] b[16,8] over one warp, fp32 sums, T = __nv_bfloat16 or __half. With g = lane
/// / 4, t = lane % 4: d = (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1); a[0] = (g, 2t..), a[1] =
/// (g+8, 2t..), a[2] = (g, 2t+8..), a[3] = (g+8, 2t+8..); b[0] = (2t.., g), b[1] = (2t+8.., g);
/// ".." two neighbours in one register, the first one low.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4],
                                             const std::uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void mma_m16n8k16<__nv_bfloat16>(float (&d)[4],
                                                            const std::uint32_t (&a)[4],
                                                            const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void mma_m16n8k16<__half>(float (&d)[4], const std::uint32_t (&a)[4],
                                                     const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// d[16,8] += a[16,8] b[8,8] of tf32 numbers (fp32 bit patterns whose low 13 bits are ignored):
/// a[0] = (g, t), a[1] = (g+8, t), a[2] = (g, t+4), a[3] = (g+8, t+4); b[0] = (t, g), b[1] = (t+4,
/// g); d as above.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                                 const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Copies 16 bytes from global to shared memory in the background; only the first `valid_bytes`
/// (0..16) are read, the rest becomes zero. Both addresses 16-byte aligned (also where nothing is
/// read). Visible to this thread after cp_async_wait, to the block after a barrier behind it.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global,
                                            int valid_bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(valid_bytes)
               : "memory");
}
/// The same with 4 bytes (through the first-level cache), valid_bytes 0..4, 4-byte aligned.
__device__ __forceinline__ void cp_async_4(void* shared, const void* global, int valid_bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(valid_bytes)
               : "memory");
}
/// Closes a group of this thread's copies.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `pending` of the newest groups are still under way.
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace t3d::cuda::ptx
