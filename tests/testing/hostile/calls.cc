#include <fxgraph/testing/hostile/calls.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/arguments.h>
#include <fxgraph/testing/hostile/modules.h>
#include <fxgraph/testing/hostile/respell.h>
#include <fxgraph/testing/hostile/vocabulary.h>

namespace fx::hostile {

c10::IValue Calls::run(const Node& node) {
  const auto look_up = [&](Node& input) { return value_of(input); };
  CallValues call;
  for (const Argument& argument : node.args()) call.args.push_back(to_ivalue(argument, nullptr, look_up));
  for (const auto& [name, argument] : node.kwargs())
    call.kwargs.emplace_back(name, to_ivalue(argument, nullptr, look_up));
  if (node.is(Op::call_method)) return call_method_target(node.target(), call);
  if (node.is(Op::call_module)) return call_module(*modules_.at(node.target().str()), call.args.at(0).toTensor());
  return call_function_target(node.target(), call);
}

Node& Calls::place(Op op, Symbol target, const std::vector<Argument>& args, const std::vector<NamedArgument>& kwargs) {
  constexpr std::array kNames = {"", "", "", "", "", "", "x", "result"};
  Node& node = program_.graph.create_node(op, target, args, kwargs, random_.pick(kNames));
  made_.push_back(&node);
  const c10::IValue value = run(node);
  keep(node, value);
  if (!value.isTensorList() && !value.isTuple() && !value.isList()) return node;
  const std::size_t count = value.isTuple() ? value.toTupleRef().elements().size() : value.toListRef().size();
  for (std::size_t i = 0; i < count && i < 3; ++i) {
    if (!random_.chance(85)) continue;
    const std::int64_t index =
        static_cast<std::int64_t>(i) - (random_.chance(15) ? static_cast<std::int64_t>(count) : 0);
    Node& part = program_.graph.call_function(python::kGetItem, {node, index});
    made_.push_back(&part);
    keep(part, run(part));
  }
  return node;
}

/// What LibTorch 1.13 gets wrong by itself: a matrix product that goes where its operands lie, a result that is given
/// other sizes there, transposed convolutions of bfloat16, masked_scatter_ and index_put_ from what they write, and the
/// order that searchsorted is given, which it follows to wherever that leads. Of nothing it takes what it takes of
/// nothing else: a norm with the statistics of other channels, the softmax of whole numbers. And bytes that are neither
/// 0 nor 1 are no bool.
bool Calls::is_wrong_in_torch(const OperatorSchema& schema, const std::vector<Argument>& args,
                              const std::vector<NamedArgument>& kwargs) const {
  const auto any_operand = [&](const auto& test) {
    const auto passes = [&](const Argument& operand) {
      return operand.is_node() && value_of(operand.node()).isTensor() && test(tensor_of(operand.node()));
    };
    return std::ranges::any_of(args, passes) || std::ranges::any_of(kwargs, [&](const NamedArgument& named) {
             return named.name != Symbol("out") && passes(named.value);
           });
  };
  if (schema.target.view().starts_with("aten::conv_transpose"))
    return any_operand([](const at::Tensor& operand) { return operand.scalar_type() == at::kBFloat16; });
  if (schema.target.view().starts_with("aten::batch_norm"))
    return any_operand([](const at::Tensor& operand) { return operand.numel() == 0; });
  if (schema.target.view().starts_with("aten::softmax") || schema.target.view().starts_with("aten::log_softmax"))
    return any_operand([](const at::Tensor& operand) { return !operand.is_floating_point(); });
  if (schema.target == "aten::view.dtype")
    return std::ranges::any_of(args, [](const Argument& operand) { return operand == Argument(DType::boolean); });
  if (schema.target == "aten::masked_scatter_" || schema.target == "aten::index_put_")
    return args.size() > 2 && args[0].is_node() && args[2].is_node() &&
           tensor_of(args[0].node()).storage().data() == tensor_of(args[2].node()).storage().data();
  if (schema.target.view().starts_with("aten::searchsorted"))
    return std::ranges::any_of(kwargs, [](const NamedArgument& named) { return named.name == Symbol("sorter"); });
  // What it writes is negated where it stands, and read as it was or is.
  const bool writes_first = !schema.arguments.empty() && schema.arguments[0].alias.writes;
  if (writes_first && !args.empty() && args[0].is_node() && value_of(args[0].node()).isTensor()) {
    const at::Tensor& written = tensor_of(args[0].node());
    const auto shares = [&](const Argument& operand) {
      return operand.is_node() && value_of(operand.node()).isTensor() &&
             tensor_of(operand.node()).storage().data() == written.storage().data();
    };
    if ((written.is_neg() || written.is_conj()) && std::ranges::any_of(args.begin() + 1, args.end(), shares))
      return true;
  }
  const auto out = std::ranges::find(kwargs, Symbol("out"), &NamedArgument::name);
  if (out == kwargs.end() || !out->value.is_node()) return false;
  const at::Tensor& result = tensor_of(out->value.node());
  const bool product = schema.target == "aten::matmul.out";
  return any_operand([&](const at::Tensor& operand) {
    return operand.storage().data() == result.storage().data() &&
           (product || operand.sizes() != result.sizes() || result.is_neg() || result.is_conj());
  });
}

Node& Calls::place(const OperatorSchema& schema, std::vector<Argument> args, std::vector<NamedArgument> kwargs) {
  if (is_wrong_in_torch(schema, args, kwargs)) throw NoSuchCall();
  // LibTorch does not survive a number that stands for no type.
  for (std::size_t i = 0; i < args.size() && i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].type.base != SchemaType::Base::dtype) continue;
    if (!args[i].is_none() && args[i].kind() != ArgumentKind::dtype) throw NoSuchCall();
  }
  Spelling call{Op::call_function, schema.target.str(), std::move(args), std::move(kwargs)};
  if (options_.spellings && random_.chance(40)) call = respell(random_, schema, std::move(call));
  return place(call.op, call.target, call.args, call.kwargs);
}

void Calls::operation(std::string_view target, unsigned optional_percent) {
  const OperatorSchema* schema = find_overload(target);
  if (!schema) throw NoSuchCall();
  const ValueSource source{
      .tensor = [&](const SchemaArgument& parameter, const at::Tensor& first) { return value_for(parameter, first); },
      .value_of = [&](const Node& node) { return tensor_of(node); },
      .number = [&]() -> Node* { return numbers_.empty() ? nullptr : random_.pick(numbers_); },
      .integer = [&](std::int64_t value) { return number_that_is(value); }};
  auto call = draw_call(random_, *schema, source, {.optional_percent = optional_percent, .numbers = program_.numbers});
  if (!call) throw NoSuchCall();
  place(*schema, std::move(call->args), std::move(call->kwargs));
}

void Calls::arithmetic() {
  static const std::array<Symbol, 5> kOperators = {python::kAdd, python::kMul, python::kSub, python::kFloorDiv,
                                                   "aten::size.int"};
  const Symbol target = random_.pick(kOperators);
  if (target == kOperators.back() || numbers_.empty()) return operation("aten::size.int");
  const Argument other = random_.chance(50) ? Argument(random_.pick(numbers_)) : Argument(random_.between(1, 3));
  place(Op::call_function, target, {Argument(random_.pick(numbers_)), other});
}

Argument Calls::draw_index(bool in_tuple) {
  const auto bound = [&]() -> Argument { return random_.chance(40) ? Argument() : Argument(random_.between(-2, 2)); };
  switch (random_.below(in_tuple ? 7 : 10)) {
    case 0:
    case 1: return Argument(random_.between(-1, 1));
    case 2: return Argument::slice(bound(), bound());
    case 3: return Argument::slice(bound(), bound(), random_.chance(30) ? Argument(2) : Argument());
    case 4: return Argument();  // a new dimension
    case 5: {
      if (Node* number = numbers_.empty() || random_.chance(50) ? nullptr : random_.pick(numbers_))
        return Argument(number);
      return Argument::slice(Argument(), Argument());
    }
    case 6: {  // a mask, indices, or what throws
      Node* node = pick();
      if (tensor_of(*node).scalar_type() != at::kBool && tensor_of(*node).scalar_type() != at::kLong)
        return Argument(0);
      // Saved forms have aten::index alone, which takes no mask without dimensions.
      if (options_.odd_percent > 0 && tensor_of(*node).dim() == 0) return Argument(0);
      return Argument(node);
    }
    case 7: return Argument::ellipsis();
    default: {
      std::vector<Argument> parts;
      for (std::size_t i = 1 + random_.below(2); i > 0; --i) parts.push_back(draw_index(true));
      if (random_.chance(40))
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(random_.below(parts.size() + 1)),
                     Argument::ellipsis());
      return Argument::tuple(parts);
    }
  }
}

void Calls::index() {
  if (pool_.empty()) throw NoSuchCall();
  place(Op::call_function, python::kGetItem, {pick(), draw_index()});
}

void Calls::write() {
  switch (random_.below(12)) {
    case 0: {  // x[i] = y
      if (pool_.empty()) return;
      Node *x = pick(), *y = pick();
      const Argument index = draw_index();
      place(Op::call_function, python::kSetItem,
            {x, index, random_.chance(50) ? Argument(y) : draw_literal(random_, program_.numbers)});
      return;
    }
    case 1: {  // a view is written
      constexpr std::array kViews = {"aten::select.int", "aten::slice.Tensor", "aten::view",      "aten::t",
                                     "aten::detach",     "aten::squeeze",      "aten::unsqueeze", "aten::expand"};
      for (std::size_t depth = 1 + random_.below(3); depth > 0;
           --depth) {  // late values are mostly taken: views of views
        if (random_.chance(30)) {
          index();
        } else {
          operation(random_.pick(kViews));
        }
      }
      Node& view = *made_.back();
      place(Op::call_function, random_.chance(50) ? "aten::mul_.Scalar" : "aten::add_.Scalar", {view, 2});
      return;
    }
    case 2: {  // a weight is written
      if (program_.weights.empty()) return;
      Node* again_node = again(program_.weights[random_.below(program_.weights.size())]);
      place(Op::call_function, random_.chance(50) ? "aten::neg_" : "aten::exp_", {again_node});
      return;
    }
    default: {
      const auto operators = writing_operators();
      operation(random_.pick(operators));
    }
  }
}

}  // namespace fx::hostile
