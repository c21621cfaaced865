#include <fxgraph/rewriter/rules/packed_checks.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/program_facts.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

namespace {

constexpr std::size_t kImageRank = 4;
// Of what has more dimensions XNNPACK's linear layer reads what lies in memory, in another order where channels are
// last.
constexpr std::int64_t kMostOfLinear = 3;

bool checks_nothing(const Node& call) { return is_packed_convolution(call) || is_xnnpack_linear(call); }

/// The value that an image is laid out and viewed from, and how many dimensions it has.
struct Source {
  Node* value;
  std::size_t rank = kImageRank;
};

Source source_of(const Node& call) {
  Source source{&call.arg(0).node()};
  for (;;) {
    const Call made = call_of(*source.value);
    const Symbol target = made ? made.schema().target : Symbol();
    const bool adds = target == "aten::unsqueeze", is_like = target == "aten::view_as";
    if (!adds && !is_like && target != "aten::permute" && target != "aten::contiguous") return source;
    const Argument* from = made.argument(is_like ? 1 : 0);
    if (!from || !from->is_node()) return source;
    source.value = &from->node();
    source.rank -= adds;
  }
}

/// Sizes that nothing says are symbols that say which node has them; of the whole program, and of one call.
class PackedChecks {
 public:
  explicit PackedChecks(GraphModule& module)
      : module_(module),
        graph_(module.graph()),
        rewriter_(module.graph()),
        write_(rewriter_.assertions()),
        of_types_(asserted_inputs(graph_, InputProperty::dtype)),
        conditions_(graph_),
        behind_(graph_) {
    for (Node& node : module.graph().nodes()) {
      if (checks_nothing(node) && node.args().size() == 2 && node.arg(0).is_node()) calls_.push_back(&node);
    }
  }

  std::size_t run() {
    if (calls_.empty()) return 0;
    read_ranks();
    ShapeSources sources = shape_sources(module_);
    sources.refine = [this](const Node& node, AbstractValue said) { return named(node, std::move(said)); };
    for (const auto& [value, rank] : ranks_) {
      for (std::size_t dim = 0; dim < rank.number; ++dim) sources.ranges[name(*value, dim)] = {0, std::nullopt};
    }
    const std::vector<AbstractValue> unknown(graph_.placeholders().size());
    const SymbolicShapes shapes(graph_, unknown, sources);
    for (Node* value : without_rank_) {
      const auto at = rewriter_.inserting_before(behind(*value));
      assert_rank(*value, SizeRelation::equal, ranks_.at(value).number, *ranks_.at(value).read_by);
    }
    for (const SymbolicShapes::Asked& asked : shapes.conditions())
      conditions_[*asked.node].push_back(asked.condition.simplified());
    for (Node* call : calls_) check(*call, shapes);
    return made_;
  }

 private:
  struct Rank {
    std::size_t number;
    const Node* read_by;  // a packed call
    Node* assertion;      // says so before any packed call
  };
  struct Size {
    Node* value;
    std::size_t dim;
  };

  static std::string name(const Node& value, std::size_t dim) { return value.name() + "[" + std::to_string(dim) + "]"; }

  /// Those that the program asserts before any packed call, and those that packed calls need.
  void read_ranks() {
    for (Node* assertion : graph_.find_nodes(Op::call_function, python::kAssert)) {
      if (!assertion->is_before(*calls_[0])) continue;
      Node* value = nullptr;
      const auto holds = asserted(*assertion, [&](const Node& node) -> std::string {
        const Call call = node.is(Op::call_function) ? call_of(node) : Call();
        if (!call || call.schema().target != "aten::dim" || !call.args()[0].is_node()) return {};
        value = &call.args()[0].node();
        return "rank";
      });
      if (!holds || !value) continue;
      const SizeCondition said = condition_of(*holds).simplified();
      if (!said.left.is_symbol() || !said.right.is_integer() || said.right.value() < 0) continue;
      if (said.relation == SizeRelation::equal)
        ranks_.try_emplace(value, static_cast<std::size_t>(said.right.value()), nullptr, assertion);
      if (said.relation == SizeRelation::at_most && said.right.value() <= kMostOfLinear) are_rows_.insert(value);
    }
    for (const Node* call : calls_) {
      if (!is_packed_convolution(*call)) continue;
      const Source source = source_of(*call);
      ranks_.try_emplace(source.value, source.rank, call, nullptr);
    }
  }

  /// What a node is, with sizes of its own where nothing says what they are.
  AbstractValue named(const Node& node, AbstractValue said) {
    if (&node.graph() != &graph_) return said;
    Node& value = *graph_.node_by_id(node.id());
    const auto rank = ranks_.find(&value);
    if (!said.is_known() && rank != ranks_.end()) {
      TensorType type = image_of(value, rank->second.number);
      for (std::size_t dim = 0; dim < type.sizes.size(); ++dim) sizes_.try_emplace(name(value, dim), Size{&value, dim});
      if (!rank->second.assertion) without_rank_.push_back(&value);
      return type;
    }
    const TensorType* tensor = said.tensor();
    for (std::size_t dim = 0; tensor && dim < tensor->sizes.size(); ++dim) {
      if (tensor->sizes[dim].is_symbol()) sizes_.try_emplace(tensor->sizes[dim].name(), Size{&value, dim});
    }
    return said;
  }

  static TensorType image_of(const Node& value, std::size_t rank) {
    TensorType type;
    for (std::size_t dim = 0; dim < rank; ++dim) type.sizes.push_back(SizeExpr::symbol(name(value, dim)));
    return type;
  }

  void check(Node& call, const SymbolicShapes& shapes) {
    const TensorType* input = shapes[call.arg(0).node()].tensor();
    const std::vector<SizeCondition>& conditions = conditions_[call];
    const bool is_image = is_packed_convolution(call);
    const bool is_decided = input && shapes[call].tensor() &&
                            (is_image ? input->sizes.size() == kImageRank : input->sizes.size() <= kMostOfLinear) &&
                            std::ranges::all_of(conditions, [this](const auto& each) { return is_of_sizes(each); });
    if (!is_decided) return check_itself(call, input, shapes[call.arg(1).node()]);
    const Source source = source_of(call);
    const TensorType* from = shapes[*source.value].tensor();
    // A linear layer takes no rows, too, of which conv2d would say that they are no image.
    const bool is_rows = is_image && from && from->sizes != input->sizes;
    for (const SizeCondition& each : conditions) {
      if (is_rows && each.relation == SizeRelation::at_least && each.right == SizeExpr(1)) {
        may_be_none_.insert(each.left);
      } else {
        assert_sizes(call, each);
      }
    }
    for (std::size_t dim = 2; is_image && !is_rows && dim < kImageRank; ++dim) {
      if (may_be_none_.erase(input->sizes[dim]) > 0) assert_sizes(call, {SizeRelation::at_least, input->sizes[dim], 1});
    }
    const Node* typed = source.value;
    while (const Node* from = typed_by(*typed)) typed = from;
    if (typed->is(Op::placeholder) && call.is_call("mkldnn_prepacked::conv2d_run"))
      assert_type(call, *graph_.node_by_id(typed->id()));
  }

  bool is_of_sizes(const SizeCondition& condition) const {
    bool all = AssertionWriter::can_write(condition.left) && AssertionWriter::can_write(condition.right);
    condition.for_each_symbol([&](const std::string& symbol) { all = all && sizes_.contains(symbol); });
    return all;
  }

  /// Where its input follows from nothing that can be asked.
  void check_itself(Node& call, const TensorType* known, const AbstractValue& packed) {
    Node& input = call.arg(0).node();
    const auto at = rewriter_.inserting_before(call);
    if (!is_packed_convolution(call)) return check_linear(call, input, known, packed);
    if (!known || known->sizes.size() != kImageRank) assert_rank(input, SizeRelation::equal, kImageRank, call);
    const TensorType image = image_of(input, kImageRank);
    SizeFacts facts;
    for (const SizeExpr& size : image.sizes) facts.declare(size.name(), {0, std::nullopt});
    FreshSymbols fresh;
    const AbstractValue arguments[] = {image, packed};
    for (const SizeCondition& each : infer(call_of(call).schema(), arguments, facts, fresh).conditions) {
      const SizeCondition condition = each.simplified();
      assert_that(call, condition, [&](const std::string& symbol) {
        const auto dim = std::ranges::find(image.sizes, SizeExpr::symbol(symbol)) - image.sizes.begin();
        return Argument(rewriter_.call_function("aten::size.int", {input, std::int64_t{dim}}));
      });
    }
  }

  void check_linear(Node& call, Node& input, const TensorType* known, const AbstractValue& packed) {
    const TensorType* weight = packed.list() && !packed.list()->empty() ? (*packed.list())[0].tensor() : nullptr;
    if (!weight || weight->sizes.size() != 2 || !weight->sizes[1].is_integer()) return;  // that is computed
    if (!(known && known->sizes.size() <= kMostOfLinear) && are_rows_.insert(&input).second)
      assert_rank(input, SizeRelation::at_most, kMostOfLinear, call);
    const std::int64_t features = weight->sizes[1].value();
    assert_that(call, SizeRelation::equal, rewriter_.call_function("aten::size.int", {input, -1}), features,
                input.name() + " must be " + std::to_string(features) + " in its last dimension");
  }

  /// oneDNN multiplies bfloat16 by float32, and LibTorch's convolution does not.
  void assert_type(const Node& call, Node& input) {
    const Node* pack = call.arg(1).node_or_null();
    const Call packing = pack ? call_of(*pack) : Call();
    const Argument* named = packing.argument("W");
    const Node* weight = named ? named->node_or_null() : nullptr;
    while (weight && (weight->is(Op::call_function) || weight->is(Op::call_method)))  // how it is laid out
      weight = weight->args().empty() ? nullptr : weight->arg(0).node_or_null();
    if (!weight || !weight->is(Op::get_attr) || !of_types_.insert(input.name()).second) return;
    const at::ScalarType type = module_.attribute(path_of(*weight)).scalar_type();
    const auto at = rewriter_.inserting_before(behind(input));
    assert_that(call, SizeRelation::equal, rewriter_.call_function(kTypeQuestion, {input}),
                static_cast<std::int64_t>(type), input.name() + " must be " + to_string(Argument(to_dtype(type))));
  }

  void assert_rank(Node& value, SizeRelation relation, std::size_t rank, const Node& call) {
    const bool is_most = relation == SizeRelation::at_most;
    assert_that(call, relation, rewriter_.call_function("aten::dim", {value}), static_cast<std::int64_t>(rank),
                value.name() + " must be of " + (is_most ? "at most " : "") + std::to_string(rank) + " dimensions");
  }

  /// As early as its sizes are known.
  void assert_sizes(const Node& call, const SizeCondition& condition) {
    Node* last = nullptr;
    condition.for_each_symbol([&](const std::string& symbol) {
      Node* value = sizes_.at(symbol).value;
      if (const auto rank = ranks_.find(value); rank != ranks_.end() && rank->second.assertion)
        value = rank->second.assertion;
      if (!last || behind(*last).is_before(behind(*value))) last = value;
    });
    if (!last) return;
    const auto at = rewriter_.inserting_before(behind(*last));
    assert_that(call, condition, [this](const std::string& symbol) {
      const Size& size = sizes_.at(symbol);
      return Argument(rewriter_.call_function("aten::size.int", {*size.value, static_cast<std::int64_t>(size.dim)}));
    });
  }

  void assert_that(const Node& call, const SizeCondition& condition, const AssertionWriter::NumberOf& number_of) {
    write_.add(condition, number_of, message(condition.str(), call));
    ++made_;
  }
  void assert_that(const Node& call, SizeRelation relation, Node& asked, std::int64_t answer, const std::string& what) {
    write_.add(relation, asked, answer, message(what, call));
    ++made_;
  }
  static std::string message(const std::string& what, const Node& call) {
    return what + ": " + call.name() + " with packed weights takes nothing else";
  }

  /// Before it stands what is asserted of the value: once all inputs are there.
  Node& behind(Node& value) {
    Node*& next = behind_[value];
    if (!next) {
      next = value.next();
      while (value.is(Op::placeholder) && next->is(Op::placeholder)) next = next->next();
    }
    return *next;
  }

  GraphModule& module_;
  const Graph& graph_;
  Rewriter rewriter_;
  const AssertionWriter write_;
  std::set<std::string> of_types_;  // inputs, and other values, whose types are asserted
  std::vector<Node*> calls_;
  std::unordered_map<Node*, Rank> ranks_;     // looked up, and read for names alone
  std::unordered_set<const Node*> are_rows_;  // of at most so many dimensions as a linear layer takes
  std::vector<Node*> without_rank_;
  std::unordered_map<std::string, Size> sizes_;  // by symbol
  NodeMap<std::vector<SizeCondition>> conditions_;
  std::set<SizeExpr> may_be_none_;  // of rows of linear layers
  NodeMap<Node*> behind_;
  std::size_t made_ = 0;
};

}  // namespace

std::size_t assert_packed_inputs(GraphModule& module) { return PackedChecks(module).run(); }

}  // namespace fx::rules
