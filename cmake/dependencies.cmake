# The libraries fxgraph stands on. Read by the build and, installed, by find_package(fxgraph).

find_package(Threads REQUIRED)
find_package(Boost REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED QUIET IMPORTED_TARGET GLOBAL re2)

if(FXGRAPH_WITH_TORCH STREQUAL "AUTO")
  find_package(Torch QUIET)
elseif(FXGRAPH_WITH_TORCH)
  find_package(Torch REQUIRED)
else()
  set(Torch_FOUND FALSE)
endif()
# From LibTorch 2 on, what the header of c10d's process group holds calls gloo itself.
if(Torch_FOUND AND Torch_VERSION VERSION_GREATER_EQUAL 2)
  find_library(FXGRAPH_GLOO gloo)
endif()
if(Torch_FOUND AND Torch_VERSION VERSION_LESS 2 AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(FXGRAPH_TORCH_OPTIONS -include ${CMAKE_CURRENT_LIST_DIR}/clang_with_torch_1.h)
  list(JOIN FXGRAPH_TORCH_OPTIONS " " fxgraph_torch_options)
  target_compile_options(torch INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:${fxgraph_torch_options}>")
endif()
