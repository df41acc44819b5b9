# What is not there, by its names: the table of jobs/packages.sh knows Debian's and Spack's.
#   t3d_need("isa-l" isal_INCLUDE isal_LIBRARY)  variables that must be true; else the row is noted
#   t3d_tell_missing()                           one error that names everything noted
set(T3D_PACKAGES_TABLE ${CMAKE_SOURCE_DIR}/jobs/packages.sh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${T3D_PACKAGES_TABLE})

# t3d_package_names(logical debian spack): the two columns of the first row of this name
function(t3d_package_names logical debian spack)
  file(STRINGS ${T3D_PACKAGES_TABLE} rows REGEX "^[a-z0-9][a-z0-9+. -]* *\\| *[a-z]+ *\\|[^|]+\\|[^|]+$")
  foreach(row ${rows})
    string(REPLACE "|" ";" cells "${row}")
    list(TRANSFORM cells STRIP)
    list(GET cells 0 name)
    if(name STREQUAL logical)
      list(GET cells 2 debian_names)
      list(GET cells 3 spack_names)
      set(${debian} "${debian_names}" PARENT_SCOPE)
      set(${spack} "${spack_names}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "jobs/packages.sh has no row '${logical}'")
endfunction()

function(t3d_need logical)
  set(absent "")
  foreach(variable ${ARGN})
    if(NOT ${variable})
      list(APPEND absent ${variable})
    endif()
  endforeach()
  t3d_package_names("${logical}" debian spack)
  if(NOT absent)
    return()
  endif()
  list(JOIN absent ", " variables)
  set_property(GLOBAL APPEND_STRING PROPERTY T3D_MISSING
    "  ${logical}\n      Debian, Ubuntu: ${debian}\n      Spack: ${spack}\n      (CMake did not find: ${variables})\n")
endfunction()

function(t3d_tell_missing)
  get_property(missing GLOBAL PROPERTY T3D_MISSING)
  if(missing)
    message(FATAL_ERROR "transformer3d: not found:\n${missing}"
      "On Debian and Ubuntu jobs/packages.sh install provides them, as root; elsewhere load their modules, or "
      "spack install and spack load them. A library in a folder of its own: "
      "-DCMAKE_PREFIX_PATH=\"FOLDER;FOLDER\". Then configure again.")
  endif()
endfunction()
