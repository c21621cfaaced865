# `cpack -G DEB` in a build folder makes fxgraph_<version>_<architecture>.deb: program, libraries, headers, manual.
# `cpack -G TGZ` makes the same as an archive. Both take what `cmake --install` would.

set(CPACK_PACKAGE_NAME fxgraph)
set(CPACK_PACKAGE_VENDOR "the fxgraph authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_INSTALL_DIRECTORY fxgraph)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB TGZ)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the fxgraph authors <fxgraph@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the program and the shared libraries link
# What the headers and the static libraries ask for, and find_package(fxgraph), which finds RE2 by pkg-config.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libboost-dev, libre2-dev, pkg-config")
if(Torch_FOUND)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libtorch-dev")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0-openmp")  # LibTorch alone brings the reference BLAS
endif()

include(CPack)
