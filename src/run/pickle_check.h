// A pickle that somebody sent, read as LibTorch's machine reads it, without making anything of it.
//
// LibTorch's unpickler believes what it reads: that a tensor lies inside of its memory, that values are there when an
// operation takes them, that nothing contains itself. So each pickle is followed first: operations, what lies on the
// stack, the memory of tensors, sizes and strides against it, how deep values lie in each other. Cost: linear in the
// pickle. Thread-safety: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fx {

/// How many bytes the memory of this name has that a pickle refers to; nothing when there is none.
using MemorySize = std::function<std::optional<std::uint64_t>(const std::string&)>;

/// The same pickle (protocol 2), as LibTorch 1.13 reads it: Python writes APPEND and SETITEM for lists and dicts of one
/// element, where others get APPENDS and SETITEMS. Throws Error(io) that says what is wrong with it: an operation that
/// is not known, a value that is missing, a tensor that reaches outside of its memory, a value inside of itself.
std::string checked_pickle(const std::string& pickle, const MemorySize& memory);

}  // namespace fx
