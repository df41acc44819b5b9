# One interface target that every target of ours links: language level, warnings, sanitizers.
add_library(t3d_options INTERFACE)
# Initial weights are the same bits everywhere only if nobody fuses products with sums.
target_compile_options(t3d_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
target_include_directories(t3d_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
# Messages of checks name files of the source, not somebody's folders. ccache with a base folder makes
# the paths relative by itself; an option more would only compile everything once more there.
if(NOT CCACHE OR "$ENV{CCACHE_BASEDIR}" STREQUAL "")
  target_compile_options(t3d_options INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()
set(warnings -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
target_compile_options(t3d_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # false alarms in std::string's operator+ (GCC bug 105651)
  target_compile_options(t3d_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(T3D_WARNINGS_AS_ERRORS)
  target_compile_options(t3d_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(T3D_SANITIZE)
  target_compile_options(t3d_options INTERFACE -fsanitize=${T3D_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(t3d_options INTERFACE -fsanitize=${T3D_SANITIZE})
else()
  find_program(LLD ld.lld)
  if(LLD)
    target_link_options(t3d_options INTERFACE -fuse-ld=lld)
  endif()
endif()
