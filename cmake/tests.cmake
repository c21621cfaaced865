# The tests of a folder, as one program.
#
#   fxgraph_tests(<folder> [TORCH] [SUFFIX <suffix>] [SETUP <fixture>] [DEPS <name>...])
#
# tests/<folder>/**/*.cc (or the files with the suffix) becomes the program fxgraph_<folder>_test, run from the root of the
# repository. It links the library of the same name, tests/support, and what DEPS names besides. Each test case is a ctest of
# its own; with TORCH each suite is, because starting LibTorch takes half a second, and what the tests leave behind can be the
# SETUP of others. Suites whose name ends in Slow carry the label slow. FXGRAPH_TEST_FILES, a regular expression, leaves out the
# test files of which no line matches, and the programs without any left.

find_package(GTest REQUIRED)
include(GoogleTest)
add_custom_target(fxgraph_tests)  # all of these programs, without what else is built

function(fxgraph_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "SUFFIX;SETUP" "DEPS")
  if(NOT arg_SUFFIX)
    set(arg_SUFFIX .cc)
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
  # What LibTorch's headers leave to be instantiated takes five seconds of each compilation, and files have much in common: 18 at
  # a time take three fifths of the processor time that 6 do. Each test file is a namespace of its own; what they share is
  # compiled alone.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 18)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  fxgraph_own_code(${target})
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
  if(TARGET fxgraph_test_support)
    target_link_libraries(${target} PRIVATE fxgraph_test_support)
  endif()
  fxgraph_link(${target} PRIVATE ${folder} ${arg_DEPS})
  if(arg_TORCH)
    fxgraph_torch_tests(${target} ${folder} "${arg_SETUP}")
  else()
    fxgraph_core_tests(${target} ${folder})
  endif()
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

function(fxgraph_core_tests target folder)
  set(common TEST_PREFIX ${folder}. DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(timeout 120)
  if(FXGRAPH_SANITIZE)
    set(timeout 600)  # under sanitizers some tests take a minute of a core that is theirs alone
  endif()
  gtest_discover_tests(${target} ${common} TEST_FILTER -*Slow.* PROPERTIES LABELS core TIMEOUT ${timeout})
  gtest_discover_tests(${target} ${common} TEST_FILTER *Slow.* PROPERTIES LABELS "core;slow" TIMEOUT 600)
endfunction()

# A third of the compile time of a test goes into optimising LibTorch's inline functions, hence -O0.
function(fxgraph_torch_tests target folder setup)
  fxgraph_torch_pch(fxgraph_torch_test_pch HEADERS <torch/script.h> <torch/torch.h> <gmock/gmock.h> <gtest/gtest.h>
    OPTIONS -O0 LINKS GTest::gmock)
  fxgraph_use_torch(${target} PRIVATE fxgraph_torch_test_pch)
  target_compile_options(${target} PRIVATE -O0)

  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "\
set(program [==[$<TARGET_FILE:${target}>]==])
set(folder [==[${folder}]==])
set(setup [==[${setup}]==])
set(directory [==[${PROJECT_SOURCE_DIR}]==])
set(environment [==[${fxgraph_torch_test_environment}]==])
set(models [==[${fxgraph_test_models}]==])
include([==[${PROJECT_SOURCE_DIR}/cmake/discover_suites.cmake]==])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
