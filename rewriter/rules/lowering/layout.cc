// Channels last from operator to operator: reorders stand only where an island of operators that keep the layout ends.
//
// Lowered convolutions take contiguous(x, channels_last) and give contiguous(y) back. Front to back, every
// contiguous(y) moves behind the operators that compute the same on any strides and keep them:
//
//   relu(contiguous(y))                ->  contiguous(relu(y))
//   contiguous(contiguous(y), channels_last)  ->  contiguous(y, channels_last), which costs nothing when it runs
//
// Where what a convolution takes has strides of its own, it is given none (drop_own_strides, packed_calls.h).
//
// Each step keeps all values, and the strides of all values that others see. Values that are written stay where they
// are.
#include <fxgraph/rewriter/program/passes.h>
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules::lowering_layout {

namespace {

class ChannelsLast {
 public:
  explicit ChannelsLast(RuleContext& program)
      : program_(program), graph_(program.module.graph()), written_(program.module), keeps_(graph_, false) {}

  PassResult run() {
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes()) nodes.push_back(&node);
    for (Node* node : nodes) visit(*node);
    moved_ += drop_own_strides(program_.module, program_.rewriter, false);
    PassResult result;
    result.applied = moved_;
    if (moved_ == 0) return result;
    eliminate_common_subexpressions(program_.module);
    eliminate_dead_code(program_.module);
    return result;
  }

 private:
  void visit(Node& node) {
    if (is_packed_convolution(node)) {
      keeps_[node] = true;
    } else if (is_channels_last_call(node) || has_flag(operator_of(node), OperatorFlag::reads_any_layout)) {
      const Call call = call_of(node);
      const Argument* read = call.argument("self");
      if (Node* source = read ? restored(*read) : nullptr) take(node, read->node(), *source);
    } else if (has_flag(operator_of(node), OperatorFlag::keeps_channels_last)) {
      move_behind(node);
    }
  }

  /// y, when the argument is contiguous(y) of a y with channels last and nobody writes to either.
  Node* restored(const Argument& argument) const {
    const Node* value = argument.node_or_null();
    if (!value || !is_plain_contiguous(*value)) return nullptr;
    const Call call = call_of(*value);
    const Argument* made_contiguous = call.argument("self");
    Node* source = made_contiguous ? made_contiguous->node_or_null() : nullptr;
    const bool fits = source && keeps_[*source] && !written_.is_written(*value) && !written_.is_written(*source);
    return fits ? source : nullptr;
  }

  void take(Node& node, Node& old, Node& source) {
    program_.rewriter.replace_input_with(node, old, source);
    ++moved_;
  }

  const TensorInfo* info(const Node& node) const { return program_.values.example(node); }

  /// Fits on both sides of a reorder: its channels stand alone.
  bool is_small(const Node& node) const {
    const TensorInfo* known = info(node);
    if (!known) return false;
    const std::vector<std::int64_t>& sizes = known->sizes;
    return known->numel() == 1 || sizes.size() <= 1 || (sizes.size() == 4 && sizes[2] == 1 && sizes[3] == 1);
  }

  /// op(contiguous(y), …) -> contiguous(op(y, …)).
  void move_behind(Node& node) {
    const TensorInfo* result = info(node);
    if (!result || result->sizes.size() != 4 || written_.is_written(node)) return;
    if (operator_of(node) == "aten::batch_norm" && !evaluates(node)) return;
    std::vector<std::pair<Node*, Node*>> moves;  // contiguous(y), y
    std::vector<Node*> others;
    std::int64_t kept = 0, converted = 0;
    for (Node* input : node.all_input_nodes()) {
      const TensorInfo* known = info(*input);
      if (Node* source = restored(Argument(*input)); source && known) {
        moves.emplace_back(input, source);
        kept += known->numel();
      } else if (!is_small(*input) && !input->is(Op::get_attr)) {
        if (!known || known->sizes.size() != 4) return;
        others.push_back(input);
        converted += known->numel();
      } else if (input->is(Op::get_attr) && known && known->sizes.size() == 4 && !is_small(*input)) {
        return;
      }
    }
    if (moves.empty() || converted > kept) return;
    FactLog asked;  // only images have channels last
    for (const Node* other : others) program_.values.info(*other, asked).rank();
    if (!program_.values.require(program_.rule.name, asked.facts()).empty()) return;
    Rewriter& rewriter = program_.rewriter;
    for (const auto& [old, source] : moves) take(node, *old, *source);
    for (Node* other : others) {
      const auto scope = rewriter.inserting_before(node);
      Node& last = rewriter.call_function("aten::contiguous", std::vector<Argument>{other}, channels_last_kwargs());
      rewriter.replace_input_with(node, *other, last);
    }
    Node* const value = wants_contiguous(node) ? &on_pixels(node, *moves[0].second) : &node;
    const std::vector<Node*> users = value->users().to_vector();
    const auto scope = rewriter.inserting_after(*value);
    Node& back = rewriter.call_function("aten::contiguous", std::vector<Argument>{*value});
    for (Node* user : users) rewriter.replace_input_with(*user, *value, back);
    program_.values.stands_for(back, node);
    if (value != &node) {
      program_.values.stands_for(*value, node);
      program_.values.forget(node);  // its dimensions are in another order now
    }
    keeps_[*value] = true;
  }

  /// LibTorch 1.13 has a kernel for contiguous values that is five times as fast.
  static bool wants_contiguous(const Node& node) { return operator_of(node) == "aten::gelu"; }

  /// op(y) -> permute(op(permute(y))): contiguous between the two, which are views. Returns what stands for op(y).
  Node& on_pixels(Node& node, Node& source) {
    {
      const auto scope = program_.rewriter.inserting_before(node);
      program_.rewriter.replace_input_with(node, source, as_pixels(program_.rewriter, source));
    }
    const std::vector<Node*> users = node.users().to_vector();
    const auto scope = program_.rewriter.inserting_after(node);
    Node& image = as_image(program_.rewriter, node);
    for (Node* user : users) program_.rewriter.replace_input_with(*user, node, image);
    return image;
  }

  static bool evaluates(const Node& norm) {
    const Call call = call_of(norm);
    const Argument* training = call.argument("training");
    return training && training->is_bool() && !training->as_bool();
  }

  RuleContext& program_;
  Graph& graph_;
  ProgramEffects written_;
  NodeMap<bool> keeps_;  // channels last, and dense
  std::size_t moved_ = 0;
};

PassResult channels_last_islands(RuleContext& program) { return ChannelsLast(program).run(); }

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "channels-last",
          .summary = "Reorders between lowered convolutions move behind what computes the same on any strides, and go",
          .preconditions = "shapes known (--input); values of four dimensions that nothing writes",
          .order = 560,
          .group = Group::lowering,
          .promise = Promise::reassociates,
          .pass = channels_last_islands,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_layout
