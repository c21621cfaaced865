# Run by ctest as it starts: makes a few ctests of the GoogleTest program `program`, each a process that runs its part of the
# tests, for LibTorch takes half a second to start. Set by the including file, which tests.cmake writes: program, folder, label,
# processes, night, timeout, setup, directory, environment.
# By day the suites with Night in their names are left out. The environment may choose:
#
#   FXGRAPH_FILTER=REGEX     only the tests whose name, folder.Suite.Case, matches, in one process
#   FXGRAPH_EXCLUDE=REGEX    without the tests whose name matches

if(NOT EXISTS ${program})
  add_test(${folder}.NOT_BUILT ${program})
  return()
endif()

function(add_process name filter index count)
  add_test(${name} ${program} --gtest_filter=${filter} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${timeout} WORKING_DIRECTORY ${directory}
    FIXTURES_SETUP "${setup}" COST ${processes}
    ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}")
  # A process passes though a test of it is skipped. Where everything is installed (tools/test) that is a fault.
  if(DEFINED ENV{FXGRAPH_NO_SKIPS})
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

set(by_day "-*Night*")
if(night)
  set(by_day "*")
endif()
if(NOT DEFINED ENV{FXGRAPH_FILTER} AND NOT DEFINED ENV{FXGRAPH_EXCLUDE})
  math(EXPR last "${processes} - 1")
  foreach(index RANGE ${last})
    math(EXPR number "${index} + 1")
    add_process("${folder}.${number}_of_${processes}" "${by_day}" ${index} ${processes})
  endforeach()
  return()
endif()

# A suite is a line "Name." and its cases are the indented lines below.
execute_process(COMMAND env ${environment} ${program} --gtest_list_tests --gtest_filter=${by_day}
  WORKING_DIRECTORY ${directory} OUTPUT_VARIABLE listing RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests failed: ${status}")
endif()
string(REGEX REPLACE "[ \t]*#[^\n]*" "" listing "${listing}")
string(REGEX MATCHALL "[^\n;]+" listed "${listing}")
set(chosen "")
set(excluded "$ENV{FXGRAPH_EXCLUDE}")
foreach(line IN LISTS listed)
  if(NOT line MATCHES "^  (.*)")
    set(suite "${line}")
    continue()
  endif()
  set(test "${suite}${CMAKE_MATCH_1}")
  if("${folder}.${test}" MATCHES "$ENV{FXGRAPH_FILTER}" AND NOT (excluded AND "${folder}.${test}" MATCHES "${excluded}"))
    string(APPEND chosen ":${test}")
  endif()
endforeach()
if(chosen)
  add_process("chosen.${folder}" "${chosen}" 0 1)
endif()
