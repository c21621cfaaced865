// Clang compiles what may be a constant expression as soon as it is named: in C++20 that is every function of
// std::vector, and LibTorch 1 has vectors of a class that is only declared so far (ATen/core/List.h; GCC waits).
// Included before everything else (dependencies.cmake), this lets vectors and strings of libstdc++ be what they are in
// C++17. Its own feature test goes with them. Allocators stay as they are: fmt's buffers hold them in constant
// expressions.
#pragma once

#include <bits/allocator.h>
#include <bits/move.h>  // <type_traits>, which defines the one, and std::swap, which is declared with the other

#undef __cpp_lib_is_constant_evaluated
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
