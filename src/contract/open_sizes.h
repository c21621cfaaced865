// open_sizes: which sizes of a program's inputs may vary, and how they hang together.
//
//   fx::OpenSizes open = fx::open_sizes({x, y}, name, shapes_of);
//   open.inputs[0].sizes      // [x[0], 3, 8*x[2]]
//   open.inputs[1].sizes      // [x[0], 10]
//
// Every size is a symbol at first; what the program's operators and assertions ask of them ties some to others, gives
// some a step, and makes the rest what they are in the example. As torch.export has it, a size that varies is two or
// more; where the program takes such beside the example's 1 only as that, it stays 1.
//
// Cost: a few passes of SymbolicShapes. Thread-safety: as `shapes_of`.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>

namespace fx {

/// See the top of this file.
struct OpenSizes {
  std::vector<TensorType> inputs;             ///< each size a number, or an expression of symbols
  SizeRanges ranges;                          ///< what the program asks of symbols, where it asks something
  std::map<std::string, std::int64_t> steps;  ///< of symbols: their size is as many times the symbol

  /// 1 where none is asked.
  std::int64_t step(const std::string& symbol) const {
    const auto known = steps.find(symbol);
    return known == steps.end() ? 1 : known->second;
  }
};

/// The symbol of a size: `x[0]`.
using SizeName = std::function<std::string(std::size_t input, std::size_t dim)>;
/// The shapes of the program for such inputs.
using ShapesOf = std::function<SymbolicShapes(const std::vector<TensorType>& inputs, const SizeRanges& ranges)>;

/// Of a program that takes tensors like `examples`.
OpenSizes open_sizes(const std::vector<TensorInfo>& examples, const SizeName& name, const ShapesOf& shapes_of);

}  // namespace fx
