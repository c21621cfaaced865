# The tests of a folder, as one program.
#
#   fxgraph_tests(<folder> [TORCH] [SUFFIX <suffix>] [PROCESSES <number>] [SETUP <fixture>] [DEPS <name>...])
#
# tests/<folder>/**/*.cc (or the files with the suffix) becomes the program fxgraph_<folder>_test, run from the root of the
# repository. It links the library of the same name, tests/support, and what DEPS names besides. ctest runs it in so many
# PROCESSES, each with its part of the tests; what they leave behind can be the SETUP of others. Suites with Night in their
# names run at night only (discover_suites.cmake). FXGRAPH_TEST_FILES, a regular expression, leaves out the test files of which no
# line matches, and the programs without any left.

find_package(GTest REQUIRED)
add_custom_target(fxgraph_tests)  # all of these programs, without what else is built

function(fxgraph_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "SUFFIX;PROCESSES;SETUP" "DEPS")
  if(NOT arg_SUFFIX)
    set(arg_SUFFIX .cc)
  endif()
  if(NOT arg_PROCESSES)
    set(arg_PROCESSES 1)
  endif()
  fxgraph_sources(sources tests/${folder} ${arg_SUFFIX})
  if(FXGRAPH_TEST_FILES)
    fxgraph_matching_tests(sources)
  endif()
  if(NOT sources OR NOT TARGET fxgraph_${folder} OR (arg_TORCH AND NOT Torch_FOUND))
    return()
  endif()

  set(target fxgraph_${folder}_test)
  add_executable(${target} ${sources})
  add_dependencies(fxgraph_tests ${target})
  # What LibTorch's headers leave to be instantiated takes eight seconds of each compilation, and files have much in common. Each
  # test file is a namespace of its own.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${FXGRAPH_BATCH})
  fxgraph_own_code(${target})
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
  if(TARGET fxgraph_test_support)
    target_link_libraries(${target} PRIVATE fxgraph_test_support)
  endif()
  fxgraph_link(${target} PRIVATE ${folder} ${arg_DEPS})
  if(arg_TORCH)
    target_compile_options(${target} PRIVATE -O0)  # a third of the compile time goes into optimising LibTorch's inline functions
    fxgraph_torch_pch(fxgraph_torch_test_pch HEADERS <torch/script.h> <torch/torch.h> <gmock/gmock.h> <gtest/gtest.h>
      OPTIONS -O0 LINKS GTest::gmock)
    fxgraph_use_torch(${target} PRIVATE fxgraph_torch_test_pch)
  endif()
  fxgraph_test_processes(${target} ${folder} ${arg_PROCESSES} "${arg_TORCH}" "${arg_SETUP}")
endfunction()

# Leaves in the list those tests that have a line that FXGRAPH_TEST_FILES matches, and, where there are any, what is no test.
function(fxgraph_matching_tests list)
  set(matching "")
  foreach(source IN LISTS ${list})
    if(source MATCHES "_test\\.cc$")
      file(STRINGS ${source} lines REGEX "${FXGRAPH_TEST_FILES}" LIMIT_COUNT 1)
      if(lines)
        list(APPEND matching ${source})
      endif()
    endif()
  endforeach()
  if(matching)
    list(FILTER ${list} EXCLUDE REGEX "_test\\.cc$")
    list(APPEND matching ${${list}})
  endif()
  set(${list} ${matching} PARENT_SCOPE)
endfunction()

# Under sanitizers all takes ten times as long.
function(fxgraph_test_processes target folder processes torch setup)
  set(label core)
  set(environment "")
  if(torch)
    set(label torch)
    set(environment ${fxgraph_torch_test_environment})
  endif()
  set(timeout 1800)
  if(FXGRAPH_SANITIZE)
    set(timeout 6000)
  endif()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "\
set(program [==[$<TARGET_FILE:${target}>]==])
set(folder [==[${folder}]==])
set(label [==[${label}]==])
set(processes [==[${processes}]==])
set(night [==[${FXGRAPH_NIGHT}]==])
set(timeout [==[${timeout}]==])
set(setup [==[${setup}]==])
set(directory [==[${PROJECT_SOURCE_DIR}]==])
set(environment [==[${environment}]==])
include([==[${PROJECT_SOURCE_DIR}/cmake/discover_suites.cmake]==])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
