#include <fxgraph/rewriter/rules/packed_checks.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rules/input_forms.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/size_bounds.h>
#include <fxgraph/run/value.h>

namespace fx::rules {

namespace {

constexpr std::string_view kReason = "with packed weights takes nothing else";

bool checks_nothing(const Node& call) { return is_packed_convolution(call) || is_xnnpack_linear(call); }

/// Where the image of a packed call comes from: before it is laid out and its dimensions are moved.
struct Source {
  Node* value = nullptr;
  Node* first = nullptr;                                       ///< what reads it: assertions stand before that
  std::array<std::optional<std::size_t>, 4> dims{0, 1, 2, 3};  ///< of the image in the value; nothing: it was put there
  std::size_t rank = 4;
  bool moved = false;  ///< rows of a linear layer, say, and no image
};

/// Steps over one operator; false when there is none to step over.
bool step(Source& source) {
  const Call call = call_of(*source.value);
  Node* input = call.args().empty() ? nullptr : call.args()[0].node_or_null();
  if (!input) return false;
  const Symbol target = call.schema().target;
  if (target == "aten::view_as") {
    input = call.args().size() > 1 ? call.args()[1].node_or_null() : nullptr;
    if (!input) return false;
  } else if (target == "aten::permute") {
    const Argument* dims = call.argument("dims");
    if (!dims || dims->elements().size() != source.rank) return false;
    for (const Argument& dim : dims->elements()) {
      if (!dim.is_int() || dim.as_int() < 0) return false;
    }
    for (auto& dim : source.dims) {
      if (dim) dim = static_cast<std::size_t>(dims->elements()[*dim].as_int());
    }
  } else if (target == "aten::unsqueeze") {
    const Argument* at = call.argument("dim");
    if (!at || !at->is_int() || at->as_int() < 0) return false;
    const auto put = static_cast<std::size_t>(at->as_int());
    for (auto& dim : source.dims) {
      if (dim && *dim == put) {
        dim.reset();
      } else if (dim && *dim > put) {
        --*dim;
      }
    }
    --source.rank;
  } else if (target != "aten::contiguous") {
    return false;
  }
  source.first = source.value;
  source.value = input;
  return true;
}

Source source_of(Node& call) {
  Source source;
  source.value = &call.arg(0).node();
  source.first = &call;
  while (step(source)) {
  }
  constexpr std::array<std::optional<std::size_t>, 4> kStraight{0, 1, 2, 3};
  source.moved = source.dims != kStraight;
  return source;
}

class PackedChecks {
 public:
  explicit PackedChecks(GraphModule& module) : module_(module), rewriter_(module.graph()), bounds_(module) {}

  std::size_t run() {
    std::vector<Node*> nodes;
    for (Node& node : rewriter_.graph().nodes()) nodes.push_back(&node);
    for (Node* node : nodes) {
      if (is_packed_convolution(*node)) check(*node);
      if (is_xnnpack_linear(*node)) check_linear(*node);
      bounds_.visit(*node);
    }
    return made_;
  }

 private:
  void check(Node& call) {
    const auto convolution = bounds_.convolution(call);
    if (!convolution || !call.arg(0).is_node()) return;
    const Source source = source_of(call);
    const auto scope = rewriter_.inserting_before(*source.first);
    if (!bounds_[*source.value]) {
      const auto rank = static_cast<std::int64_t>(source.rank);
      Node& dims = rewriter_.call_function("aten::dim", {*source.value});
      assert_that(python::kEqual, dims, rank, call, *source.value, "be of " + std::to_string(rank) + " dimensions");
      bounds_.learn_rank(*source.value, source.rank);
    }
    const Extents known = bounds_[*source.value];  // nothing where sizes change while the program runs
    const auto is_known = [&](std::size_t dim, const Extent& wanted) {
      const bool has = known && dim < known->size();
      return has && (*known)[dim].least >= wanted.least && (*known)[dim].most <= wanted.most;
    };
    if (const auto dim = source.dims[1]; dim) {
      const Extent wanted{convolution->channels, convolution->channels};
      if (!is_known(*dim, wanted)) assert_size(call, source, *dim, wanted);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const auto dim = source.dims[2 + i];
      const Extent wanted{convolution->least(i)};
      // A linear layer takes no rows, too. Inside the program no image is empty, but of one that was cut to nothing.
      const bool any = wanted.least == 1 && (source.moved || !source.value->is(Op::placeholder));
      if (dim && !any && !is_known(*dim, wanted)) assert_size(call, source, *dim, wanted);
    }
    if (source.value->is(Op::placeholder) && call.is_call("mkldnn_prepacked::conv2d_run"))
      assert_type(call, *source.value);
    bring_forward(call, source);
  }

  /// oneDNN multiplies bfloat16 by float32, and LibTorch's convolution does not.
  void assert_type(const Node& call, Node& input) {
    const Node* pack = call.arg(1).node_or_null();
    const Call packing = pack ? call_of(*pack) : Call();
    const Argument* named = packing.argument("W");
    const Node* weight = named ? named->node_or_null() : nullptr;
    while (weight && (weight->is(Op::call_function) || weight->is(Op::call_method)))  // how it is laid out
      weight = weight->args().empty() ? nullptr : weight->arg(0).node_or_null();
    if (!weight || !weight->is(Op::get_attr) || is_asserted(input, kTypeQuestion)) return;
    const at::ScalarType type = module_.attribute(path_of(*weight)).scalar_type();
    Node& asked = rewriter_.call_function(kTypeQuestion, {input});
    assert_that(python::kEqual, asked, static_cast<std::int64_t>(type), call, input,
                "be " + to_string(Argument(to_dtype(type))));
  }

  /// Of what has four dimensions or more XNNPACK reads what lies in memory, in another order where channels are last.
  void check_linear(Node& call) {
    constexpr std::int64_t kMostDimensions = 3;
    const Extents weight = bounds_.weight_of_linear(call);
    Node* value = call.arg(0).node_or_null();
    if (!weight || weight->size() != 2 || !value) return;
    const std::int64_t features = weight->back().least;
    if (!weight->back().is(features)) return;  // a weight that is computed
    const auto scope = rewriter_.inserting_before(call);
    if (const Extents& known = bounds_[*value]; !known || known->size() > kMostDimensions) {
      Node& dims = rewriter_.call_function("aten::dim", {*value});
      assert_that(python::kAtMost, dims, kMostDimensions, call, *value,
                  "be of at most " + std::to_string(kMostDimensions) + " dimensions");
    }
    if (const Extents& known = bounds_[*value]; known && !known->empty() && known->back().is(features)) return;
    Node& size = rewriter_.call_function("aten::size.int", {*value, -1});
    assert_that(python::kEqual, size, features, call, *value,
                "be " + std::to_string(features) + " in its last dimension");
    bounds_.learn(*value, -1, {features, features});
  }

  /// What is known of the source now is known of what was made of it, of which more was not known before.
  void bring_forward(const Node& call, const Source& source) {
    const Extents known = bounds_[*source.value];
    if (!known) return;
    const Node& image = call.arg(0).node();
    bounds_.learn_rank(image, source.dims.size());
    for (std::size_t i = 0; i < source.dims.size(); ++i) {
      const auto dim = static_cast<std::int64_t>(i);
      bounds_.learn(image, dim, source.dims[i] ? (*known)[*source.dims[i]] : Extent{1, 1});
    }
  }

  void assert_size(const Node& call, const Source& source, std::size_t dim, const Extent& wanted) {
    const auto at = static_cast<std::int64_t>(dim);
    const bool one = wanted.least == wanted.most;
    Node& size = rewriter_.call_function("aten::size.int", {*source.value, at});
    assert_that(one ? python::kEqual : python::kAtLeast, size, wanted.least, call, *source.value,
                std::string("be ") + (one ? "" : "at least ") + std::to_string(wanted.least) + " in dimension " +
                    std::to_string(dim));
    bounds_.learn(*source.value, at, wanted);
  }

  void assert_that(Symbol comparison, Node& size, std::int64_t number, const Node& call, const Node& value,
                   const std::string& what) {
    Node& holds = rewriter_.call_function(comparison, {size, number});
    const std::string message = value.name() + " must " + what + ": " + call.name() + " " + std::string(kReason);
    rewriter_.call_function(python::kAssert, {holds, Argument(message)});
    ++made_;
  }

  GraphModule& module_;
  Rewriter rewriter_;
  SizeBounds bounds_;
  std::size_t made_ = 0;
};

}  // namespace

std::size_t assert_packed_inputs(GraphModule& module) {
  if (std::ranges::none_of(module.graph().nodes(), checks_nothing)) return 0;
  return PackedChecks(module).run();
}

void drop_packed_assertions(GraphModule& module) {
  static const Symbol kWritten[] = {python::kAssert, python::kEqual, "aten::eq.int",   python::kAtLeast, "aten::ge.int",
                                    python::kAtMost, "aten::le.int", "aten::size.int", "aten::dim",      "prim::dtype"};
  if (std::ranges::any_of(module.graph().nodes(), checks_nothing)) return;
  Rewriter rewriter(module.graph());
  for (Node* node : module.graph().find_nodes(Op::call_function, python::kAssert)) {
    const bool ours =
        node->args().size() == 2 && node->arg(1).is_string() && node->arg(1).as_string().ends_with(kReason);
    if (!ours) continue;
    rewriter.erase_unused(*node, [&](const Node& unread) {
      return std::ranges::any_of(kWritten, [&](Symbol target) { return unread.is_call(target); });
    });
  }
}

}  // namespace fx::rules
