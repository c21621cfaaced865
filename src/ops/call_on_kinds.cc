#include <fxgraph/ops/call_on_kinds.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/python_target.h>

namespace fx::internal {

CallOnKinds::CallOnKinds(const Node& node, const std::function<std::string(const Node&)>& kind_of) {
  NodeMap<Argument> inputs(node.graph());
  for (const Node* input : node.all_input_nodes()) inputs[*input] = add_input(kind_of(*input));
  node_ = &graph_.node_copy(node, [&](Node& input) { return inputs[input]; });
}

Argument CallOnKinds::add_input(std::string kind) {
  const std::size_t number = num_inputs_++;
  if (kind == "None") return {};
  Node& input = graph_.placeholder("value");
  if (!kind.empty()) input.meta().set(meta_key::kType, std::move(kind));
  numbers_[input] = number;
  return input;
}

void CallOnKinds::set_call(Op op, Symbol target, const std::vector<Argument>& args,
                           const std::vector<NamedArgument>& kwargs) {
  if (!node_) {
    node_ = &graph_.create_node(op, target, args, kwargs);
  } else {
    node_->set_target(op, target);
    node_->set_args_kwargs(args, kwargs);
  }
}

const Call& CallOnKinds::resolve() {
  call_ = call_of(*node_);
  // All kinds are known: what wants another one fits none.
  if (call_ && conversion_cost(call_.schema(), call_.args(), call_.kwargs()).wrong) call_ = {};
  return call_;
}

const Call& CallOnKinds::resolve_forced() {
  const Op op = node_->op();
  const Symbol target = node_->target();
  const PythonTarget& known = python_target(op, target);
  // Of numbers alone LibTorch makes tensors, or rounds.
  const auto is_number = [](const Argument& argument) { return is_number_type(argument_type(argument)); };
  if (known.op && std::ranges::all_of(node_->args(), is_number)) return call_;
  std::vector<Symbol> packets = {known.packet};
  if (known.op) packets = {Symbol(known.op->packet), Symbol(known.op->numbers)};
  for (const PythonRow& row : known.rows) {
    if (row.same_arguments) packets.push_back(row.target);
  }
  for (const Symbol packet : packets) {
    if (packet.empty()) continue;
    node_->set_target(Op::call_function, packet);
    if (resolve() && std::ranges::find(known.candidates, &call_.schema()) != known.candidates.end()) return call_;
  }
  node_->set_target(op, target);
  call_ = {};
  return call_;
}

std::string CallOnKinds::refusal() const {
  std::string kinds, twice;
  const auto add = [&](const Argument& argument, const std::string& before) {
    const Node* node = argument.node_or_null();
    const Meta* meta = node ? node->find_meta() : nullptr;
    const std::string* kind = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    kinds += (kinds.empty() ? "" : ", ") + before + (kind ? *kind : node ? "?" : to_string(argument));
  };
  for (const Argument& argument : node_->args()) add(argument, "");
  for (const auto& [name, value] : node_->kwargs()) {
    add(value, name.str() + "=");
    std::string why;
    for (const OperatorSchema* schema : candidate_overloads(node_->op(), node_->target())) {
      why = check_call(*schema, node_->args(), node_->kwargs()).value_or("");
      if (why.ends_with("' twice")) twice = "; " + why.substr(why.find("argument '"));
    }
  }
  return "no overload of " + node_->target().str() + " takes these arguments: (" + kinds + ")" + twice;
}

}  // namespace fx::internal
