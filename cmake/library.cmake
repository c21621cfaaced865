# One target per folder, and what they share: warnings, include roots, precompiled LibTorch headers.
#
#   fxgraph_library(<name> <folder> [TORCH] [COLD] [INTERNAL] [EXCLUDE <subfolder or file>...] [DEPS <name>...] [LINKS <target>...])
#   fxgraph_program(<name> <main file> [TORCH] DEPS <name>...)
#   fxgraph_umbrella()
#
# A library named ir is the target fxgraph_ir, alias fxgraph::ir. Its files are compiled several at a time (CMAKE_UNITY_BUILD), so
# their helpers have different names. COLD: nothing in it runs often enough to be worth optimising.

function(fxgraph_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TORCH;COLD;INTERNAL" "" "EXCLUDE;DEPS;LINKS")
  fxgraph_sources(sources ${folder} .cc ${arg_EXCLUDE})
  fxgraph_sources(headers ${folder} .h ${arg_EXCLUDE})
  set_property(GLOBAL APPEND PROPERTY fxgraph_known ${name})
  if((NOT sources AND NOT headers) OR (arg_TORCH AND NOT Torch_FOUND))
    return()
  endif()

  set(target fxgraph_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    fxgraph_own_code(${target})
    if(arg_TORCH)
      # Eight seconds of each compilation go into what LibTorch's headers leave to be instantiated, and more into what files
      # have in common: 24 at a time take three fifths of the processor time that 8 do.
      set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${FXGRAPH_BATCH})
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(fxgraph::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  fxgraph_include_link(${folder})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${fxgraph_include_root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  fxgraph_link(${target} ${scope} ${arg_DEPS})
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  set(pch fxgraph_torch_pch)
  if(arg_COLD AND fxgraph_cold)
    target_compile_options(${target} PRIVATE ${fxgraph_cold})
    set(pch fxgraph_torch_cold_pch)
    fxgraph_torch_pch(${pch} HEADERS ${fxgraph_torch_headers} OPTIONS ${fxgraph_cold})
  endif()
  if(arg_TORCH)
    fxgraph_use_torch(${target} ${scope} ${pch})
  endif()
  if(NOT arg_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY fxgraph_libraries ${target})
    set_property(GLOBAL APPEND PROPERTY fxgraph_folders ${folder})
    set_target_properties(${target} PROPERTIES FXGRAPH_TORCH "${arg_TORCH}")
  endif()
endfunction()

function(fxgraph_program name main)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TORCH" "" "DEPS")
  if((arg_TORCH AND NOT Torch_FOUND) OR NOT EXISTS ${PROJECT_SOURCE_DIR}/${main})
    return()
  endif()
  foreach(dep IN LISTS arg_DEPS)
    if(NOT TARGET fxgraph_${dep})
      return()
    endif()
  endforeach()
  add_executable(${name} ${main})
  fxgraph_own_code(${name})
  fxgraph_link(${name} PRIVATE ${arg_DEPS})
  if(arg_TORCH)
    fxgraph_use_torch(${name} PRIVATE fxgraph_torch_pch)
  endif()
endfunction()

# Headers are included as users include them: src/ir/graph.h is <fxgraph/ir/graph.h>, analysis/liveness.h is
# <fxgraph/analysis/liveness.h>. In the build a folder of links gives them these names; the installed package has them so.
set(fxgraph_include_root ${PROJECT_BINARY_DIR}/include)

function(fxgraph_include_link folder)
  string(REGEX MATCH "^((src|tests)/[^/]+|[^/]+)" room ${folder})  # rewriter/rules lies in the link of rewriter
  get_filename_component(name ${room} NAME)
  file(MAKE_DIRECTORY ${fxgraph_include_root}/fxgraph)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${fxgraph_include_root}/fxgraph/${name} SYMBOLIC)
endfunction()

# Lists the families of rules, the .cc files in the subfolders of `folder`, in the header <rule_families.h>.
function(fxgraph_rule_families target folder)
  if(NOT TARGET ${target})
    return()
  endif()
  file(GLOB files RELATIVE ${PROJECT_SOURCE_DIR}/${folder} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/*.cc)
  set(declarations "")
  set(names "")
  foreach(file IN LISTS files)
    string(REGEX REPLACE "/" "_" name ${file})
    string(REGEX REPLACE "\\.cc$" "" name ${name})
    string(APPEND declarations "namespace ${name} { std::span<const OptimizeRule> family(); }\n")
    string(APPEND names "    ${name}::family,\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rule_families.h.in ${PROJECT_BINARY_DIR}/generated/rule_families.h)
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()

# Makes fxgraph::fxgraph, which stands for every library that is not INTERNAL.
function(fxgraph_umbrella)
  get_property(libraries GLOBAL PROPERTY fxgraph_libraries)
  add_library(fxgraph_all INTERFACE)
  add_library(fxgraph::fxgraph ALIAS fxgraph_all)
  set_target_properties(fxgraph_all PROPERTIES EXPORT_NAME fxgraph)
  target_link_libraries(fxgraph_all INTERFACE ${libraries})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/fxgraph/fx.h ${fxgraph_include_root}/fxgraph/fx.h SYMBOLIC)
  set(FXGRAPH_HAS_TORCH ${Torch_FOUND})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/config.h.in ${fxgraph_include_root}/fxgraph/config.h)
endfunction()

# Sets `out` to the files below `folder` with the suffix, without those at or below the excluded paths.
function(fxgraph_sources out folder suffix)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*${suffix})
  foreach(excluded IN LISTS ARGN)
    list(FILTER files EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${excluded}(/|$)")
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# Links libraries of this project by their short names; those still without sources are passed over.
function(fxgraph_link target scope)
  get_property(known GLOBAL PROPERTY fxgraph_known)
  foreach(dep IN LISTS ARGN)
    if(NOT dep IN_LIST known)
      message(FATAL_ERROR "${target} depends on '${dep}', which no fxgraph_library() before it has declared")
    endif()
    if(TARGET fxgraph_${dep})
      target_link_libraries(${target} ${scope} fxgraph_${dep})
    endif()
  endforeach()
endfunction()

# A LibTorch with the old ABI of std::string asks for it in all that links it: in the core, too, and in what uses the core. The
# new ABI is what compilers take by themselves.
set(fxgraph_abi)
if(Torch_FOUND AND "${TORCH_CXX_FLAGS}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  set(fxgraph_abi ${CMAKE_MATCH_0})
endif()

# Collecting garbage is a fifth of the time that GCC takes for a file with LibTorch: 28 s of user time became 22, with 1.76 GB
# of memory in place of 1.63.
function(fxgraph_own_code target)
  target_compile_options(${target} PRIVATE ${fxgraph_warnings}
    "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=2000000>")
  target_compile_definitions(${target} PUBLIC ${fxgraph_abi} PRIVATE FXGRAPH_VERSION="${PROJECT_VERSION}")
endfunction()

# ---- LibTorch --------------------------------------------------------------------------------------------------------
# A file that includes torch/nn/module.h takes 9 s to compile, 4 s with these headers precompiled. torch/torch.h costs 4 s and
# 2 MB of object code more in every file that sees it, so only the tests, which need it, have it in theirs (tests.cmake).
# -g1 (line tables) instead of -g saves another third.
set(fxgraph_torch_headers
  <ATen/ATen.h> <ATen/core/dispatch/Dispatcher.h> <torch/csrc/jit/api/module.h> <torch/nn/module.h>)
# Optimising takes two thirds of the time of a release build: -O3 is for what LibTorch is not in. What is COLD has a
# precompiled header of its own: one made with other options brings its own back.
set(fxgraph_warm)
set(fxgraph_cold)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(fxgraph_warm -O2)
  set(fxgraph_cold -O1)
endif()

function(fxgraph_use_torch target scope pch)
  target_link_libraries(${target} ${scope} torch)
  if(scope STREQUAL "INTERFACE")
    return()
  endif()
  fxgraph_torch_options(${target})
  if(pch STREQUAL "fxgraph_torch_pch")
    target_compile_options(${target} PRIVATE ${fxgraph_warm})
  endif()
  if(FXGRAPH_PCH)
    fxgraph_torch_pch(fxgraph_torch_pch HEADERS ${fxgraph_torch_headers} OPTIONS ${fxgraph_warm})
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# Makes a target that only holds a precompiled header, unless it is there.
function(fxgraph_torch_pch target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;OPTIONS;LINKS")
  if(TARGET ${target} OR NOT FXGRAPH_PCH)
    return()
  endif()
  set(source ${PROJECT_BINARY_DIR}/${target}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// A precompiled header needs a target, and a target a source.\n")
  add_library(${target} OBJECT ${source})
  target_link_libraries(${target} PRIVATE torch ${arg_LINKS})
  fxgraph_own_code(${target})  # every user's options: GCC refuses the header when one of them sets another macro
  fxgraph_torch_options(${target})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${target} PRIVATE ${arg_HEADERS})
endfunction()

function(fxgraph_torch_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug,RelWithDebInfo>:-g1>)
  if(FXGRAPH_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=bool)  # LibTorch's TensorIndex is copied with members that nobody set
  endif()
  if(FXGRAPH_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(FXGRAPH_PCH)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
