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

}  // namespace fx::cli
