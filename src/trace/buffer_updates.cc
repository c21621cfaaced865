// What a traced program puts in the place of its buffers is written to them.
#include <fxgraph/trace/tracer.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/session.h>

namespace fx {
namespace {

using internal::Session;

// Whether what `value` stands for may lie in the memory of the attribute.
bool may_lie_in(const Node& value, const std::string& attribute) {
  std::vector<const Node*> open = {&value};
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->is(Op::get_attr) && node->target().view() == attribute) return true;
    const Call call = call_of(*node);
    if (call && !call.schema().traits.view && !call.schema().traits.writes &&
        std::ranges::none_of(call.schema().arguments, &SchemaArgument::hidden_alias))
      continue;
    for (const Node* input : node->all_input_nodes()) open.push_back(input);
  }
  return false;
}

// The nodes that do more than find what is to be written: what is returned, or written meanwhile, needs them.
NodeMap<char> needed_beside_updates(const Graph& graph) {
  NodeMap<char> needed(graph, 0);
  std::vector<const Node*> open;
  const auto need = [&](const Node& node) {
    if (std::exchange(needed[node], 1) == 0) open.push_back(&node);
  };
  for (const Node& node : graph.nodes()) {
    const Call call = call_of(node);
    if (node.is(Op::output) || (call && call.schema().traits.writes)) need(node);
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* input : node->all_input_nodes()) need(*input);
  }
  return needed;
}

// LibTorch refuses a backward pass that needs what a buffer held, when it has been written since: `y = x / s` and then
// a new s.
void keep_for_backward(Session& session, Graph& graph, const std::vector<internal::BufferUpdate>& updates) {
  static const Symbol kClone("aten::clone");
  const NodeMap<char> needed = needed_beside_updates(graph);
  for (const internal::BufferUpdate& update : updates) {
    const internal::CapturedTensor& buffer = *internal::captured_at(session, Symbol(update.attribute));
    // What is written in place, too, LibTorch refuses in C++ as well.
    if (!internal::may_have_gradient(buffer.tensor.scalar_type()) || buffer.node != buffer.attribute) continue;
    for (Node* attribute : graph.find_nodes(Op::get_attr, Symbol(update.attribute))) {
      std::vector<Node*> readers;
      for (Node& user : attribute->users()) {
        if (needed[user] != 0) readers.push_back(&user);
      }
      if (readers.empty()) continue;
      const auto at = graph.inserting_after(*attribute);
      Node& copy = session.create_node(Op::call_function, kClone, {Argument(attribute)});
      session.copy_value(*attribute, copy);
      for (Node* reader : readers) reader->replace_input_with(*attribute, copy);
    }
  }
}

}  // namespace

// What the program replaces in its buffers is written to them when everything else has been done. Whoever gets what was
// in one gets it as it was, and so does the backward pass.
void Tracer::write_buffers(Session& session, const std::vector<internal::BufferUpdate>& updates) {
  static const Symbol kCopy("aten::copy_"), kClone("aten::clone");
  Node& output = *graph_->output_node();
  const auto lies_in_a_buffer = [&](const Node& value) {
    return std::any_of(updates.begin(), updates.end(),
                       [&](const internal::BufferUpdate& update) { return may_lie_in(value, update.attribute); });
  };
  const auto as_it_was = [&](Node& value) {
    if (!lies_in_a_buffer(value)) return Argument(value);
    const auto at = graph_->inserting_before(output);
    Node& copy = session.create_node(Op::call_function, kClone, {Argument(value)});
    session.copy_value(value, copy);
    return Argument(copy);
  };
  if (!output.args().empty()) {
    const Argument result = map_nodes(output.arg(0), as_it_was);
    if (!(result == output.arg(0))) output.set_args(ArgumentSpan(&result, 1, sizeof(Argument)));
  }
  keep_for_backward(session, *graph_, updates);
  // What is to be written may lie in a buffer that is written before.
  std::vector<Argument> values;
  for (const internal::BufferUpdate& update : updates) values.push_back(as_it_was(*update.value));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto at = graph_->inserting_before(output);
    const internal::CapturedTensor* buffer = internal::captured_at(session, Symbol(updates[i].attribute));
    session.create_node(Op::call_function, kCopy, {session.argument_for(buffer->tensor), values[i]});
  }
}

}  // namespace fx
