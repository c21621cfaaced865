// ShapeProp: an interpreter over meta tensors whose values are kept from run to run.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/keep_random_state.h>
#include <fxgraph/run/nested_graph.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/brief_errors.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/shapes/shape_engine.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/shapes/storage_numbers.h>
#include <fxgraph/shapes/written_shape.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

using c10::IValue;

template <typename Map>
IValue map_tensors(const IValue& value, Map&& map) {
  if (value.isTensor()) return value.toTensor().defined() ? IValue(map(value.toTensor())) : value;
  if (value.isTuple()) {
    std::vector<IValue> elements;
    for (const IValue& each : value.toTupleRef().elements()) elements.push_back(map_tensors(each, map));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isList()) {
    c10::impl::GenericList list(value.type()->expectRef<c10::ListType>().getElementType());
    for (const IValue& each : value.toListRef()) list.push_back(map_tensors(each, map));
    return list;
  }
  if (value.isGenericDict()) {
    const c10::impl::GenericDict given = value.toGenericDict();
    c10::impl::GenericDict dict(given.keyType(), given.valueType());
    for (const auto& item : given) dict.insert(item.key(), map_tensors(item.value(), map));
    return dict;
  }
  return value;
}

// What has no meta tensor stands for itself.
at::Tensor to_meta(const at::Tensor& tensor) {
  if (tensor.is_meta()) return tensor;
  const at::Tensor meta = internal::to_meta(tensor);
  return meta.defined() ? meta : tensor;
}

// Shapes may depend on the numbers of an index, so constants of few whole numbers stay what they are.
bool keeps_numbers(const at::Tensor& tensor) {
  constexpr std::int64_t kFew = 1 << 16;
  return !tensor.is_meta() && tensor.layout() == at::kStrided && !tensor.is_floating_point() && !tensor.is_complex() &&
         !tensor.is_quantized() && tensor.numel() <= kFew;
}

bool writes(const GraphModule& module) {
  const ModuleInfo effects = module_info(module);
  for (const Node& node : module.graph().nodes()) {
    const NodeEffects does = effects_of(node, effects);
    if (does.writes || does.unknown) return true;
  }
  return false;
}

// Whether there is no tensor with data in it.
bool is_meta(const IValue& value) {
  if (value.isTensor()) return !value.toTensor().defined() || value.toTensor().is_meta();
  if (!value.isList()) return true;
  const c10::List<IValue> list = value.toList();
  return std::all_of(list.begin(), list.end(), [](const IValue& element) { return is_meta(element); });
}

at::Tensor constant_or_meta(const at::Tensor& tensor) { return keeps_numbers(tensor) ? tensor : to_meta(tensor); }

}  // namespace

class ShapeProp::Runner : public Interpreter {
 public:
  Runner(GraphModule& module, const Graph& graph, StandIns stand_ins, bool& needed_stand_ins, std::string prefix = "")
      : Interpreter(module, graph),
        stand_ins_(stand_ins),
        needed_stand_ins_(needed_stand_ins),
        prefix_(std::move(prefix)) {}

  // What the value is now: an operator such as squeeze_ may give it another shape later.
  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    infos_[node] = tensor_infos(value);
    return value;
  }
  const TensorInfos& infos(const Node& node) { return infos_[node]; }

  Value get_attr(const Target& target, const Args&, const Kwargs&) override {
    const std::string path = join_path(prefix_, target.view());
    at::Tensor& meta = attributes_[path];
    if (meta.defined()) return meta;
    if (!module().find_attribute(path).defined()) return nested(path);
    const at::Tensor tensor = module().attribute(path);
    // A copy: the program may write it.
    meta = keeps_numbers(tensor) ? tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true)
                                 : to_meta(tensor);
    return meta;
  }
  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (std::optional<Value> shapes = ask_engine(Op::call_function, target, args, kwargs)) return std::move(*shapes);
    return attempt(
        target, [&](const Args& a, const Kwargs& k) { return Interpreter::call_function(target, a, k); }, args, kwargs);
  }
  Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (std::optional<Value> shapes = ask_engine(Op::call_method, target, args, kwargs)) return std::move(*shapes);
    return attempt(
        target, [&](const Args& a, const Kwargs& k) { return Interpreter::call_method(target, a, k); }, args, kwargs);
  }

  // Modules with a body by the body, on meta tensors; the others on stand-ins, as copies: they may write their buffers.
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override {
    const std::string path = join_path(prefix_, target.view());
    const std::shared_ptr<torch::nn::Module> called = module().find_submodule(path);
    if (const std::shared_ptr<const Graph> body = called && kwargs.empty() ? module_body(called) : nullptr)
      return Runner(module(), *body, stand_ins_, needed_stand_ins_, path).run(args);
    const auto on_copy = [&](const Args& a, const Kwargs& k) {
      GraphModule copy;
      copy.add_submodule("called", called ? called->clone() : nullptr);
      return Interpreter(copy).call_module("called", a, k);
    };
    return run_on_stand_ins(on_copy, args, kwargs);
  }

 private:
  /// A graph that is an argument runs on tensors of its own: on those of a copy where it writes.
  Value nested(const std::string& path) {
    const auto graph = std::dynamic_pointer_cast<GraphModule>(module().find_submodule(path));
    if (!graph || !writes(*graph)) return Interpreter::fetch_attr(Target(path));
    Value& copy = copies_[path];
    if (copy.isNone()) copy = nested_graph_value(graph->clone());
    return copy;
  }

  /// What the engine that tracers ask, too, says of an operator whose tensors are all on the meta device. Nothing for
  /// other calls, and where data tells the shape.
  std::optional<Value> ask_engine(Op kind, const Target& target, const Args& args, const Kwargs& kwargs) {
    static thread_local internal::ShapeEngine engine;
    torch::jit::Stack stack;
    const TorchOperator* op = bind_call(kind, target, {args, kwargs}, stack);
    if (!op || !op->handle || !std::ranges::all_of(stack, is_meta)) return std::nullopt;
    internal::OpRecord& record = engine.operators().find(*op->handle);
    if (!record.takes_tensors || !record.all_results_are_tensors || record.results.empty() ||
        stack.size() != record.arguments.size() || internal::depends_on_data(record, stack.data()))
      return std::nullopt;
    engine.allow_data(stand_ins_ != StandIns::none);
    try {
      if (!engine.run(*op->handle, record, stack)) return std::nullopt;
    } catch (const c10::Error&) {  // kernels for the meta device refuse what others take: asked once more, on stand-ins
      return std::nullopt;
    }
    needed_stand_ins_ = engine.has_run_on_data() || needed_stand_ins_;
    if (stack.size() == 1) return std::move(stack.front());
    return c10::ivalue::Tuple::create(std::move(stack));
  }

  /// What was found to have no kernel for meta tensors: LibTorch takes milliseconds to say so.
  static std::unordered_set<Symbol>& without_kernel() {
    static thread_local std::unordered_set<Symbol> known;
    return known;
  }

  template <typename Call>
  Value attempt(const Target& target, const Call& call, const Args& args, const Kwargs& kwargs) {
    const internal::BriefErrors brief;
    const bool no_kernel = stand_ins_ != StandIns::none && without_kernel().contains(target);
    try {
      if (!no_kernel) return map_tensors(call(args, kwargs), constant_or_meta);
    } catch (const std::exception& error) {  // no meta kernel, or wrong shapes: on stand-ins it shows which
      const std::string_view what = error.what();
      if (what.find("Could not run") != what.npos || what.find("_overrideable not implemented") != what.npos)
        without_kernel().insert(target);
    }
    return run_on_stand_ins(call, args, kwargs);
  }

  template <typename Call>
  Value run_on_stand_ins(const Call& call, const Args& args, const Kwargs& kwargs) {
    needed_stand_ins_ = true;
    if (stand_ins_ == StandIns::none)
      throw Error(ErrorKind::unsupported, "ShapeProp: it has no kernel for meta tensors that takes these");
    const internal::KeepRandomState keep;
    std::vector<std::pair<at::Tensor, at::Tensor>> stand_ins;  // and what they stand for
    const auto fake = [&](const at::Tensor& meta) {
      const int fill = stand_ins_ == StandIns::ones ? 1 : 0;
      stand_ins.emplace_back(meta.is_meta() ? internal::fake_input(meta, fill) : meta, meta);
      return stand_ins.back().first;
    };
    Args values;
    Kwargs named;
    for (const Value& each : args) values.push_back(map_tensors(each, fake));
    for (const auto& [name, each] : kwargs) named.emplace_back(name, map_tensors(each, fake));
    return map_tensors(call(values, named), [&](const at::Tensor& result) {
      for (const auto& [numbers, meta] : stand_ins) {
        if (!numbers.is_same(result)) continue;  // else in place, or passed on
        internal::take_shape(meta, result);
        return meta;
      }
      return to_meta(result);
    });
  }

  const StandIns stand_ins_;
  bool& needed_stand_ins_;
  const std::string prefix_;
  NodeMap<TensorInfos> infos_;
  std::unordered_map<std::string, at::Tensor> attributes_;
  std::unordered_map<std::string, Value> copies_;  // of graphs that write
};

const Shapes& ShapeProp::propagate(const std::vector<IValue>& inputs) {
  std::vector<IValue> metas;
  for (const IValue& input : inputs) metas.push_back(map_tensors(input, to_meta));
  const std::vector<IValue> before = std::exchange(inputs_, std::move(metas));
  const std::vector<Device> devices_before = std::exchange(input_devices_, {});
  for (const IValue& input : inputs) {
    const TensorInfos infos = tensor_infos(input);
    input_devices_.push_back(infos.empty() ? Device{} : infos.front().device);
  }
  try {
    run(/*everything=*/true);
  } catch (...) {
    inputs_ = before;
    input_devices_ = devices_before;
    throw;
  }
  return shapes_;
}

const Shapes& ShapeProp::propagate(const std::vector<TensorInfo>& inputs) {
  std::vector<IValue> values;
  for (const TensorInfo& info : inputs) values.emplace_back(zeros_like_info(info));
  return propagate(values);
}

// Meta tensors have forgotten their device. It is the one that the call names, or that of its first tensor.
Device ShapeProp::device_of(const Node& node, const Shapes& shapes) const {
  if (node.is(Op::get_attr)) {
    const at::Tensor tensor = module_.find_attribute(node.target().str());
    return to_device(tensor.defined() ? tensor.device() : c10::Device(c10::kCPU));
  }
  const auto named = [](const Argument& argument) { return argument.kind() == ArgumentKind::device; };
  for (const Argument& argument : node.args()) {
    if (named(argument)) return argument.as_device();
  }
  for (const auto& [name, argument] : node.kwargs()) {
    if (named(argument)) return argument.as_device();
  }
  for (const Node* input : node.all_input_nodes()) {
    const TensorInfos& tensors = shapes[*input].tensors;
    if (!tensors.empty()) return tensors.front().device;
  }
  return to_device(c10::Device(c10::kCPU));
}

std::size_t ShapeProp::update() { return run(changes_shapes_in_place_); }

ShapeProp::Record ShapeProp::record_of(const Node& node) const {
  Record record;
  record.known = true;
  record.op = node.op();
  record.target = node.target();
  record.args.assign(node.args().begin(), node.args().end());
  record.kwargs = node.kwargs().to_vector();
  if (node.is(Op::get_attr)) {
    const at::Tensor tensor = module_.find_attribute(node.target().str());
    record.attribute = tensor.defined() ? tensor.unsafeGetTensorImpl() : nullptr;
  } else if (node.is(Op::call_module)) {
    const auto called = module_.find_submodule(node.target().str());
    record.attribute = called.get();
    record.training = called && called->is_training();
  }
  return record;
}

bool ShapeProp::same_call(const Record& a, const Record& b) {
  return a.known == b.known && a.op == b.op && a.target == b.target && a.attribute == b.attribute &&
         a.training == b.training && a.args == b.args && a.kwargs == b.kwargs;
}

// Values of unchanged nodes are given to the interpreter, so that it runs the others only. All is made anew beside what
// is there, and put in its place when nothing has thrown.
std::size_t ShapeProp::run(bool everything) {
  const at::NoGradGuard no_grad;
  const Graph& graph = module_.graph();
  NodeMap<Record> records(graph);
  NodeMap<bool> runs(graph, false);
  Interpreter::Environment given;
  std::size_t visited = 0, next_input = 0;
  for (const Node& node : graph.nodes()) {
    records[node] = record_of(node);
    const Record& before = std::as_const(records_)[node];
    bool stale = everything || !same_call(before, records[node]);
    node.for_each_input([&](const Node& input) { stale = stale || runs[input]; });
    runs[node] = stale;
    if (node.is(Op::placeholder)) {
      const bool has_input = next_input < inputs_.size();
      if (!has_input && node.args().empty()) {
        throw Error(ErrorKind::invalid_argument,
                    "ShapeProp: there is no input for %" + node.name() + "; propagate with one", node.name());
      }
      records[node].value = has_input ? map_tensors(inputs_[next_input], internal::own_shape) : to_ivalue(node.arg(0));
      ++next_input;
      given.emplace_back(&node, records[node].value);
    } else if (!stale) {
      records[node].value = before.value;
      given.emplace_back(&node, before.value);
    }
    visited += stale;
  }
  if (next_input < inputs_.size()) {
    throw Error(ErrorKind::invalid_argument, "ShapeProp: the graph takes " + std::to_string(next_input) + " inputs, " +
                                                 std::to_string(inputs_.size()) + " were given");
  }
  if (everything) needed_stand_ins_ = false;
  Runner runner(module_, graph, stand_ins_, needed_stand_ins_);
  runner.keep_values(true);
  runner.run({}, given);
  Shapes shapes(graph);
  StorageNumbers storages;
  changes_shapes_in_place_ = false;
  next_input = 0;
  for (const Node& node : graph.nodes()) {
    TensorInfos infos;
    if (node.is(Op::placeholder)) {
      infos = tensor_infos(next_input < inputs_.size() ? inputs_[next_input] : records[node].value);
      const Device device = next_input < input_devices_.size() ? input_devices_[next_input] : Device{};
      for (TensorInfo& info : infos) info.device = device;
      ++next_input;
    } else if (runs[node]) {
      records[node].value = *runner.value_of(node);
      infos = runner.infos(node);
      const Device device = device_of(node, shapes);
      for (TensorInfo& info : infos) info.device = device;
    } else {
      infos = std::as_const(shapes_)[node].tensors;
    }
    const TensorInfos now = tensor_infos(records[node].value);
    for (std::size_t i = 0; i < infos.size() && i < now.size(); ++i) {
      infos[i].storage = now[i].storage;
      changes_shapes_in_place_ = changes_shapes_in_place_ || now[i].sizes != infos[i].sizes;
    }
    storages.renumber(records[node].value, infos);
    shapes[node] = std::move(infos);
  }
  records_ = std::move(records);
  shapes_ = std::move(shapes);
  return visited;
}

}  // namespace fx
