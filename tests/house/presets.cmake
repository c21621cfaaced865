# Configures every preset of CMakePresets.json, by the compiler at hand, so that those which no test builds stay usable.

file(READ ${source}/CMakePresets.json presets)
string(JSON last LENGTH ${presets} configurePresets)
math(EXPR last "${last} - 1")
foreach(i RANGE ${last})
  string(JSON hidden ERROR_VARIABLE none GET ${presets} configurePresets ${i} hidden)
  if(NOT hidden STREQUAL "ON")
    string(JSON name GET ${presets} configurePresets ${i} name)
    execute_process(COMMAND ${CMAKE_COMMAND} --preset ${name} -B ${build}/presets/${name} -D CMAKE_CXX_COMPILER=${compiler}
      WORKING_DIRECTORY ${source} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
