# Configures, builds and runs `consumer` with fxgraph's sources as a part of it, the graph alone: as FetchContent and
# add_subdirectory have it.

set(directory ${build}/subproject)
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} -S ${consumer} -B ${directory} -G Ninja -D CMAKE_BUILD_TYPE= -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher} -D fxgraph_source=${source} -D FXGRAPH_WITH_TORCH=OFF)
run(${CMAKE_COMMAND} --build ${directory} --target core)
run(${directory}/core)
