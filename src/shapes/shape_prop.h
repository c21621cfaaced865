// Shapes of every value of a program: sizes, dtype, strides, device, and which share storage.
//
//   fx::Shapes shapes = fx::propagate_shapes(*gm, {x});     // runs it on x, as FX's ShapeProp does
//
//   fx::ShapeProp prop(*gm);                                // on meta tensors: nothing is computed where LibTorch has
//   prop.propagate({x});                                    // kernels for shapes alone
//   … edit the graph …
//   std::size_t visited = prop.update();                    // runs what changed and what that reaches
//
// Thread-safety: as GraphModule's edits; one ShapeProp at a time per module.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// Runs `module` on `inputs` and returns what each node's value was. Random numbers are drawn and buffers written as in
/// any run. For programs whose shapes depend on data.
Shapes propagate_shapes(GraphModule& module, std::vector<c10::IValue> inputs);

/// The same on zeros of the given shapes (sizes, dtype and device are read).
Shapes propagate_shapes(GraphModule& module, const std::vector<TensorInfo>& inputs);

/// The sizes of every value as expressions of those of the inputs. The program is not run; a call without a row is made
/// alone, at a few sizes (call_fit.h), and SymbolicShapes::said_by_others names it:
///
///   fx::SymbolicShapes shapes = fx::propagate_shapes(*gm, {fx::dims("batch", 3, "h", "w")});
///   std::cout << shapes.of(node)[2];   // (h - 1)//2 + 1
SymbolicShapes propagate_shapes(GraphModule& module, std::vector<AbstractValue> inputs, const SizeRanges& ranges = {});

/// What SymbolicShapes reads of a module: its attributes and those of the modules in it.
ShapeSources shape_sources(const GraphModule& module);

/// Zeros of that shape, dtype and device. Throws Error(unsupported) for a dtype that this LibTorch has not, and for
/// quantized ones.
at::Tensor zeros_like_info(const TensorInfo& info);

/// `contiguous_format`, `channels_last` or `channels_last_3d`: the first that the strides agree with, as FX's ShapeProp
/// has it; empty when none does.
MemoryFormat memory_format_of(const TensorInfo& info);

/// What an operator without a meta kernel is given for its inputs.
enum class StandIns : std::uint8_t {
  zeros,
  ones,
  none,  ///< nothing, it is an error: some kernels of LibTorch end the process for tensors without elements
};

/// Propagation on meta tensors, kept up to date while the graph is edited. The module is not changed: buffers are not
/// written, no random numbers are drawn. An operator without a meta kernel runs once on zeros; so a shape that depends
/// on data is the one for zeros, except that whole numbers that the module holds, such as indices and masks, are known.
/// Where a graph is chosen by a tensor, zeros choose one and ones the other.
class ShapeProp {
 public:
  /// `module` must outlive it.
  explicit ShapeProp(GraphModule& module, StandIns stand_ins = StandIns::zeros)
      : module_(module), stand_ins_(stand_ins) {}

  /// Propagates from these inputs through the whole graph; of tensors only shape, dtype and device are read. Throws
  /// Error(execution) naming the node that fails; the shapes are then as before.
  const Shapes& propagate(const std::vector<c10::IValue>& inputs);
  /// The same for inputs of these shapes.
  const Shapes& propagate(const std::vector<TensorInfo>& inputs);

  /// Runs the nodes that are new or call something else or with other arguments than before, the get_attr and
  /// call_module nodes whose tensor or module was replaced, and all that use their values; returns how many. Throws
  /// as propagate. What changed inside a called module is not noticed. O(nodes) beside what is run.
  std::size_t update();

  /// What the last propagate() or update() found; empty before the first.
  const Shapes& shapes() const { return shapes_; }
  /// True when the last propagate() came to an operator without a meta kernel: shapes may be those of the numbers that
  /// it was given, or it was given none and that was the error.
  bool needed_stand_ins() const { return needed_stand_ins_; }
  /// What the node gave then: numbers and lists as they are, tensors without their elements; None when it did not run.
  const c10::IValue& value(const Node& node) const { return records_[node].value; }

 private:
  /// What a node's value was worked out from, and the value.
  struct Record {
    bool known = false;
    Op op = Op::placeholder;
    Symbol target;
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    const void* attribute = nullptr;  ///< the tensor or module that it names
    bool training = false;
    c10::IValue value;
  };
  class Runner;

  Record record_of(const Node& node) const;
  static bool same_call(const Record& a, const Record& b);
  std::size_t run(bool everything);
  Device device_of(const Node& node, const Shapes& shapes) const;

  GraphModule& module_;
  std::vector<c10::IValue> inputs_;  ///< on the meta device
  std::vector<Device> input_devices_;
  NodeMap<Record> records_;
  Shapes shapes_;
  StandIns stand_ins_;
  bool needed_stand_ins_ = false;
  bool changes_shapes_in_place_ = false;
};

}  // namespace fx
