# `cmake --install`: libraries, headers, the program, and the package that find_package(fxgraph) reads.

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY fxgraph_libraries)
get_property(folders GLOBAL PROPERTY fxgraph_folders)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fxgraph)

install(TARGETS ${libraries} fxgraph_all EXPORT fxgraph-targets)
foreach(shared IN ITEMS fxgraph_core fxgraph_shared)
  if(TARGET ${shared})
    install(TARGETS ${shared} EXPORT fxgraph-targets)
  endif()
endforeach()
install(EXPORT fxgraph-targets NAMESPACE fxgraph:: DESTINATION ${package_dir})
foreach(program IN ITEMS fxgraph fxgraph-torch)
  if(TARGET ${program})
    install(TARGETS ${program})
  endif()
endforeach()

# Headers keep the path they are included by: <fxgraph/ir/graph.h>, <fxgraph/analysis/liveness.h>.
foreach(folder IN LISTS folders)
  string(REGEX REPLACE "^(src|tests)/" "" path ${folder})
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fxgraph/${path} FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES src/fxgraph/fx.h ${fxgraph_include_root}/fxgraph/config.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fxgraph)

configure_package_config_file(cmake/fxgraph-config.cmake.in fxgraph-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fxgraph-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fxgraph-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fxgraph-config-version.cmake
              cmake/dependencies.cmake cmake/clang_with_torch_1.h DESTINATION ${package_dir})

# For those who build without CMake, against the shared libraries: fxgraph_core.pc, the graph alone, and fxgraph.pc, all.
# They find their prefix by where they lie: `cmake --install --prefix` and packages put them where nobody knew.
set(abi_flag ${fxgraph_abi})
list(TRANSFORM abi_flag PREPEND "-D")
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(install_pkg_config pc_name pc_flags pc_libs)
  configure_file(cmake/fxgraph.pc.in ${pc_name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
if(TARGET fxgraph_core)
  install_pkg_config(fxgraph_core "${abi_flag}" "")
endif()
if(TARGET fxgraph_shared)
  list(TRANSFORM TORCH_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE torch_flags)
  list(FILTER torch_flags EXCLUDE REGEX "^-I/usr/include$")
  list(APPEND torch_flags ${abi_flag})
  list(JOIN torch_flags " " torch_flags)
  install_pkg_config(fxgraph "${torch_flags}" "-ltorch -ltorch_cpu -lc10")
endif()

# What the program says of itself.
if(TARGET fxgraph)
  foreach(made IN ITEMS "man fxgraph.1 ${CMAKE_INSTALL_MANDIR}/man1" "bash fxgraph ${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    separate_arguments(made)
    list(GET made 0 format)
    list(GET made 1 file)
    list(GET made 2 place)
    set(output ${PROJECT_BINARY_DIR}/manual/${file})
    add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/manual
      COMMAND fxgraph manual ${format} > ${output} DEPENDS fxgraph VERBATIM)
    list(APPEND manuals ${output})
    install(FILES ${output} DESTINATION ${place})
  endforeach()
  add_custom_target(fxgraph_manuals ALL DEPENDS ${manuals})
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
