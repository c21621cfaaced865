#include <fxgraph/rewriter/partition/pipeline_wiring.h>

#include <algorithm>

#include <fxgraph/ops/element.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx {
namespace {

[[noreturn]] void refuse_plan(const std::string& why) {
  throw Error(ErrorKind::invalid_argument, "the plan of the pipeline is wrong: " + why + "; make it anew");
}

bool is_element(const Node& node) {
  const std::optional<Element> taken = taken_element(node);
  return taken && taken->of->is(Op::call_module);
}

}  // namespace

// A stage that needs nothing of one before it may be called before that: the numbers count, not the order.
Pipeline::Wiring::Wiring(const PipelinePlan& plan) : graph_(parse_graph(plan.wiring)), stages_(plan.stages.size()) {
  for (const Node& node : graph_.nodes()) {
    if (node.is(Op::call_module)) {
      stage_called(node).call = &node;
    } else if (!is_element(node) && !node.is(Op::placeholder) && !node.is(Op::output)) {
      refuse_plan("%" + node.name() + " belongs to no stage");
    }
  }
  for (int at = 0; at < num_stages(); ++at) {
    Stage& stage = stages_[static_cast<std::size_t>(at)];
    if (!stage.call) refuse_plan("stage " + std::to_string(at) + " is not called");
    for (const Argument& argument : stage.call->args()) {
      const Node* value = argument.node_or_null();
      if (!value) refuse_plan("%" + stage.call->name() + " takes something that is no value");
      stage.inputs.push_back(value_of(*value));
      if (stage.inputs.back().index >= 0 && stage.inputs.back().stage >= at)
        refuse_plan("stage " + std::to_string(at) + " waits for one that does not come before it");
      need(at, stage.inputs.back());
    }
  }
  for (const Node& node : graph_.nodes()) {
    if (is_element(node)) stages_[static_cast<std::size_t>(value_of(node).stage)].tuple = true;
  }
  const Node* output = graph_.output_node();
  if (!output) refuse_plan("it returns nothing");
  output->for_each_input([&](const Node& value) { need(num_stages() - 1, value_of(value)); });
}

Pipeline::Wiring::Stage& Pipeline::Wiring::stage_called(const Node& call) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (call.target().str() != "stage_" + std::to_string(i)) continue;
    if (stages_[i].call) refuse_plan("stage " + std::to_string(i) + " is called twice");
    return stages_[i];
  }
  refuse_plan("%" + call.name() + " is none of its " + std::to_string(stages_.size()) + " stages");
}

WiredValue Pipeline::Wiring::value_of(const Node& node) const {
  if (node.is(Op::placeholder)) {
    const std::vector<Node*> inputs = graph_.placeholders();
    return {0, -1 - static_cast<int>(std::ranges::find(inputs, &node) - inputs.begin())};
  }
  const bool element = is_element(node);
  const Node* call = element ? node.arg(0).node_or_null() : &node;
  const auto stage = std::ranges::find(stages_, call, &Stage::call);
  if (stage == stages_.end()) refuse_plan("%" + node.name() + " belongs to no stage");
  return {static_cast<int>(stage - stages_.begin()), element ? static_cast<int>(node.arg(1).as_int()) : 0};
}

void Pipeline::Wiring::need(int to, const WiredValue& value) {
  if (value.stage == to) return;
  std::vector<WiredValue>& list = stages_[static_cast<std::size_t>(to)].needs[value.stage];
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

const std::vector<WiredValue>& Pipeline::Wiring::needs(int to, int from) const {
  static const std::vector<WiredValue> kNothing;
  const auto& needs = stages_[static_cast<std::size_t>(to)].needs;
  const auto found = needs.find(from);
  return found == needs.end() ? kNothing : found->second;
}

c10::IValue Pipeline::Wiring::output(const std::map<WiredValue, c10::IValue>& values) const {
  return to_ivalue(graph_.output_node()->arg(0), nullptr, [&](Node& node) { return values.at(value_of(node)); });
}

std::map<WiredValue, c10::IValue> Pipeline::Wiring::bind(const std::vector<c10::IValue>& inputs) const {
  const std::vector<Node*> parameters = graph_.placeholders();
  if (inputs.size() > parameters.size()) {
    throw Error(ErrorKind::invalid_argument, "the program takes " + std::to_string(parameters.size()) +
                                                 (parameters.size() == 1 ? " input, not " : " inputs, not ") +
                                                 std::to_string(inputs.size()));
  }
  std::map<WiredValue, c10::IValue> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i >= inputs.size() && parameters[i]->args().empty()) {
      throw Error(ErrorKind::invalid_argument, "the program needs the input '" + parameters[i]->target().str() + "'");
    }
    values[{0, -1 - static_cast<int>(i)}] = i < inputs.size() ? inputs[i] : to_ivalue(parameters[i]->arg(0));
  }
  return values;
}

}  // namespace fx
