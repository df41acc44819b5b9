# Programs and preloaded libraries of tests/system; they lie in the build's tests/ folder.
add_executable(t3d_checkpoint_tool support/checkpoint_tool.cpp)
target_link_libraries(t3d_checkpoint_tool PRIVATE t3d_io)
target_include_directories(t3d_checkpoint_tool PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
add_library(t3d_io_fault SHARED support/io_fault.c)
target_link_libraries(t3d_io_fault PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(t3d_checkpoint_tool t3d_io_fault PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_library(t3d_profiler SHARED support/profiler.c)
set_target_properties(t3d_profiler PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
