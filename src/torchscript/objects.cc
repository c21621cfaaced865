// Constants, attributes, methods, functions and small type questions.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <ranges>

#include <fxgraph/ir/meta.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/importer.h>
#include <fxgraph/torchscript/own_operators.h>
#include <fxgraph/torchscript/packed.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {

using Kind = AbstractValue::Kind;

void Importer::load_constant(const JitNode& node, Frame& frame) {
  const c10::TypePtr& type = node.output()->type();
  if (const auto* function = type->castRaw<c10::FunctionType>()) {
    AbstractValue value;
    value.kind = Kind::function;
    value.type = type;
    value.function = function->function();
    return set(node, frame, std::move(value));
  }
  const auto constant = torch::jit::toIValue(node.output());
  if (!constant || constant->isObject())
    refuse(node, frame, "cannot import a constant of type " + type->annotation_str());
  AbstractValue value = from_constant(*constant, type);
  keep_for_module(value);
  set(node, frame, std::move(value));
}

/// Does the attribute that reads as `value` decide whether the program warns, and nothing else? `if not self.warned:
/// warn(…); self.warned = True` computes the same in every call.
static bool decides_only_warnings(const JitValue& value, const std::string& attribute) {
  return std::ranges::all_of(value.uses(), [&](const torch::jit::Use& use) {
    const JitNode& user = *use.user;
    if (user.kind() == torch::jit::aten::__not__) return decides_only_warnings(*user.output(), attribute);
    if (user.kind() != torch::jit::prim::If || !user.outputs().empty()) return false;
    return std::ranges::all_of(user.blocks(), [&](const JitBlock* block) {
      const auto nodes = block->nodes();
      return std::all_of(nodes.begin(), nodes.end(), [&](const JitNode* node) {
        const auto kind = node->kind();
        if (kind == torch::jit::prim::SetAttr)
          return node->s(torch::jit::attr::name) == attribute && torch::jit::toIValue(node->input(1)).has_value();
        return kind == torch::jit::prim::Constant || kind == torch::jit::aten::warn || kind == torch::jit::prim::Print;
      });
    });
  });
}

void Importer::get_attribute(const JitNode& node, Frame& frame) {
  const AbstractValue owner = value_of(node.input(), frame);
  const std::string& name = node.s(torch::jit::attr::name);
  if (owner.kind == Kind::local_object) {
    const auto found = owner.local->attributes.find(name);
    if (found == owner.local->attributes.end())
      refuse(node, frame, "attribute '" + name + "' is read before it is set");
    return set(node, frame, found->second);
  }
  if (owner.kind != Kind::object) refuse(node, frame, "cannot read attribute '" + name + "'");
  const c10::ClassTypePtr type = owner.object->object->type();
  if (name == "training" && type->is_module()) {
    read_training = true;
    if (training_) return set(node, frame, AbstractValue::of_constant(*training_));
  }
  if (const auto slot = type->findAttributeSlot(name)) {
    const std::string path = join_path(owner.object->path, name);
    if (const auto known = set_attributes_.find(path); known != set_attributes_.end())
      return set(node, frame, known->second);
    if (!decides_only_warnings(*node.output(), name)) read_attributes_.insert(path);
    // What is packed becomes the call that packs it.
    if (torch::jit::Function* pack = internal::packing_method(*type, *slot))
      return set(node, frame, call(*pack, {owner}, owner.object->path, frame.depth + 1));
    return set(node, frame, attribute_value(*owner.object, name, *slot));
  }
  if (const auto constant = type->findConstant(name)) {
    AbstractValue value = from_constant(*constant, node.output()->type());
    keep_for_module(value);
    return set(node, frame, std::move(value));
  }
  refuse(node, frame, "there is no attribute '" + name + "'");
}

// An in-place operator's result is the attribute itself, and writing back what is there changes nothing.
bool Importer::holds_attribute(const Node* node, const std::string& path) const {
  while (node) {
    if (node->is(Op::get_attr)) return node->target() == std::string_view(path);
    if (!node->is(Op::call_function) || node->args().empty()) return false;
    const std::string_view packet = packet_of(node->target().view());
    if (!packet.ends_with('_') || packet.ends_with("__")) return false;
    node = node->arg(0).node_or_null();
  }
  return false;
}

// Tensors that are the very ones, such as those of `.to(dtype)` where they have that type.
bool Importer::is_same_at_examples(const AbstractValue& a, const AbstractValue& b) const {
  if (a.kind != b.kind) return false;
  if (a.is_node()) {
    const c10::IValue *left = examples_->value(*a.node), *right = examples_->value(*b.node);
    return left && right && left->is(*right);
  }
  if (!a.is_container()) return is_same(a, b);
  const auto& left = a.elements->values;
  const auto& right = b.elements->values;
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [this](const auto& one, const auto& other) { return is_same_at_examples(one, other); });
}

// What a call makes where it finds nothing, and later calls find: numbers are asserted to be what they are at the
// examples, so that it does not matter which call made them. False for what hangs on the inputs in other ways.
bool Importer::settle(const JitNode& node, Frame& frame, AbstractValue& value) {
  const auto all_settle = [&](auto&& values) {
    return std::ranges::all_of(values, [&](AbstractValue& each) { return settle(node, frame, each); });
  };
  if (value.is_constant()) return true;
  if (value.is_container()) return all_settle(value.elements->values);
  if (value.kind == Kind::local_object) return all_settle(std::views::values(value.local->attributes));
  if (!value.is_node() || examples_->hangs_on_data(*value.node)) return false;
  const c10::IValue* known = examples_->value(*value.node);
  if (!known || !is_number(*known)) return !examples_->hangs_on_inputs(*value.node);
  value = AbstractValue::of_constant(*decide(node, frame, value), value.type);
  return true;
}

void Importer::set_attribute(const JitNode& node, Frame& frame) {
  const AbstractValue owner = value_of(node.inputs()[0], frame);
  AbstractValue value = value_of(node.inputs()[1], frame);
  const std::string& name = node.s(torch::jit::attr::name);
  if (owner.kind == Kind::local_object) {
    owner.local->attributes[name] = value;
    return;
  }
  if (owner.kind == Kind::object) {
    const std::string path = join_path(owner.object->path, name);
    const bool is_set = set_attributes_.contains(path);
    if (!is_set && value.is_node() && holds_attribute(value.node, path)) return;
    const auto slot = owner.object->object->type()->findAttributeSlot(name);
    if (slot && !is_set && is_known(value) && !value.is_node()) {
      const AbstractValue present = attribute_value(*owner.object, name, *slot);
      if (is_known(present) && to_constant(present) == to_constant(value)) return;
    }
    // What each call sets before it reads it is a value of the call, and so is what stays what it is; parameters and
    // buffers are state.
    const c10::ClassTypePtr type = owner.object->object->type();
    const bool state = slot && (type->is_parameter(*slot) || type->is_buffer(*slot));
    const bool stays = slot && examples_ && is_same_at_examples(attribute_value(*owner.object, name, *slot), value);
    bool own = slot && !state && !inside_leaf_ && (stays || !read_attributes_.contains(path));
    if (slot && !state && !inside_leaf_ && !own && settles_) {
      if (!is_settled_) is_settled_ = settles_();
      own = *is_settled_ && settle(node, frame, value);
    }
    if (own) {
      set_attributes_[path] = std::move(value);
      return;
    }
  }
  refuse(node, frame,
         "setting attribute '" + name + "' while running cannot become a graph; write into a buffer in place instead");
}

void Importer::create_object(const JitNode& node, Frame& frame) {
  AbstractValue value;
  value.kind = Kind::local_object;
  value.type = node.output()->type();
  value.local = std::make_shared<LocalObject>();
  value.local->type = value.type->cast<c10::ClassType>();
  set(node, frame, std::move(value));
}

void Importer::call_method(const JitNode& node, Frame& frame) {
  Values args = inputs_of(node, frame);
  const std::string& name = node.s(torch::jit::attr::name);
  const AbstractValue& self = args[0];
  c10::ClassTypePtr type;
  if (self.kind == Kind::object) type = self.object->object->type();
  if (self.kind == Kind::local_object) type = self.local->type;
  if (!type)
    refuse(node, frame, "cannot call method '" + name + "' of a " + node.inputs()[0]->type()->annotation_str());
  torch::jit::Function* method = type->findMethod(name);
  if (!method) refuse(node, frame, "there is no method '" + name + "'");
  if (self.kind == Kind::object && is_leaf(*self.object)) {
    const ObjectRef object = *self.object;
    args.erase(args.begin());
    return set(node, frame, call_leaf(node, frame, object, *method, std::move(args)));
  }
  const std::string path = self.kind == Kind::object ? self.object->path : frame.path;
  set(node, frame, call(*method, std::move(args), path, frame.depth + 1));
}

void Importer::call_function(const JitNode& node, Frame& frame) {
  Values args = inputs_of(node, frame);
  const AbstractValue callee = args[0];
  if (callee.kind != Kind::function) refuse(node, frame, "cannot call a function that is not known");
  args.erase(args.begin());
  if (demangle(callee.function->qualname().qualifiedName()) == "torch.nn.functional._verify_batch_size" &&
      check_batch_size(node, frame, args)) {
    return set(node, frame, AbstractValue::of_constant(c10::IValue()));
  }
  if (emit_own_operator(node, frame, *callee.function, args)) return;
  set(node, frame, call(*callee.function, std::move(args), frame.path, frame.depth + 1));
}

// What fxgraph has saved as a function is the operator again, if this fxgraph has it.
bool Importer::emit_own_operator(const JitNode& node, Frame& frame, const torch::jit::Function& function,
                                 const Values& args) {
  const Symbol target = internal::own_operator_of(function.qualname().qualifiedName());
  const TorchOperator* op = target.empty() ? nullptr : find_torch_operator(target);
  if (!op || op->schema->arguments().size() != args.size()) return false;
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < args.size(); ++i)
    arguments.push_back(to_argument(args[i], op->schema->arguments()[i].real_type(), node, frame));
  Node& made = emit_call(node, frame, target.str(), arguments);
  set(node, frame, AbstractValue::of_node(made, node.output()->type()));
  return true;
}

// The function multiplies all sizes but the second in a loop over their number, and raises when the product is 1: more
// than one value per channel is numel != size(1).
bool Importer::check_batch_size(const JitNode& node, Frame& frame, const Values& args) {
  if (args.size() != 1 || !args[0].is_node() || args[0].node->target() != "aten::size") return false;
  const Argument input = args[0].node->arg(0);
  Node& count = emit_call(node, frame, "aten::numel", {input});
  Node& channels = emit_call(node, frame, "aten::size.int", {input, Argument(1)});
  Node& holds = emit_call(node, frame, "aten::ne.int", {Argument(count), Argument(channels)});
  emit_assert(node, frame, holds, true, "Expected more than 1 value per channel when training");
  return true;
}

void Importer::enter(const JitNode& node, Frame& frame) {
  const AbstractValue object = value_of(node.inputs()[0], frame);
  torch::jit::Function* method =
      object.kind == Kind::local_object ? object.local->type->findMethod("__enter__") : nullptr;
  if (!method) refuse(node, frame, "cannot enter this `with`");
  set(node, frame, call(*method, {object}, frame.path, frame.depth + 1));
}

void Importer::leave(const JitNode& node, Frame& frame) {
  const AbstractValue object = value_of(node.inputs()[0], frame);
  torch::jit::Function* method =
      object.kind == Kind::local_object ? object.local->type->findMethod("__exit__") : nullptr;
  if (!method) refuse(node, frame, "cannot leave this `with`");
  Values args{object};
  while (args.size() < method->num_inputs()) args.push_back(AbstractValue::of_constant(c10::IValue()));
  AbstractValue result = call(*method, std::move(args), frame.path, frame.depth + 1);
  if (!node.outputs().empty()) set(node, frame, std::move(result));
}

/// A type that values have, not one of several.
static bool is_one_type(const c10::Type& type) {
  static constexpr c10::TypeKind kKinds[] = {
      c10::TypeKind::TensorType, c10::TypeKind::IntType,  c10::TypeKind::FloatType, c10::TypeKind::BoolType,
      c10::TypeKind::StringType, c10::TypeKind::ListType, c10::TypeKind::DictType,  c10::TypeKind::TupleType};
  return std::ranges::find(kKinds, type.kind()) != std::end(kKinds);
}

void Importer::is_instance(const JitNode& node, Frame& frame) {
  const AbstractValue value = value_of(node.input(), frame);
  const c10::TypePtr type = value.is_constant() ? value.constant.type() : value.type;
  const std::vector<c10::TypePtr>& candidates = node.tys(torch::jit::attr::types);
  bool sure = true;
  for (const c10::TypePtr& candidate : candidates) {
    if (type->isSubtypeOf(*candidate)) return set(node, frame, AbstractValue::of_constant(true));
    sure = sure && !candidate->isSubtypeOf(*type);
  }
  if (!sure && value.is_node() && value.node->is(Op::placeholder) && candidates.size() == 1 &&
      is_one_type(*candidates[0]) && raises_when(*node.output(), false)) {
    const std::string of = candidates[0]->annotation_str();
    value.node->meta().set(meta_key::kType, of);
    Node& asked = graph.call_function(python::kIsInstance, {Argument(*value.node), Argument::opaque(of)});
    return set(node, frame, AbstractValue::of_node(asked, c10::BoolType::get()));
  }
  if (!sure) refuse(node, frame, "the type of a value is known only while running; " + cure());
  set(node, frame, AbstractValue::of_constant(false));
}

// x is None, x is not None
void Importer::is_none(const JitNode& node, Frame& frame) {
  const bool negated = std::string_view(node.kind().toQualString()) == "aten::__isnot__";
  Values in = inputs_of(node, frame);
  if (in[0].is_none()) std::swap(in[0], in[1]);
  std::optional<bool> same;
  if (in[1].is_none()) {
    if (in[0].is_none())
      same = true;
    else if (!in[0].is_node())
      same = false;
    else if (in[0].type->kind() != c10::TypeKind::OptionalType && in[0].type->kind() != c10::TypeKind::AnyType)
      same = false;
  }
  if (same) return set(node, frame, AbstractValue::of_constant(*same != negated));
  if (!fold(node, frame)) emit(node, frame);
}

// The value is the same, its type is known better.
void Importer::pass_through(const JitNode& node, Frame& frame) {
  AbstractValue value = value_of(node.inputs()[0], frame);
  if (value.is_none() && node.output()->type()->kind() != c10::TypeKind::OptionalType &&
      node.output()->type()->kind() != c10::TypeKind::NoneType) {
    refuse(node, frame, "None is used where a value is needed");
  }
  if (value.is_node() && node.output()->type()->isSubtypeOf(*value.type)) value.type = node.output()->type();
  set(node, frame, std::move(value));
}

void Importer::uninitialized(const JitNode& node, Frame& frame) {
  AbstractValue value;
  value.type = node.output()->type();
  set(node, frame, std::move(value));
}

void Importer::ignore(const JitNode&, Frame&) {}

}  // namespace fx::torchscript
