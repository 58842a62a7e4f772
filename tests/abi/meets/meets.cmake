# Plugins and hosts of different minors; see test_meets.c. Included by tests/abi/CMakeLists.txt.
set(meets ${CMAKE_CURRENT_SOURCE_DIR}/meets)
set(MEETS_DIR ${CMAKE_BINARY_DIR}/test/meets)
set(later ${CMAKE_CURRENT_BINARY_DIR}/later)
add_custom_command(OUTPUT ${later}/later_host.c
  DEPENDS ${meets}/later.sh ${CMAKE_SOURCE_DIR}/core/plugin/host.c
    ${CMAKE_SOURCE_DIR}/sdk/include/davit/plugin.h ${CMAKE_SOURCE_DIR}/sdk/include/davit/format.h
  COMMAND ${meets}/later.sh ${CMAKE_SOURCE_DIR} ${later} VERBATIM)
add_custom_target(abi-later DEPENDS ${later}/later_host.c)
add_custom_target(meets-plugins)

# davit_meets(NAME x SOURCE x.c INCLUDE dir [DEFINE ...]): a plugin that sees one set of headers.
function(davit_meets)
  cmake_parse_arguments(M "" "NAME;SOURCE;INCLUDE" "DEFINE" ${ARGN})
  add_library(meets-${M_NAME} MODULE ${meets}/${M_SOURCE})
  target_include_directories(meets-${M_NAME} PRIVATE ${M_INCLUDE})
  target_compile_definitions(meets-${M_NAME} PRIVATE ${M_DEFINE})
  target_link_options(meets-${M_NAME} PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/sdk/cmake/plugin.map)
  set_target_properties(meets-${M_NAME} PROPERTIES PREFIX "" OUTPUT_NAME ${M_NAME}
    LIBRARY_OUTPUT_DIRECTORY ${MEETS_DIR})
  add_dependencies(meets-plugins meets-${M_NAME})
  add_dependencies(meets-${M_NAME} abi-later)
endfunction()

set(frozen ${CMAKE_SOURCE_DIR}/sdk/abi/1.0/include)
davit_meets(NAME old_format SOURCE old_format.c INCLUDE ${frozen})
davit_meets(NAME old_tokenizer SOURCE old_tokenizer.c INCLUDE ${frozen})
davit_meets(NAME later_easy SOURCE later_format.c INCLUDE ${later} DEFINE VARIANT=\"easy\")
davit_meets(NAME later_strict SOURCE later_format.c INCLUDE ${later}
  DEFINE VARIANT=\"strict\" DAVIT_TARGET_MINOR=1)
davit_meets(NAME drafts SOURCE drafts.c INCLUDE ${CMAKE_SOURCE_DIR}/sdk/include)

davit_unit_test(NAME test_meets SOURCES meets/test_meets.c)
# The door of a host 1.1: core/plugin compiled against the later headers, the rest as it is.
get_target_property(door davit-core SOURCES)
list(FILTER door INCLUDE REGEX "/core/plugin/[^/]*[.]c$")
list(FILTER door EXCLUDE REGEX "/host[.]c$")
davit_unit_test(NAME test_meets_later SOURCES meets/test_meets.c ${door} ${later}/later_host.c)
target_include_directories(test_meets_later BEFORE PRIVATE ${later})
target_compile_definitions(test_meets_later PRIVATE LATER DAVIT_VERSION="${PROJECT_VERSION}")
foreach(test test_meets test_meets_later)
  target_compile_definitions(${test} PRIVATE DAVIT_FIXTURE_DIR="${MEETS_DIR}")
  add_dependencies(${test} meets-plugins abi-later)
endforeach()
