// Pickles of Python as LibTorch reads them. Thread-safety: pure functions; linear in the pickle.
#pragma once

#include <string>

namespace fx {

/// The same pickle (protocol 2) without the operations that LibTorch 1.13 does not read: Python writes APPEND and
/// SETITEM for lists and dicts of one element, where others get APPENDS and SETITEMS. What is not understood is
/// returned as it is.
std::string without_single_appends(const std::string& pickle);

}  // namespace fx
