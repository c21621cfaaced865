// Products in bfloat16, which takes half the memory and, on processors that multiply it, half the time:
//
//   linear(x, w, b)  ->  _to_copy(linear(_to_copy(x, bfloat16), _to_copy(w, bfloat16), …), float32)
//
// What is no product (norms, softmax, sums of residuals, what the program returns) stays float32, as under autocast.
// Casts are copies and never views, so nobody's writes go astray. `bfloat16-casts` then moves those to float32 behind
// what gives the same numbers in either type, until they meet one to bfloat16 and both go.
//
// LibTorch 1.13's transposed convolutions of bfloat16 take their weights for those of others, and are left alone.
#include <fxgraph/rewriter/rules/rules.h>

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules::precision_bfloat16 {

namespace {

// ── Products ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A call that multiplies: its arguments by position, those that are nodes being tensors.
struct Product {
  const char* operation;
  const char* arguments;
  std::array<const char*, 7> names;  ///< of the arguments; null at the end
  std::vector<std::string> examples;
};

Node& cast(Rewriter& r, const Argument& value, DType to) {
  return r.call_function("aten::_to_copy", std::vector<Argument>{value}, std::vector<NamedArgument>{{"dtype", to}});
}

Decision fits(const Match& match) {
  for (const auto& [name, value] : match.bindings()) {
    if (!value.is_node() || match.contains(value.node())) continue;
    const TensorFacts info = match.info(name.view());
    if (!info) return refuse("the types of what it multiplies are not known; give --input");
    if (!is_on_cpu(info, DType::float32)) return refuse("it is not float32 on the CPU");
    if (info.example().numel() == 0) return refuse("what it multiplies is empty");
  }
  return true;
}

Rewrite rewrite_of(const Product& product) {
  const auto replacement = [product](const Match& m, Rewriter& r) -> Node& {
    std::vector<Argument> args;
    for (const char* name : product.names) {
      if (!name) break;
      const Argument argument = m.argument(name);
      args.push_back(argument.is_node() ? Argument(cast(r, argument, DType::bfloat16)) : argument);
    }
    return cast(r, r.call_function(std::string("aten::") + product.operation, args), DType::float32);
  };
  return {.name = product.operation,
          .pattern = std::string("aten::") + product.operation + ".default" + product.arguments,
          .when = fits,
          .replacement = replacement,
          .needs = {.finite_inputs = true},
          .examples = product.examples};
}

std::vector<Rewrite> rewrites_of(const std::vector<Product>& products) {
  std::vector<Rewrite> rewrites;
  for (const Product& product : products) rewrites.push_back(rewrite_of(product));
  return rewrites;
}

std::vector<Rewrite> convolutions() {
  constexpr const char* kArguments =
      "(x: node, w: node, maybe(b: node), stride: literal, padding: literal, dilation: literal, groups: int)";
  constexpr std::array<const char*, 7> kNames = {"x", "w", "b", "stride", "padding", "dilation", "groups"};
  const auto examples = [](const std::string& name, const std::string& geometry) {
    const std::string call = "aten::" + name + "(x, w";
    return std::vector<std::string>{call + ", b)", call + ")", call + ", None, " + geometry + ")"};
  };
  return rewrites_of({{"conv1d", kArguments, kNames, examples("conv1d", "[2], [1], [1], 1")},
                      {"conv2d", kArguments, kNames, examples("conv2d", "[2, 1], [1, 2], [1, 1], 1")},
                      {"conv3d", kArguments, kNames, examples("conv3d", "[1, 2, 1], [1, 1, 1], [1, 1, 1], 1")}});
}

std::vector<Rewrite> matrix_products() {
  return rewrites_of({
      {"linear",
       "(x: node, w: node, maybe(b: node))",
       {"x", "w", "b"},
       {"aten::linear(x, w, b)", "aten::linear(x, w)"}},
      {"matmul", "(x: node, other: node)", {"x", "other"}, {"aten::matmul(x, other)"}},
      {"mm", "(x: node, other: node)", {"x", "other"}, {"aten::mm(x, other)"}},
      {"bmm", "(x: node, other: node)", {"x", "other"}, {"aten::bmm(x, other)"}},
  });
}

// ── Casts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// Each element of their results is one of their operand's, or a number among their arguments that bfloat16 has, chosen
// by comparisons that rounding leaves as they are. With a kernel for bfloat16 in LibTorch 1.13.
constexpr auto kChooses = std::to_array<std::string_view>(
    {"aten::abs", "aten::cat", "aten::clamp", "aten::clamp_max", "aten::clamp_min", "aten::clone",
     "aten::constant_pad_nd", "aten::hardtanh", "aten::max_pool1d", "aten::max_pool2d", "aten::maximum",
     "aten::minimum", "aten::neg", "aten::relu", "aten::relu6", "aten::stack", "aten::upsample_nearest2d"});

// Views of their operand, or copies of it.
constexpr auto kViews = std::to_array<std::string_view>(
    {"aten::contiguous", "aten::expand", "aten::flatten", "aten::permute", "aten::reshape", "aten::select",
     "aten::slice", "aten::squeeze", "aten::t", "aten::transpose", "aten::unsqueeze", "aten::view"});

/// What the call casts to `type`, or null.
Node* cast_to(const Node& node, DType type) {
  if (!node.is_call("aten::_to_copy") || node.args().size() != 1 || node.kwargs().size() != 1) return nullptr;
  const Call call = call_of(node);
  const Argument* to = call.argument("dtype");
  return to && *to == Argument(type) ? node.arg(0).node_or_null() : nullptr;
}

class Casts {
 public:
  explicit Casts(RuleContext& program)
      : program_(program), graph_(program.module.graph()), written_(program.module), rounded_(graph_, false) {}

  PassResult run() {
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes()) nodes.push_back(&node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) rounded_[**node] = is_only_rounded(**node);
    for (Node* node : nodes) {
      if (written_.is_written(*node)) continue;
      if (calls(kChooses, *node) || (calls(kViews, *node) && rounded_[*node])) move_behind(*node);
      drop(*node);
    }
    PassResult result;
    result.applied = done_;
    return result;
  }

 private:
  /// Of the functional operators of these packets: `out=` writes.
  static bool calls(std::span<const std::string_view> packets, const Node& node) {
    const Call call = call_of(node);
    return call && !call.schema().traits.writes && is_one_of(packets, operator_name(call.schema()));
  }

  /// True when nothing reads the value but casts to bfloat16, through views of it. Back to front: users are known.
  bool is_only_rounded(const Node& node) const {
    for (const Node& user : node.users()) {
      if (!cast_to(user, DType::bfloat16) && !(calls(kViews, user) && rounded_[user])) return false;
    }
    return node.has_users();
  }

  /// The value in bfloat16 of which this is the copy in float32, when nobody writes to either; or null.
  Node* unrounded(const Node& value) const {
    Node* source = cast_to(value, DType::float32);
    const TensorFacts info = source ? program_.values.info(*source, asked_) : TensorFacts();
    const bool fits =
        info && !written_.is_written(value) && !written_.is_written(*source) && info.is_of({DType::bfloat16});
    return fits ? source : nullptr;
  }

  bool may_go_by_asked() { return program_.values.require(program_.rule.name, asked_.facts()).empty(); }

  /// True for all but numbers that bfloat16 rounds.
  static bool has_bfloat16(const Argument& argument) {
    if (!argument.is_int() && !argument.is_float()) return true;
    const double number = argument.is_int() ? static_cast<double>(argument.as_int()) : argument.as_float();
    return std::isinf(number) ||
           static_cast<double>(static_cast<float>(c10::BFloat16(static_cast<float>(number)))) == number;
  }

  static bool rounds_its_numbers(const Call& call) {
    for (const Argument& argument : call.args()) {
      if (!has_bfloat16(argument)) return true;
    }
    for (const auto& [name, argument] : call.kwargs()) {
      if (!has_bfloat16(argument)) return true;
    }
    return false;
  }

  /// op(_to_copy(y, float32), …) -> _to_copy(op(y, …), float32).
  void move_behind(Node& node) {
    asked_.clear();
    const TensorFacts result = program_.values.info(node, asked_);
    if (!result || !result.is_of({DType::float32})) return;
    const bool is_view = calls(kViews, node);
    if (!is_view && rounds_its_numbers(call_of(node))) return;
    std::vector<std::pair<Node*, Node*>> moves;  // the copy in float32, what it is of
    for (Node* input : node.all_input_nodes()) {
      if (!program_.values.example(*input) && is_view) continue;  // a size
      Node* source = unrounded(*input);
      if (!source) return;
      moves.emplace_back(input, source);
    }
    if (moves.empty() || !may_go_by_asked()) return;
    Rewriter& rewriter = program_.rewriter;
    const std::vector<Node*> users = node.users().to_vector();
    for (const auto& [old, source] : moves) {
      rewriter.replace_input_with(node, *old, *source);
      if (!old->has_users()) rewriter.erase_node(*old);
    }
    const auto scope = rewriter.inserting_after(node);
    Node& back = cast(rewriter, node, DType::float32);
    for (Node* user : users) rewriter.replace_input_with(*user, node, back);
    program_.values.stands_for(back, node);
    program_.values.set_type(back, DType::float32);
    program_.values.set_type(node, DType::bfloat16);
    ++done_;
  }

  /// _to_copy(_to_copy(y, float32), bfloat16) -> y, for those who only read it.
  void drop(Node& node) {
    asked_.clear();
    Node* value = cast_to(node, DType::bfloat16);
    Node* source = value ? unrounded(*value) : nullptr;
    if (!source) return;
    for (const Node& user : node.users()) {
      if (user.is(Op::output) || effects_of(user).may_alias || effects_of(user).impure()) return;
    }
    if (!may_go_by_asked()) return;
    Rewriter& rewriter = program_.rewriter;
    rewriter.replace_all_uses_with(node, *source);
    rewriter.erase_node(node);
    if (!value->has_users()) rewriter.erase_node(*value);
    ++done_;
  }

  RuleContext& program_;
  Graph& graph_;
  mutable ProgramEffects written_;  // remembers its answers
  NodeMap<bool> rounded_;
  mutable FactLog asked_;  // of the place at hand
  std::size_t done_ = 0;
};

PassResult move_casts(RuleContext& program) { return Casts(program).run(); }

constexpr std::string_view kPreconditions =
    "types known (--input); float32 on the CPU; weights are attributes that nothing writes; inference: no gradients; "
    "results of seven to eight binary digits will do";

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "bfloat16-convolution",
          .summary = "Convolutions multiply bfloat16 where that was measured to be faster, casts included",
          .preconditions = kPreconditions,
          .order = 502,
          .group = Group::precision,
          .promise = Promise::lower_precision,
          .rewrites = convolutions,
          .pass = apply_fastest_to_images,
      },
      {
          .name = "bfloat16-matmul",
          .summary = "Linear layers and products of matrices multiply bfloat16 where that was measured to be faster",
          .preconditions = kPreconditions,
          .order = 503,
          .group = Group::precision,
          .promise = Promise::lower_precision,
          .rewrites = matrix_products,
          .pass = apply_fastest,
      },
      {
          .name = "bfloat16-casts",
          .summary =
              "Casts to float32 move behind what chooses, moves or compares numbers, and go where one to bfloat16 "
              "follows",
          .preconditions = "types known (--input); values that nothing writes",
          .order = 504,
          .group = Group::precision,
          .promise = Promise::bit_exact,
          .pass = move_casts,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::precision_bfloat16
