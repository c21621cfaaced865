# `cmake --install`: libraries, headers, the program, and the package that find_package(fxgraph) reads.

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY fxgraph_libraries)
get_property(folders GLOBAL PROPERTY fxgraph_folders)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fxgraph)

install(TARGETS ${libraries} fxgraph_all EXPORT fxgraph-targets)
install(EXPORT fxgraph-targets NAMESPACE fxgraph:: DESTINATION ${package_dir})
foreach(program IN ITEMS fxgraph fxgraph-torch)
  if(TARGET ${program})
    install(TARGETS ${program})
  endif()
endforeach()

# Headers keep the path they are included by: <fxgraph/ir/graph.h>, <fxgraph/analysis/liveness.h>.
foreach(folder IN LISTS folders)
  string(REGEX REPLACE "^src/" "" path ${folder})
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fxgraph/${path} FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES src/fxgraph/fx.h ${fxgraph_include_root}/fxgraph/config.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fxgraph)

configure_package_config_file(cmake/fxgraph-config.cmake.in fxgraph-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fxgraph-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fxgraph-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fxgraph-config-version.cmake
              cmake/dependencies.cmake DESTINATION ${package_dir})
