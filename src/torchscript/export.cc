#include <fxgraph/torchscript/export.h>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>

#include <ostream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fxgraph/codegen/script_name.h>
#include <fxgraph/ir/definition_order.h>
#include <fxgraph/module/history.h>
#include <fxgraph/module/inline_bodies.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/module/separated_memory.h>
#include <fxgraph/module/written_mode.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/both_modes.h>
#include <fxgraph/torchscript/file_mode.h>
#include <fxgraph/torchscript/method_builder.h>
#include <fxgraph/torchscript/micro_batches.h>
#include <fxgraph/torchscript/packed.h>
#include <fxgraph/torchscript/script_numbers.h>

namespace fx {

namespace {

namespace jit = torch::jit;

// Makes one class per module of the tree, bottom up: children first, so that a class knows the types of its attributes.
using Paths = std::unordered_set<std::string>;  // membership only

class Exporter {
 public:
  explicit Exporter(const GraphModule& module)
      : module_(module),
        unit_(std::make_shared<jit::CompilationUnit>()),
        separated_(internal::separated_tensors(module, "TorchScript")) {}

  jit::Module run() {
    cut_ = module_.micro_batches();
    jit::Module made = convert_graph_module(module_);
    const std::string fixed = internal::mode_of_written(
        module_, [this](const torch::nn::Module& called) { return followers_.count(&called) != 0; });
    if (!fixed.empty() || !followers_.empty())
      made.register_attribute(internal::kFileMode, c10::StringType::get(), fixed);
    return made;
  }

 private:
  jit::Module make_class(const std::string& qualified_name, bool training) {
    jit::Module made(c10::QualifiedName("__torch__." + qualified_name), unit_, /*shouldMangle=*/true);
    made.register_attribute("training", c10::BoolType::get(), training);
    return made;
  }

  // LibTorch would put the second in the place of the first.
  static std::string name_in(const jit::Module& made, const std::string& name) {
    std::string written = internal::script_name(name);
    if (made.hasattr(written))
      throw Error(ErrorKind::unsupported, "cannot write the attribute '" + name + "' as TorchScript: it becomes '" +
                                              written + "', which another attribute is called; rename one of them");
    return written;
  }

  void add_tensors(jit::Module& made, const torch::nn::Module& from, const std::string& path) const {
    for (const auto& parameter : from.named_parameters(/*recurse=*/false)) {
      if (parameter.value().defined() && !moved_.count(join_path(path, parameter.key())))
        made.register_parameter(name_in(made, parameter.key()), written(parameter.value()), /*is_buffer=*/false);
    }
    for (const auto& buffer : from.named_buffers(/*recurse=*/false)) {
      if (buffer.value().defined() && !moved_.count(join_path(path, buffer.key())))
        made.register_buffer(name_in(made, buffer.key()), written(buffer.value()));
    }
  }

  const torch::Tensor& written(const torch::Tensor& tensor) const {
    const auto alone = separated_.find(tensor.unsafeGetTensorImpl());
    return alone == separated_.end() ? tensor : alone->second;
  }

  // The recursion is over the nesting of modules, which classes of TorchScript share.
  jit::Module holder(const torch::nn::Module& from, const std::string& name, const std::string& path,
                     const Paths& called) {
    jit::Module made = make_class(name, from.is_training());
    add_tensors(made, from, path);
    for (const auto& child : from.named_children()) {
      if (const auto* object = dynamic_cast<const ObjectAttribute*>(child.value().get())) {
        made.register_attribute(name_in(made, child.key()), object->value().type(), object->value());
        continue;
      }
      made.register_module(name_in(made, child.key()), convert(child.value(), join_path(path, child.key()), called));
    }
    return made;
  }

  jit::Module convert_graph_module(const GraphModule& from) {
    require_definitions_before_uses(from.graph());
    Paths called;
    const std::optional<Graph> inlined = internal::inline_traced_bodies(from);
    std::optional<internal::PackedGraph> packed =
        internal::separate_packing(from, inlined ? *inlined : from.graph(), unit_);
    const Graph& graph = packed ? packed->graph : inlined ? *inlined : from.graph();
    // A nested GraphModule has tensors of its own.
    const std::unordered_set<std::string> outer = std::exchange(moved_, packed ? packed->moved : Paths());
    internal::refuse_history(from, graph);
    for (const Node& node : graph.nodes()) {
      if (node.is(Op::call_module)) called.insert(node.target().str());
    }
    jit::Module made = holder(from, from.class_name(), "", called);
    moved_ = outer;
    if (packed) {
      for (const auto& [name, module] : packed->modules) made.register_module(internal::script_name(name), module);
    }
    // A TorchScript leaf may be called by another method, such as the overloads of LSTM.
    const internal::MethodOf method_of = [&](const std::string& path) {
      const auto leaf = from.find_submodule(path);
      const auto* script = dynamic_cast<const LeafModule*>(leaf.get());
      return script && !script->body() && script->script() ? script->script_method() : "forward";
    };
    const bool is_cut = &from == &module_ && cut_.size > 0;
    add_method(made, graph, internal::build_method(graph, made.type(), method_of, module_info(from)),
               is_cut ? internal::kMicroBatchMethod : "forward");
    if (is_cut) internal::add_forward_in_micro_batches(made, cut_);
    return made;
  }

  // A leaf that nothing calls is there for its tensors only, and may have lost some of them.
  jit::Module convert(const std::shared_ptr<torch::nn::Module>& from, const std::string& path, const Paths& called) {
    if (const auto* nested = dynamic_cast<const GraphModule*>(from.get())) return convert_graph_module(*nested);
    if (called.count(path)) {
      if (const auto* leaf = dynamic_cast<const LeafModule*>(from.get())) return convert_leaf(*leaf, *from);
      if (const auto leaf = leaf_of(*from)) return convert_leaf(*leaf, *from);
    }
    return holder(*from, "torch.nn.Module", path, called);
  }

  static std::shared_ptr<LeafModule> leaf_of(const torch::nn::Module& module) {
    std::shared_ptr<LeafModule> leaf = leaf_from_module(module);
    std::optional<Graph> other = leaf && leaf->body() && module.name().starts_with("torch::nn::")
                                     ? internal::in_other_mode(*leaf->body())
                                     : std::nullopt;
    if (other) leaf->set_body(std::make_shared<const Graph>(std::move(*other)), !module.is_training());
    return leaf;
  }

  // `original` is the leaf, or what it was made from.
  jit::Module convert_leaf(const LeafModule& leaf, const torch::nn::Module& original) {
    if (!leaf.body()) {
      followers_.insert(&original);
      if (leaf.script()) return *leaf.script();
      throw Error(ErrorKind::unsupported, "cannot write a module of type " + leaf.type_name() +
                                              " as TorchScript: what it computes is not known");
    }
    const Paths outer = std::exchange(moved_, {});
    jit::Module made = holder(leaf, leaf.qualified_name(), "", {});
    moved_ = outer;
    const internal::MethodOf forward = [](const std::string&) { return std::string("forward"); };
    const Graph *training = leaf.body_in_mode(true).get(), *evaluation = leaf.body_in_mode(false).get();
    if (training && evaluation && print_graph(*training) != print_graph(*evaluation)) {
      if (auto both = internal::in_both_modes(*internal::build_method(*training, made.type(), forward),
                                              *internal::build_method(*evaluation, made.type(), forward))) {
        followers_.insert(&original);
        add_method(made, *leaf.body(), std::move(both));
        return made;
      }
    }
    add_method(made, *leaf.body(), forward);
    return made;
  }

  void add_method(jit::Module& made, const Graph& graph, const internal::MethodOf& method_of) {
    add_method(made, graph, internal::build_method(graph, made.type(), method_of));
  }

  void add_method(jit::Module& made, const Graph& graph, std::shared_ptr<jit::Graph> built,
                  const char* called = "forward") {
    const c10::QualifiedName name(*made.type()->name(), called);
    jit::Function* method = unit_->create_function(name, std::move(built));
    set_defaults(*method, graph);
    made.type()->addMethod(method);
  }

  // Placeholders with a default become arguments with one, except those before one without, which callers give.
  static void set_defaults(jit::Function& method, const Graph& graph) {
    const c10::FunctionSchema& plain = method.getSchema();
    std::vector<c10::Argument> arguments = plain.arguments();
    const std::vector<Node*> placeholders = graph.placeholders();
    for (std::size_t i = placeholders.size(); i-- > 0;) {
      if (placeholders[i]->args().empty()) break;
      const c10::Argument& old = arguments[i + 1];  // after self
      c10::IValue value = to_ivalue(placeholders[i]->args()[0], old.type());
      const auto refuse = [&](const std::string& why) {
        throw Error(ErrorKind::unsupported,
                    "the text of TorchScript files cannot say the default " + to_string(placeholders[i]->args()[0]) +
                        " of the input '" + placeholders[i]->target().str() + "': " + why,
                    placeholders[i]->name());
      };
      if (internal::is_misread(value))
        refuse("it would be read as another number; leave it out, or save the program as .pt2");
      if (value.isTensor() || !value.type()->isSubtypeOf(*old.type()))
        refuse("it is no " + old.type()->annotation_str() +
               "; give the input the default's type, or leave one of them out");
      arguments[i + 1] = c10::Argument(old.name(), old.type(), old.N(), std::move(value));
    }
    method.setSchema(c10::FunctionSchema(plain.name(), plain.overload_name(), std::move(arguments), plain.returns()));
  }

  const GraphModule& module_;
  std::shared_ptr<jit::CompilationUnit> unit_;
  const std::unordered_map<const at::TensorImpl*, at::Tensor> separated_;
  std::unordered_set<const torch::nn::Module*> followers_;  // that do as `training` says; membership only
  MicroBatches cut_;                                        // of the root
  Paths moved_;  // tensors of the GraphModule in hand that its packed modules hold
};

}  // namespace

torch::jit::Module to_torchscript(const GraphModule& module) { return Exporter(module).run(); }

}  // namespace fx
