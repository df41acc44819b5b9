# One interface target that every target of ours links: language level, warnings, sanitizers.
add_library(t3d_options INTERFACE)
target_include_directories(t3d_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(t3d_options INTERFACE
  -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(T3D_WARNINGS_AS_ERRORS)
  target_compile_options(t3d_options INTERFACE -Werror)
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
