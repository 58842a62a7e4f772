# Targets of the house: warnings, builtin plugins, unit tests.

set(DAVIT_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wconversion -Wno-sign-conversion
    -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings)
add_compile_options(${DAVIT_WARNINGS})
if(DAVIT_WERROR)
  add_compile_options(-Werror)
endif()
if(DAVIT_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(DAVIT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
if(DAVIT_FUZZ AND DAVIT_FUZZ_CMP)
  add_compile_options(-fsanitize=fuzzer-no-link)
elseif(DAVIT_FUZZ)
  add_compile_options(-fsanitize-coverage=inline-8bit-counters,pc-table)
endif()

# davit_builtin_plugin(NAME safetensors SOURCES safetensors.c ...)
# One shared object in the build tree's plugin directory that sees the SDK and its own folder
# only, exports one symbol and links nothing of the core.
function(davit_builtin_plugin)
  cmake_parse_arguments(P "NO_INSTALL" "NAME;OUTPUT_DIRECTORY" "SOURCES" ${ARGN})
  if(NOT P_OUTPUT_DIRECTORY)
    set(P_OUTPUT_DIRECTORY ${DAVIT_BUILD_PLUGIN_DIR})
  endif()
  add_library(plugin-${P_NAME} MODULE ${P_SOURCES})
  target_include_directories(plugin-${P_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/sdk/include)
  target_link_libraries(plugin-${P_NAME} PRIVATE davit-sdk m)
  target_link_options(plugin-${P_NAME} PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/sdk/cmake/plugin.map
    -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--exclude-libs,ALL)
  if(NOT DAVIT_SANITIZE AND NOT DAVIT_FUZZ)
    target_link_options(plugin-${P_NAME} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(plugin-${P_NAME} PROPERTIES
    PREFIX "" OUTPUT_NAME davit-${P_NAME}
    LIBRARY_OUTPUT_DIRECTORY ${P_OUTPUT_DIRECTORY})
  if(NOT P_NO_INSTALL)
    set_property(GLOBAL APPEND PROPERTY DAVIT_BUILTIN_PLUGINS plugin-${P_NAME})
    install(TARGETS plugin-${P_NAME}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/davit/plugins-1)
  endif()
endfunction()

# davit_unit_test(NAME test_report SOURCES test_report.c [LIBS ...] [LABELS threads])
# A GTest program linked with the static core. Fixtures: DAVIT_SOURCE_DIR, DAVIT_PLUGIN_DIR.
# Its records are held to core/base/codes.h by tests/refusals/witness.c; NO_WITNESS is for tests
# that make incomplete ones on purpose.
function(davit_unit_test)
  cmake_parse_arguments(T "NO_WITNESS" "NAME" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT TARGET davit-witness)
    add_library(davit-witness OBJECT ${CMAKE_SOURCE_DIR}/tests/refusals/witness.c)
    target_compile_definitions(davit-witness PRIVATE _GNU_SOURCE DAVIT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(davit-witness PRIVATE davit-core)
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE davit-core ${T_LIBS})
  if(NOT T_NO_WITNESS)
    target_sources(${T_NAME} PRIVATE $<TARGET_OBJECTS:davit-witness>)
    target_link_options(${T_NAME} PRIVATE -Wl,--wrap=davit_report_free)
  endif()
  target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/core ${CMAKE_SOURCE_DIR}/sdk/include
    ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${T_NAME} PRIVATE _GNU_SOURCE
    DAVIT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" DAVIT_PLUGIN_DIR="${DAVIT_BUILD_PLUGIN_DIR}")
  set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${T_NAME} COMMAND ${T_NAME} ${T_ARGS})
  if(T_LABELS)
    set_tests_properties(${T_NAME} PROPERTIES LABELS "${T_LABELS}")
  endif()
endfunction()
