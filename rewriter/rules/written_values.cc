#include <fxgraph/rewriter/rules/written_values.h>

#include <vector>

#include <fxgraph/module/module_effects.h>

namespace fx::rules {

// A write reaches what the written value may share storage with: back through views, and what only passes values on.
WrittenValues::WrittenValues(const GraphModule& module) {
  const ModuleEffects effects = module_effects(module);
  std::vector<const Node*> pending;
  for (const Node& node : module.graph().nodes()) {
    for_each_written(
        node, [&](const Argument& value) { for_each_node(value, [&](const Node& one) { pending.push_back(&one); }); },
        effects);
  }
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (!nodes_.insert(next).second) continue;
    if (next->is(Op::get_attr)) attributes_.insert(next->target().str());
    if (effects_of(*next, effects).may_alias) {
      next->for_each_input([&](const Node& input) { pending.push_back(&input); });
    }
  }
}

}  // namespace fx::rules
