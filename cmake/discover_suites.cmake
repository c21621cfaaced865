# Run by ctest as it starts: makes one ctest of each GoogleTest suite in `program`, several of a suite with many cases. Set by
# the including file, which tests.cmake writes: program, folder, setup, directory, environment, models.

set(cases_per_shard 40)
set(list_file ${program}.suites)
if(NOT EXISTS ${program})
  add_test(${folder}.NOT_BUILT ${program})
  return()
endif()
set(manifest "${models}/manifest.json")  # the models make cases
if(${program} IS_NEWER_THAN ${list_file} OR (EXISTS ${manifest} AND ${manifest} IS_NEWER_THAN ${list_file}))
  execute_process(COMMAND env ${environment} ${program} --gtest_list_tests
    WORKING_DIRECTORY ${directory} OUTPUT_VARIABLE listing RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${program} --gtest_list_tests failed: ${status}")
  endif()
  file(WRITE ${list_file} "${listing}")
endif()

function(add_shard name suite shard shards)
  add_test(${name} ${program} --gtest_filter=${suite}.* --gtest_brief=1)
  set(labels torch)
  if(suite MATCHES "Slow(/|$)")
    list(APPEND labels slow)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 900 WORKING_DIRECTORY ${directory}
    FIXTURES_SETUP "${setup}"
    ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  # A suite passes though a test of it is skipped. Where everything is installed (tools/test) that is a fault.
  if(DEFINED ENV{FXGRAPH_NO_SKIPS})
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

function(add_suite suite cases)
  math(EXPR last "(${cases} - 1) / ${cases_per_shard}")
  math(EXPR shards "${last} + 1")
  foreach(shard RANGE ${last})
    set(name ${folder}.${suite})
    if(shards GREATER 1)
      string(APPEND name "#${shard}")
    endif()
    add_shard("${name}" ${suite} ${shard} ${shards})
  endforeach()
endfunction()

# A suite is a line "Name." and its cases are the indented lines below.
file(STRINGS ${list_file} listed REGEX "^([A-Za-z0-9_/]+\\.|  )")
set(suite "")
foreach(line IN LISTS listed)
  if(line MATCHES "^  ")
    math(EXPR cases "${cases} + 1")
    continue()
  endif()
  if(suite)
    add_suite(${suite} ${cases})
  endif()
  string(REGEX MATCH "^[A-Za-z0-9_/]+" suite "${line}")
  set(cases 0)
endforeach()
if(suite)
  add_suite(${suite} ${cases})
endif()
