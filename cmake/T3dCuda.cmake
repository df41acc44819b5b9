# The GPU back end: t3d_gpu_backend(name cuda) makes the library that the registries are completed with.
#   cuda OFF           ops/no_cuda.cpp, comm/no_nccl.cpp
#   cuda ON            device/cuda, ops/cuda and, where NCCL is found, comm/nccl, by nvcc
#   t3d_gpu_emulation  the same sources by the host compiler over tests/support/cuda_emulation
option(T3D_CUDA "Build the GPU back end (needs a CUDA toolkit, 12.4 or newer)" OFF)
option(T3D_CUDA_BESIDE "Without T3D_CUDA: build transformer3d_cuda, too, to see that it compiles" OFF)

file(GLOB T3D_GPU_SOURCES CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cpp ${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cpp
  ${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cu)
# Engines from libraries stand beside a file that says that there are none.
set(T3D_GPU_NO_CUBLAS ${CMAKE_SOURCE_DIR}/src/ops/cuda/gemm_no_library.cpp)
set(T3D_GPU_NO_CUDNN ${CMAKE_SOURCE_DIR}/src/ops/cuda/attention_no_cudnn.cpp)
file(GLOB T3D_GPU_CUBLAS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/gemm_library*.cpp)
file(GLOB T3D_GPU_CUDNN CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/attention_cudnn*.cpp
  ${CMAKE_SOURCE_DIR}/src/ops/cuda/cudnn_*.cpp)
list(REMOVE_ITEM T3D_GPU_SOURCES ${T3D_GPU_NO_CUBLAS} ${T3D_GPU_NO_CUDNN} ${T3D_GPU_CUBLAS}
  ${T3D_GPU_CUDNN})
file(GLOB T3D_GPU_NCCL CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/nccl/*.cpp
  ${CMAKE_SOURCE_DIR}/src/comm/nccl/*.cu)
# Random numbers and the coefficients of Adasum must be the CPU's to the last bit: no products fused
# with sums there.
set(T3D_GPU_EXACT ${CMAKE_SOURCE_DIR}/src/ops/cuda/random.cu
  ${CMAKE_SOURCE_DIR}/src/ops/cuda/adasum.cu
  ${CMAKE_SOURCE_DIR}/src/ops/cuda/flat_gains.cu)

if(T3D_CUDA OR T3D_CUDA_BESIDE)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Machine code for A100 and H100/H200, and PTX for whatever comes between and after.
    set(CMAKE_CUDA_ARCHITECTURES "80;90a-real" CACHE STRING "GPUs to compile for")
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc AND NOT DEFINED ENV{CUDACXX})
    find_program(T3D_NVCC nvcc HINTS /usr/local/cuda/bin)
    set(CMAKE_CUDA_COMPILER ${T3D_NVCC})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 12 can do it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
    message(FATAL_ERROR "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: 12.4 or newer is needed")
  endif()
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  find_package(CUDAToolkit 12.4 REQUIRED)
  find_path(T3D_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(T3D_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_path(T3D_CUDNN_INCLUDE cudnn_backend.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
endif()

# t3d_gpu_backend(name cuda): what completes the registries of t3d_ops and t3d_comm.
function(t3d_gpu_backend name cuda)
  set(none ${CMAKE_SOURCE_DIR}/src/ops/no_cuda.cpp)
  set(no_nccl ${CMAKE_SOURCE_DIR}/src/comm/no_nccl.cpp)
  if(NOT cuda)
    add_library(${name} STATIC ${none} ${no_nccl})
    target_link_libraries(${name} PUBLIC t3d_ops t3d_comm)
    return()
  endif()
  set(sources ${T3D_GPU_SOURCES})
  if(TARGET CUDA::cublasLt)
    list(APPEND sources ${T3D_GPU_CUBLAS})
  else()
    list(APPEND sources ${T3D_GPU_NO_CUBLAS})
  endif()
  if(T3D_CUDNN_INCLUDE AND T3D_GPU_CUDNN)
    list(APPEND sources ${T3D_GPU_CUDNN})
  else()
    list(APPEND sources ${T3D_GPU_NO_CUDNN})
  endif()
  if(T3D_NCCL_INCLUDE AND T3D_NCCL_LIBRARY)
    list(APPEND sources ${T3D_GPU_NCCL})
  else()
    message(STATUS "NCCL not found: GPU ranks will talk through host memory")
    list(APPEND sources ${no_nccl})
  endif()
  add_library(${name} STATIC ${sources})
  set_source_files_properties(${T3D_GPU_EXACT} PROPERTIES COMPILE_OPTIONS -fmad=false)
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    $<$<COMPILE_LANGUAGE:CUDA>:-DFMT_USE_CONSTEXPR=1>  # fmt thinks that nvcc cannot
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-strict-aliasing>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:RelWithDebInfo>>:-lineinfo>)
  target_link_libraries(${name} PUBLIC t3d_ops t3d_comm CUDA::cudart_static ${CMAKE_DL_LIBS})
  if(TARGET CUDA::cublasLt)
    target_link_libraries(${name} PUBLIC CUDA::cublasLt)
  endif()
  if(T3D_NCCL_LIBRARY)
    target_link_libraries(${name} PUBLIC ${T3D_NCCL_LIBRARY})
    target_include_directories(${name} SYSTEM PRIVATE ${T3D_NCCL_INCLUDE})
  endif()
endfunction()

# t3d_gpu_emulation(name): the same sources for the host, block by block (tests only).
function(t3d_gpu_emulation name)
  set(emulation ${CMAKE_SOURCE_DIR}/tests/support/cuda_emulation)
  file(GLOB emulator CONFIGURE_DEPENDS ${emulation}/*.cpp)
  set(sources ${T3D_GPU_SOURCES} ${T3D_GPU_NO_CUBLAS} ${T3D_GPU_NO_CUDNN} ${T3D_GPU_NCCL})
  foreach(source ${sources})
    if(source MATCHES "\\.cu$")
      # Kernels index arrays by int, as registers want it, and unroll loops by pragmas of nvcc, which
      # g++ does not know and clang cannot always do.
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX
        COMPILE_OPTIONS "-Wno-sign-conversion;-Wno-unknown-pragmas;-Wno-pass-failed")
    endif()
  endforeach()
  add_library(${name} STATIC ${sources} ${emulator})
  # "-x c++" would reach the linker's files too if it were not at the compile step only.
  target_compile_options(${name} PRIVATE "SHELL:-x c++" -O2 -fno-strict-aliasing
    -fsanitize=alignment -fno-sanitize-recover=alignment)  # misaligned packs are faults on a GPU
  target_include_directories(${name} BEFORE PUBLIC ${emulation})
  target_link_options(${name} PUBLIC -fsanitize=alignment)
  target_link_libraries(${name} PUBLIC t3d_ops t3d_comm boost_context Threads::Threads)
endfunction()
