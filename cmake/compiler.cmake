# How our own code is compiled: C++20, warnings as errors, ccache, a fast linker, sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# Everything is position independent, so that the static libraries can go into one shared object. This and -pthread (which
# RE2 brings) are given to all: a precompiled header serves libraries and programs only when all are compiled alike.
set(fxgraph_options -fPIC -pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND fxgraph_options -fno-semantic-interposition)  # or -fPIC would forbid inlining
  # Or copies of a shared library in one process would share the static variables of inline functions, symbols among them
  # that are numbers in a table which each copy has.
  list(APPEND fxgraph_options -fno-gnu-unique)
endif()
if(FXGRAPH_SANITIZE)
  # LibTorch does not show the types of some of its classes, which the check of virtual calls asks for.
  list(APPEND fxgraph_options -fsanitize=${FXGRAPH_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FXGRAPH_SANITIZE})
endif()
if(PROJECT_IS_TOP_LEVEL)
  list(APPEND fxgraph_options -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)  # short paths in messages, one cache for all clones
endif()
add_compile_options(${fxgraph_options})

set(fxgraph_warnings -Wall -Wextra -Wpedantic)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND fxgraph_warnings -Werror)  # later compilers warn of things that nobody has looked at yet: shown, never fatal
  endif()
  # Warnings from the optimiser that GCC 12 and 13 also raise on correct code (std::string, std::variant): shown, never fatal.
  foreach(warning IN ITEMS maybe-uninitialized array-bounds stringop-overflow stringop-overread restrict)
    list(APPEND fxgraph_warnings -Wno-error=${warning})
  endforeach()
  # Warnings that are wrong about correct code, the last of ranges that hold pointers (GCC 13 and later).
  list(APPEND fxgraph_warnings -Wno-restrict -Wno-dangling-reference)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Which function of a class of LibTorch is virtual depends on its version: what may override one says so of none.
  list(APPEND fxgraph_warnings -Wno-inconsistent-missing-override)
endif()

find_program(FXGRAPH_CCACHE ccache)
if(FXGRAPH_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache accepts a precompiled header only with these sloppiness flags and -fpch-preprocess (see library.cmake).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${FXGRAPH_CCACHE})
endif()

find_program(FXGRAPH_MOLD mold)
if(FXGRAPH_MOLD AND PROJECT_IS_TOP_LEVEL)
  add_link_options(-fuse-ld=mold)
endif()

# Reads debug information, so that messages of traces can name lines. It comes with GCC; without it they name functions.
# Clang links GCC's, too; its header lies among those that only GCC can read, and so goes behind all others.
include(CheckCXXSourceCompiles)
set(FXGRAPH_BACKTRACE_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libbacktrace.a OUTPUT_VARIABLE backtrace_library
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(backtrace_folder "${backtrace_library}" DIRECTORY)
  if(EXISTS "${backtrace_folder}/include/backtrace.h")
    set(FXGRAPH_BACKTRACE_OPTIONS "-idirafter${backtrace_folder}/include")
  endif()
endif()
set(CMAKE_REQUIRED_FLAGS "${FXGRAPH_BACKTRACE_OPTIONS}")
set(CMAKE_REQUIRED_LIBRARIES backtrace)
check_cxx_source_compiles("#include <backtrace.h>
int main() { return backtrace_create_state(nullptr, 1, nullptr, nullptr) == nullptr; }" FXGRAPH_BACKTRACE)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_FLAGS)
