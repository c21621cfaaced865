# The models that the tests with LibTorch read, made by Python's torch where that is installed: sets fxgraph_test_models to
# their folder, empty where there is none. What the tests of the rules save, Python reads back.

set(fxgraph_test_models "")
if(NOT Torch_FOUND)
  return()
endif()

find_program(FXGRAPH_TORCH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)  # Debian's packages are for Debian's Python
set(find_torchvision "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') and u.find_spec('torchvision')))")
execute_process(COMMAND ${FXGRAPH_TORCH_PYTHON} -c ${find_torchvision} RESULT_VARIABLE without_torchvision)
if(without_torchvision)
  message(STATUS "Python's torchvision is not installed: the tests on its models are left out")
  return()
endif()

set(fxgraph_test_models ${PROJECT_BINARY_DIR}/test_models)
set(which --by-day)
if(FXGRAPH_NIGHT)
  string(APPEND fxgraph_test_models _at_night)
  set(which "")
endif()
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.py)
add_custom_command(OUTPUT ${fxgraph_test_models}/manifest.json
  COMMAND ${FXGRAPH_TORCH_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/make_models.py ${fxgraph_test_models} ${which}
          > ${PROJECT_BINARY_DIR}/test_models.log
  DEPENDS ${scripts}
  COMMENT "Making the test models"
  VERBATIM)
add_custom_target(test_models ALL DEPENDS ${fxgraph_test_models}/manifest.json)

add_test(NAME models.saved_ones_load_in_python
  COMMAND ${FXGRAPH_TORCH_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_saved.py --pairs ${fxgraph_test_models}/saved/pairs.txt)
set_tests_properties(models.saved_ones_load_in_python PROPERTIES
  LABELS torch TIMEOUT 900 FIXTURES_REQUIRED saved_models)
add_test(NAME models.clean_up COMMAND ${CMAKE_COMMAND} -E rm -rf ${fxgraph_test_models}/saved)
set_tests_properties(models.clean_up PROPERTIES LABELS torch FIXTURES_CLEANUP saved_models)
