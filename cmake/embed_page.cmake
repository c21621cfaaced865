# Puts the files of a page into one C++ source, so that the program needs no files beside it. Run as a script by
# fxgraph_page() when one of them changed:
#
#   cmake -DFOLDER=src/report/page -DOUTPUT=page_template.cc -P embed_page.cmake
#
# page.html says with @style@ and @scripts@ where the .css and, in the order of page.html's `scripts:` comment, the .js files go;
# @title@ and @data@ are where the C++ code cuts it.
function(fxgraph_page target folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*)
  set(output ${PROJECT_BINARY_DIR}/${target}_page_template.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${files} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/${folder} -DOUTPUT=${output} -P ${script})
  target_sources(${target} PRIVATE ${output})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
cmake_minimum_required(VERSION 3.25)

file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/page.css style)
string(REGEX MATCH "scripts: ([a-z_ ]+)" _ "${page}")
string(REPLACE " " ";" names "${CMAKE_MATCH_1}")
set(scripts "")
foreach(name IN LISTS names)
  if(name)
    file(READ ${FOLDER}/${name}.js text)
    string(APPEND scripts "${text}\n")
  endif()
endforeach()
string(REPLACE "@style@" "${style}" page "${page}")
string(REPLACE "@scripts@" "${scripts}" page "${page}")
foreach(mark IN ITEMS @title@ @data@ ")page\"")
  string(FIND "${page}" "${mark}" at)
  string(FIND "${page}" "${mark}" last REVERSE)
  if(NOT at EQUAL last OR (mark MATCHES "^@" AND at EQUAL -1) OR (NOT mark MATCHES "^@" AND NOT at EQUAL -1))
    message(FATAL_ERROR "${FOLDER}: the page must have ${mark} where the code fills it in, once, and nowhere else")
  endif()
endforeach()
string(REPLACE "@title@" ")page\", R\"page(" page "${page}")
string(REPLACE "@data@" ")page\", R\"page(" page "${page}")
file(WRITE ${OUTPUT} "// Made by cmake/embed_page.cmake.
#include <fxgraph/report/page_template.h>

namespace fx::internal {

const PageTemplate kPageTemplate{R\"page(${page})page\"};

}  // namespace fx::internal
")
