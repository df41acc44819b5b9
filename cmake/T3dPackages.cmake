# Everything we link, found once, under one name each; Debian's quirks stay in this file.
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)

# HDF5: the serial C library is what checkpoints use (FindHDF5 needs language C enabled).
find_package(HDF5 REQUIRED COMPONENTS C)
add_library(t3d_hdf5 INTERFACE)
target_include_directories(t3d_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(t3d_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
add_library(t3d::hdf5 ALIAS t3d_hdf5)

# oneDNN: its CMake config asks for OpenCL headers that a CPU build does not need; header + library do.
# t3d_find_plain(name header [library]): header-only without a library.
function(t3d_find_plain target header)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  add_library(t3d_${target} INTERFACE)
  target_include_directories(t3d_${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  if(ARGN)
    find_library(${target}_LIBRARY ${ARGN} REQUIRED)
    target_link_libraries(t3d_${target} INTERFACE ${${target}_LIBRARY})
  endif()
  add_library(t3d::${target} ALIAS t3d_${target})
endfunction()
t3d_find_plain(dnnl dnnl.hpp dnnl)
t3d_find_plain(isal isa-l/crc.h isal)
t3d_find_plain(zstd zstd.h zstd)
t3d_find_plain(sentencepiece sentencepiece_processor.h sentencepiece)
find_library(sentencepiece_train_LIBRARY sentencepiece_train REQUIRED)
target_link_libraries(t3d_sentencepiece INTERFACE ${sentencepiece_train_LIBRARY})
t3d_find_plain(onig oniguruma.h onig)
t3d_find_plain(cli11 CLI/CLI.hpp)
t3d_find_plain(tomlplusplus toml++/toml.h)

# ICU: characters, normal forms and graphemes for tokenizers.
find_package(ICU REQUIRED COMPONENTS uc)

# Kokkos: a modern package first; Debian's is Trilinos' 3.4 with a broken CMake config.
find_package(Kokkos CONFIG QUIET)
if(TARGET Kokkos::kokkos AND Kokkos_VERSION VERSION_GREATER_EQUAL 4)
  add_library(t3d::kokkos ALIAS Kokkos::kokkos)
else()
  find_path(kokkos_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos kokkos REQUIRED)
  find_library(kokkos_LIBRARY NAMES trilinos_kokkoscore kokkoscore REQUIRED)
  add_library(t3d_kokkos INTERFACE)
  target_include_directories(t3d_kokkos SYSTEM INTERFACE ${kokkos_INCLUDE})
  target_link_libraries(t3d_kokkos INTERFACE ${kokkos_LIBRARY} ${CMAKE_DL_LIBS})
  add_library(t3d::kokkos ALIAS t3d_kokkos)
endif()

execute_process(COMMAND git describe --always --dirty WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  OUTPUT_VARIABLE T3D_GIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT T3D_GIT)
  set(T3D_GIT "unknown")
endif()
