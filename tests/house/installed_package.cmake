# Installs the build tree `build` below itself, then configures, builds and runs projects against that: `consumer`, by CMake
# and by pkg-config, and, with LibTorch, copies of `examples` and of the project in it. The package refuses another LibTorch.

set(directory ${build}/installed_package)
set(prefix ${directory}/prefix)
file(REMOVE_RECURSE ${directory})

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${build} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

#   build_project(<folder> <build folder> <target> <option>...)
function(build_project folder to target)
  run(${CMAKE_COMMAND} -S ${folder} -B ${to} -G Ninja -D CMAKE_CXX_COMPILER=${compiler}
      -D CMAKE_PREFIX_PATH=${prefix} ${ARGN})
  run(${CMAKE_COMMAND} --build ${to} --target ${target})
endfunction()

run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${prefix})

build_project(${consumer} ${directory}/consumer all)
foreach(program IN ITEMS core static core_shared shared)
  if(EXISTS ${directory}/consumer/${program})
    run(${directory}/consumer/${program})
  endif()
endforeach()

# The graph alone, where there is no LibTorch; and what the package does not have.
build_project(${consumer} ${directory}/consumer_of_core core -D components=core -D CMAKE_DISABLE_FIND_PACKAGE_Torch=ON)
run(${directory}/consumer_of_core/core)

#   refuse(<build folder> <words of the message> <option>...)
function(refuse to words)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${consumer} -B ${to} -G Ninja -D CMAKE_CXX_COMPILER=${compiler}
                          -D CMAKE_PREFIX_PATH=${prefix} ${ARGN}
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE message)
  string(REGEX REPLACE "[ \n]+" " " message "${message}")
  if(result EQUAL 0 OR NOT message MATCHES "${words}")
    message(FATAL_ERROR "${ARGN} was to be refused with '${words}': ${result} ${message}")
  endif()
endfunction()

refuse(${directory}/consumer_of_nothing "no component .nothing.: there are core" -D components=nothing)

file(GLOB_RECURSE described ${prefix}/*/fxgraph_core.pc)
foreach(file IN LISTS described)
  get_filename_component(folder ${file} DIRECTORY)
  run(sh -c "PKG_CONFIG_PATH=$1 && export PKG_CONFIG_PATH &&
    $2 $3/core.cc $(pkg-config --cflags --libs fxgraph_core) -Wl,-rpath,$(pkg-config --variable=libdir fxgraph_core) -o $4 && $4"
    sh ${folder} ${compiler} ${consumer} ${directory}/core_by_pkg_config)
endforeach()

# A LibTorch that is nothing but a name, a version and flags.
#   refuse_torch(<version> <flags> <words of the message>)
function(refuse_torch version flags words)
  set(other ${directory}/torch-${version}${flags})
  file(WRITE ${other}/TorchConfig.cmake "add_library(torch INTERFACE IMPORTED)\nset(TORCH_CXX_FLAGS \"${flags}\")\n")
  file(WRITE ${other}/TorchConfigVersion.cmake "set(PACKAGE_VERSION ${version})\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  refuse(${other}/build "${words}" -D Torch_DIR=${other})
endfunction()

if(torch)
  refuse_torch(99.1.0 "" "fxgraph was built with LibTorch ${torch_version}, and .* has 99.1.0")
  refuse_torch(${torch_version} -D_GLIBCXX_USE_CXX11_ABI=0 "built with '.*', and LibTorch in .* with '-D_GLIBCXX_USE_CXX11_ABI=0'")

  file(COPY ${examples} DESTINATION ${directory}/copied)
  build_project(${directory}/copied/examples ${directory}/examples example_capture_and_run)
  run(${directory}/examples/example_capture_and_run)

  file(COPY ${examples}/fine_tune DESTINATION ${directory}/copied)
  build_project(${directory}/copied/fine_tune ${directory}/fine_tune all)
  run(${directory}/fine_tune/fine_tune ${model} ${directory}/tuned.pt2)
endif()
