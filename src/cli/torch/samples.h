// Samples from a file: what Python's torch.save or torch::pickle_save wrote.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace fx::cli {

using Samples = std::vector<std::vector<c10::IValue>>;  ///< each the inputs of one run

/// Reads a list (or tuple) of samples, each a tensor or a tuple of a program's inputs; one tensor is one sample. Throws
/// Error(io) when the file cannot be read, Error(invalid_argument) when it holds something else or nothing.
Samples read_samples(const std::string& path);

/// The same pickle (protocol 2) without the operations that LibTorch 1.13 does not read: Python writes APPEND and
/// SETITEM for lists and dicts of one element, where others get APPENDS and SETITEMS. What is not understood is
/// returned as it is.
std::string without_single_appends(const std::string& pickle);

}  // namespace fx::cli
