# Writes the plugin templates as a C table. One after the other; the program puts those with the
# same kind and file together in this order.
#   cmake -DDIR=sdk/templates -DOUT=plugin_templates.c -P embed.cmake
set(rows "common:@NAME@/CMakeLists.txt:CMakeLists.txt.in" "common:@NAME@/.gitignore:gitignore.in")
foreach(kind format arch quant tokenizer kernels)
  list(APPEND rows "${kind}:@NAME@/@NAME@.c:plugin.c.in" "${kind}:@NAME@/test_@NAME@.c:test.c.in"
    "${kind}:@NAME@/README.md:README.md.in")
endforeach()
list(APPEND rows "common:@NAME@/README.md:README.tail.in")

set(arrays "")
set(table "")
set(n 0)
foreach(row IN LISTS rows)
  string(REPLACE ":" ";" row "${row}")
  list(GET row 0 kind)
  list(GET row 1 file)
  list(GET row 2 template)
  string(REPLACE "@NAME@/" "" file "${file}")
  file(READ ${DIR}/${kind}/${template} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n   " hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" " 0x\\1," hex "${hex}")
  string(APPEND arrays "static const unsigned char text_${n}[] = {\n   ${hex} 0};\n")
  string(APPEND table "    {\"${kind}\", \"${file}\", (const char *)text_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made from sdk/templates by sdk/cmake/embed.cmake; do not edit. */
#include \"cli/plugin_templates.h\"

${arrays}
const DavitTemplate davit_templates[] = {
${table}    {0},
};
")
