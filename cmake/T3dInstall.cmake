# cmake --install build/cpu --prefix FOLDER, and cpack: one tree that may be moved (docs/20-install.md).
# Manual and completions are printed by the program while it is installed, so they are always its own.
include(GNUInstallDirs)
set(t3d_data ${CMAKE_INSTALL_DATADIR}/transformer3d)
set(t3d_made ${CMAKE_BINARY_DIR}/install)  # files that are written for the installation

# Run path: the folders of libraries that are not the system's, since no one else says where they are.
# The build folder's is dropped.
set(t3d_libraries ${HDF5_C_LIBRARIES} ${MPI_CXX_LIBRARIES} ${ICU_LIBRARIES} ${OpenMP_CXX_LIBRARIES}
  ${dnnl_LIBRARY} ${isal_LIBRARY} ${zstd_LIBRARY} ${sentencepiece_LIBRARY} ${onig_LIBRARY}
  ${kokkos_LIBRARY} ${fmt_DIR} ${Kokkos_DIR} ${T3D_NCCL_LIBRARY} ${CUDAToolkit_LIBRARY_DIR})
list(FILTER t3d_libraries EXCLUDE REGEX "^/(usr/)?lib(32|64)?/|^[^/]|-NOTFOUND$|^/usr/share/")
if(t3d_libraries)
  set_target_properties(transformer3d PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
install(TARGETS transformer3d RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# t3d_install_printed(file folder words...): what `transformer3d words...` prints
function(t3d_install_printed file folder)
  string(REPLACE ";" " " words "${ARGN}")
  install(CODE "
    file(MAKE_DIRECTORY \"${t3d_made}\")
    execute_process(COMMAND \"$<TARGET_FILE:transformer3d>\" ${words}
      OUTPUT_FILE \"${t3d_made}/${file}\" RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR \"transformer3d ${words} ended with \${status}: it must run here to be installed\")
    endif()")
  install(FILES ${t3d_made}/${file} DESTINATION ${folder})
endfunction()
t3d_install_printed(transformer3d.1 ${CMAKE_INSTALL_MANDIR}/man1 --man-page)
install(CODE "file(MAKE_DIRECTORY \"${t3d_made}/bash\" \"${t3d_made}/zsh\")")
t3d_install_printed(bash/transformer3d ${CMAKE_INSTALL_DATADIR}/bash-completion/completions --completion bash)
t3d_install_printed(zsh/_transformer3d ${CMAKE_INSTALL_DATADIR}/zsh/site-functions --completion zsh)

# Job scripts call the program of the build folder; installed ones, that of PATH.
set(scripts chain.sbatch gpus.sbatch heterogeneous.sbatch interactive.sh many_nodes.sbatch one_node.sbatch
  preemptible.sbatch scaling.sbatch)
foreach(script ${scripts})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/jobs/${script})
  file(READ ${CMAKE_SOURCE_DIR}/jobs/${script} text)
  string(REPLACE ":-build/cpu/transformer3d}" ":-transformer3d}" text "${text}")
  string(REPLACE ":-build/cuda/transformer3d}" ":-transformer3d}" text "${text}")
  file(CONFIGURE OUTPUT ${t3d_made}/jobs/${script} CONTENT "${text}" @ONLY)
endforeach()
list(TRANSFORM scripts PREPEND ${t3d_made}/jobs/)
install(PROGRAMS ${scripts} DESTINATION ${t3d_data}/jobs)
install(FILES jobs/mpi_here.sh DESTINATION ${t3d_data}/jobs)
install(DIRECTORY inputs DESTINATION ${t3d_data} FILES_MATCHING PATTERN "*.toml")

# Documents; their links to inputs and job scripts stay good.
install(FILES README.md CHANGELOG.md CITATION.cff LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
file(RELATIVE_PATH t3d_data_from_docs ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_DATADIR}/transformer3d)
foreach(folder inputs jobs)
  install(CODE "file(CREATE_LINK ${t3d_data_from_docs}/${folder}
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/${folder}\" SYMBOLIC)")
endforeach()

# Module files: Lmod takes the .lua of a version, Environment Modules the other.
set(modules ${CMAKE_INSTALL_DATADIR}/modulefiles/transformer3d)
install(FILES packaging/modulefiles/transformer3d.lua DESTINATION ${modules} RENAME ${PROJECT_VERSION}.lua)
install(FILES packaging/modulefiles/transformer3d DESTINATION ${modules} RENAME ${PROJECT_VERSION})

include(T3dDeb)
