// Samples and inputs from a file: what Python's torch.save or torch::pickle_save wrote.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace fx::cli {

using Samples = std::vector<std::vector<c10::IValue>>;  ///< each the inputs of one run

/// Reads a list (or tuple) of samples, each a tensor or a tuple of a program's inputs; one tensor is one sample. Throws
/// Error(io) when the file cannot be read, Error(invalid_argument) when it holds something else or nothing.
Samples read_samples(const std::string& path);

/// Reads the inputs of one run: a tensor, or a tuple or list of tensors, numbers, and lists of them. Throws as above.
std::vector<c10::IValue> read_inputs(const std::string& path);

/// Writes a value as torch::pickle_load and Python's torch.load read it.
void write_value(const std::string& path, const c10::IValue& value);

}  // namespace fx::cli
