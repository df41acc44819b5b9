# The page of `transformer3d report` as text in the program: frame, style, and the scripts one after
# the other, in one function of their own.
set(page ${CMAKE_SOURCE_DIR}/src/tools/report/page)
set(T3D_REPORT_SCRIPT "")
foreach(name decode format data scale chart stack ranks tables page)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}/${name}.js)
  file(READ ${page}/${name}.js text)
  string(APPEND T3D_REPORT_SCRIPT "${text}\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}/page.html ${page}/page.css)
file(READ ${page}/page.html T3D_REPORT_FRAME)
file(READ ${page}/page.css T3D_REPORT_STYLE)
configure_file(${CMAKE_SOURCE_DIR}/cmake/report_page.hpp.in
  ${CMAKE_BINARY_DIR}/generated/t3d_report_page.hpp @ONLY)
