# The shared libraries, from the same objects as the static ones: libfxgraph_core.so without LibTorch, libfxgraph.so with
# all. They export the namespace fx and nothing of what they were built from (exports.map), and their names carry the
# version, since before 1.0 each minor version is an ABI of its own. A program that links fxgraph::shared or
# fxgraph::shared_core takes the headers of the static libraries.
#
#   fxgraph_shared_library(<name> EXPORT_NAME <name> LIBRARIES <target>...)

function(fxgraph_shared_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXPORT_NAME" "LIBRARIES")
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// A library needs a source; this one is made of others.\n")
  add_library(${name} SHARED ${source})
  add_library(fxgraph::${arg_EXPORT_NAME} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${arg_EXPORT_NAME} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_compile_definitions(${name} PUBLIC ${fxgraph_abi})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${fxgraph_include_root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_options(${name} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,--no-undefined)
  set(archives "")
  foreach(library IN LISTS arg_LIBRARIES)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      string(APPEND archives " $<TARGET_FILE:${library}>")
      add_dependencies(${name} ${library})
      set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  target_link_options(${name} PRIVATE "SHELL:-Wl,--whole-archive${archives} -Wl,--no-whole-archive")
  target_link_libraries(${name} PUBLIC Boost::headers Threads::Threads PRIVATE PkgConfig::RE2)
endfunction()

get_property(libraries GLOBAL PROPERTY fxgraph_libraries)
set(core "")
foreach(library IN LISTS libraries)
  get_property(torch TARGET ${library} PROPERTY FXGRAPH_TORCH)
  if(NOT torch)
    list(APPEND core ${library})
  endif()
endforeach()
fxgraph_shared_library(fxgraph_core EXPORT_NAME shared_core LIBRARIES ${core})
if(Torch_FOUND)
  fxgraph_shared_library(fxgraph_shared EXPORT_NAME shared LIBRARIES ${libraries})
  set_target_properties(fxgraph_shared PROPERTIES OUTPUT_NAME fxgraph)
  target_link_libraries(fxgraph_shared PUBLIC torch PRIVATE $<$<BOOL:${FXGRAPH_BACKTRACE}>:backtrace> $<$<BOOL:${FXGRAPH_GLOO}>:gloo>)
endif()
