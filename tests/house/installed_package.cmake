# Installs the build tree `build` below itself, then configures, builds and runs the project `consumer` against that.

set(directory ${build}/installed_package)
file(REMOVE_RECURSE ${directory})

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${build} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${directory}/prefix)
run(${CMAKE_COMMAND} -S ${consumer} -B ${directory}/consumer -G Ninja -D CMAKE_BUILD_TYPE=${config}
    -D CMAKE_PREFIX_PATH=${directory}/prefix)
run(${CMAKE_COMMAND} --build ${directory}/consumer)
foreach(program IN ITEMS core static core_shared shared)
  if(EXISTS ${directory}/consumer/${program})
    run(${directory}/consumer/${program})
  endif()
endforeach()
