#include <fxgraph/rewriter/quantize/list_lowering.h>

#include <utility>
#include <vector>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/quantize/backend_table.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/rewriter/quantize/reference.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx::quantize {

namespace {

/// `getitem(chunk(dequantize(x)), i)` that is quantized again: chunks of x.
class ListLowering {
 public:
  explicit ListLowering(Graph& graph) : rewriter_(graph) {}

  void run() {
    std::vector<Node*> nodes;
    for (Node& node : rewriter_.graph().nodes()) nodes.push_back(&node);
    for (Node* node : nodes) {
      if (makes_list(*node)) lower(*node);
    }
  }

 private:
  static bool makes_list(const Node& node) {
    const Call call = call_of(node);
    const Row* row = call ? row_of(call.schema().target.view()) : nullptr;
    return row && row->role == Role::share && call.schema().returns.size() == 1 && call.schema().returns[0].type.list;
  }

  static Node* sole_shared_quantize(const Node& element) {
    if (element.num_users() != 1) return nullptr;
    Node& user = *element.users().begin();
    const Meta* meta = user.find_meta();
    return user.is_call("aten::quantize_per_tensor") && meta && meta->get<bool>(meta_key::kShared) ? &user : nullptr;
  }

  void lower(Node& list) {
    const Call call = call_of(list);
    Node* floats = call.args().empty() ? nullptr : call.args()[0].node_or_null();
    if (!floats || !floats->is_call("aten::dequantize.self")) return;
    std::vector<std::pair<Node*, Node*>> elements;
    for (Node& user : list.users()) {
      Node* quantize = user.target() == python::kGetItem ? sole_shared_quantize(user) : nullptr;
      if (!quantize) return;
      elements.emplace_back(&user, quantize);
    }
    rewriter_.replace_input_with(list, *floats, floats->arg(0).node());
    for (const auto& [element, quantize] : elements) {
      element->meta().set(meta_key::kValue, element->name());
      rewriter_.replace_all_uses_with(*quantize, *element);
    }
  }

  Rewriter rewriter_;
};

}  // namespace

void lower_lists(Graph& graph) { ListLowering(graph).run(); }

}  // namespace fx::quantize
