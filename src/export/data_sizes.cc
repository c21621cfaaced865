#include <fxgraph/export/data_sizes.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/contract/contract.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/export/operators.h>
#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/run/value.h>
#include <fxgraph/symbolic/size_facts.h>

namespace fx::pt2 {
namespace {

using Kind = DataSource::Kind;
using Place = DataSource::Place;

// Results of as many rows as data say, in their dimension `dim`, else in the first.
constexpr std::string_view kRowCalls[] = {"aten::nonzero", "aten::masked_select", "aten::bincount",
                                          "aten::repeat_interleave.Tensor", "aten::repeat_interleave.self_Tensor"};
// The same with the row of each element, and how often each row is there, which has one dimension.
constexpr std::string_view kUniqueCalls[] = {"aten::_unique2", "aten::unique_dim", "aten::unique_dim_consecutive",
                                             "aten::unique_consecutive"};
constexpr std::string_view kItemCalls[] = {"aten::item", "aten::_local_scalar_dense"};
constexpr std::string_view kMasked = "aten::index.Tensor";

bool calls_one_of(const Node& node, std::span<const std::string_view> targets) {
  return node.is(Op::call_function) && std::ranges::find(targets, node.target().view()) != targets.end();
}

// Results of which every element has as many rows.
bool is_list_of_rows(const Node& node) {
  return node.target() == "aten::nonzero_numpy" ||
         (node.target() == "aten::where" && node.args().size() + node.kwargs().size() == 1);
}

// Whole numbers are made of floats.
bool rounds(const Node& node) {
  return node.is(Op::call_function) && !node.args().empty() && node.arg(0).is_node() &&
         arithmetic_of(node.target()).ends_with("ToInt");
}

// A number read out of a tensor, or what arithmetic of words for numbers makes of one.
bool is_of_number_read(const Node& node, int depth = 0) {
  constexpr int kDeepest = 16;
  if (calls_one_of(node, kItemCalls)) return true;
  const std::string_view target = node.target().view();
  const bool counts = target.starts_with("operator.") || target.starts_with("torch.sym_") ||
                      target.starts_with("torch._sym_") || target.starts_with("math.") || target.ends_with(".float") ||
                      target.ends_with("_float") || target.ends_with(".float_int");
  if (!node.is(Op::call_function) || !counts || depth > kDeepest) return false;
  return std::ranges::any_of(node.all_input_nodes(),
                             [&](const Node* each) { return is_of_number_read(*each, depth + 1); });
}

/// What a tensor is indexed by, however it is given.
Argument indices_of(const Node& node) {
  const Call call = call_of(node);
  const Argument* indices = call && call.schema().arguments.size() > 1 ? call.argument(1) : nullptr;
  return indices ? *indices : Argument();
}

bool is_mask(const ValueShape& value) {
  const DType type = value.tensor.dtype;
  return value.kind == ValueShape::Kind::tensor && (type == DType::boolean || type == DType::uint8);
}

// The only mask among indices that are otherwise left out, and the dimension that its rows are.
struct Mask {
  const Node* node;
  std::int64_t dim;
};
std::optional<Mask> only_mask(const Node& node, const ValueShapes& seen) {
  const Argument indices = indices_of(node);
  if (!indices.is_sequence()) return std::nullopt;
  std::optional<Mask> found;
  std::int64_t at = 0;
  for (const Argument& index : indices.elements()) {
    const Node* value = index.node_or_null();
    if (value && (found || !is_mask(seen[*value]))) return std::nullopt;
    if (value) found = Mask{value, at};
    ++at;
  }
  return found;
}

// Of one tensor that one, of others nothing.
std::vector<c10::IValue> parts_of(const c10::IValue& result) {
  if (result.isTensor()) return {result};
  return result.isTuple() || result.isTensorList() ? elements_of(result) : std::vector<c10::IValue>();
}

// The rows again and again.
at::Tensor with_rows(const at::Tensor& tensor, std::int64_t dim, std::int64_t rows, bool by_columns) {
  const std::int64_t before = tensor.size(dim);
  if (before == rows && !by_columns) return tensor;
  at::Tensor made;
  if (before == 0) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes[static_cast<std::size_t>(dim)] = rows;
    made = at::zeros(sizes, tensor.options());
  } else {
    made = tensor.index_select(dim, at::arange(rows, at::TensorOptions().device(tensor.device())).remainder(before));
  }
  return by_columns ? at::empty_strided(made.sizes(), {1, rows}, made.options()).copy_(made) : made;
}

bool writes(const Node& node) {
  const NodeEffects effects = effects_of(node);
  return effects.writes || effects.unknown;
}

}  // namespace

bool DataSizes::may_be(const Node& node) {
  return calls_one_of(node, kRowCalls) || calls_one_of(node, kUniqueCalls) || calls_one_of(node, kItemCalls) ||
         calls_one_of(node, {&kMasked, 1}) || (node.is(Op::call_function) && is_list_of_rows(node)) ||
         (rounds(node) && is_of_number_read(node.arg(0).node()));
}

void DataSizes::look(const Node& node, const c10::IValue& result, const NodeMap<ValueShape>& seen) {
  DataSource source;
  source.node = &node;
  if (result.isBool()) {
    source.kind = Kind::boolean;
  } else if (result.isInt()) {
    source.kind = Kind::integer;
    source.seen = result.toInt();
  } else if (result.isDouble()) {
    source.kind = Kind::floating;
  } else if (!find_rows(source, result, seen)) {
    return;
  }
  sources_.push_back(std::move(source));
  at_[node] = sources_.size();
}

bool DataSizes::find_rows(DataSource& source, const c10::IValue& result, const NodeMap<ValueShape>& seen) const {
  const Node& node = *source.node;
  const std::vector<c10::IValue> parts = parts_of(result);
  if (is_list_of_rows(node)) {
    for (std::size_t i = 0; i < parts.size(); ++i) source.places.push_back({i, 0});
  } else if (node.target() == kMasked) {
    const std::optional<Mask> mask = only_mask(node, seen);
    if (mask) source.places = {{0, mask->dim}};
  } else if (const Call call = call_of(node); call && data_decide_sizes(call)) {
    const Argument* named = call.argument("dim");
    if (named && !named->is_int() && !named->is_none()) return false;
    const at::Tensor first = parts.empty() || !parts[0].isTensor() ? at::Tensor() : parts[0].toTensor();
    if (!first.defined() || first.dim() == 0) return false;
    std::int64_t dim = named && named->is_int() ? named->as_int() : 0;
    if (dim < 0) dim += first.dim();
    source.places = {{0, dim}};
    source.has_row_numbers = calls_one_of(node, kUniqueCalls);
    constexpr std::size_t kCounts = 2;  // empty where nobody asked for them
    const std::int64_t counts =
        source.has_row_numbers && parts.size() > kCounts ? parts[kCounts].toTensor().numel() : 0;
    if (counts > 0 && counts == first.size(dim)) source.places.push_back({kCounts, 0});
  }
  if (source.places.empty()) return false;
  const at::Tensor rows = parts.at(source.places[0].element).toTensor();
  source.seen = rows.size(source.places[0].dim);
  // Of one row and of none, strides do not tell.
  source.by_columns = node.target() == "aten::nonzero" && rows.dim() == 2 &&
                      (source.seen < 2 || (rows.stride(0) == 1 && rows.stride(1) == source.seen));
  return true;
}

const DataSource* DataSizes::find(const Node& node) const {
  if (sources_.empty()) return nullptr;
  const std::size_t at = at_[node];
  return at == 0 ? nullptr : &sources_[at - 1];
}

std::string DataSizes::symbol_of(const Node& node) const {
  if (const DataSource* source = find(node)) return source->kind == Kind::integer ? source->symbol : std::string();
  if (node.target() != "aten::size.int" || node.args().size() != 2 || !node.arg(1).is_int()) return {};
  const Node* tensor = node.arg(0).node_or_null();
  std::size_t element = 0;
  if (tensor && tensor->target() == "operator.getitem" && tensor->arg(1).is_int()) {
    element = static_cast<std::size_t>(tensor->arg(1).as_int());
    tensor = tensor->arg(0).node_or_null();
  }
  const DataSource* source = tensor ? find(*tensor) : nullptr;
  if (!source) return {};
  for (const Place& place : source->places) {
    if (place.element == element && place.dim == node.arg(1).as_int()) return source->symbol;
  }
  return {};
}

void DataSizes::name(const Graph& graph, const Symbols& taken) {
  std::map<std::pair<char, const Node*>, std::string>
      known;  // looked up: what was counted or read since the last write
  std::size_t next = 0, next_float = 0;
  const auto fresh = [&] {
    std::string symbol;
    do symbol = "u" + std::to_string(next++);
    while (taken.count(symbol));
    return symbol;
  };
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::call_function) && writes(node)) known.clear();
    if (!at_[node]) continue;
    DataSource& source = sources_[at_[node] - 1];
    if (source.kind == Kind::floating) {
      source.symbol = "zuf" + std::to_string(next_float++);
      continue;
    }
    const Node* asked = nullptr;
    if (source.kind == Kind::integer || node.target() == "aten::nonzero" || is_list_of_rows(node)) {
      asked = node.args().empty() ? nullptr : node.arg(0).node_or_null();
    } else if (node.target() == kMasked) {
      for_each_node(indices_of(node), [&](const Node& index) { asked = &index; });
    }
    std::string* symbol = asked ? &known[{source.kind == Kind::rows ? 'r' : 'n', asked}] : nullptr;
    source.symbol = symbol && !symbol->empty() ? *symbol : fresh();
    if (symbol) *symbol = source.symbol;
  }
  // What is asserted: two that are equal are one, and the ends of ranges.
  SizeFacts facts;
  for (const DataSource& source : sources_) {
    if (source.kind == Kind::rows) facts.declare(source.symbol, {0, std::nullopt});
  }
  for (const Node* check : graph.find_nodes(Op::call_function, Symbol("torch._assert"))) {
    if (const auto said = asserted(*check, [this](const Node& value) { return symbol_of(value); }))
      facts.assume(condition_of(*said));
  }
  for (DataSource& source : sources_) {
    if (source.kind != Kind::rows && source.kind != Kind::integer) continue;
    const SizeExpr value = facts.simplified(SizeExpr::symbol(source.symbol));
    if (value.is_symbol()) source.symbol = value.name();
    ranges_[source.symbol] = facts.range(value);
  }
}

std::vector<std::int64_t> DataSizes::candidates(const std::string& symbol) const {
  std::vector<std::int64_t> values;
  const SizeRange range = ranges_.count(symbol) ? ranges_.at(symbol) : SizeRange();
  const auto add = [&](std::int64_t value) {
    if (value < range.min.value_or(value) || value > range.max.value_or(value) || value < 2) return;
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  };
  for (const DataSource& source : sources_) {
    if (source.symbol == symbol) add(source.seen);
  }
  for (const std::int64_t value : {3, 4, 5, 2, 6, 7, 8, 10, 12, 16, 32}) add(value);
  if (range.min) add(*range.min);
  if (range.min) add(*range.min + 1);
  if (range.max) add(*range.max);
  return values;
}

c10::IValue DataSizes::with(const DataSource& source, const c10::IValue& result, const Symbols& symbols) {
  const auto wanted = symbols.find(source.symbol);
  if (wanted == symbols.end() || source.kind == Kind::floating || source.kind == Kind::boolean) return result;
  if (source.kind == Kind::integer) return wanted->second;
  const std::int64_t rows = wanted->second;
  std::vector<c10::IValue> parts = parts_of(result);
  for (const Place& place : source.places) {
    c10::IValue& part = parts.at(place.element);
    part = with_rows(part.toTensor(), place.dim, rows, source.by_columns);
  }
  if (source.has_row_numbers && rows > 0) parts.at(1) = parts.at(1).toTensor().remainder(rows);
  if (result.isTensor()) return parts[0];
  return result.isTuple() ? c10::IValue(c10::ivalue::Tuple::create(std::move(parts))) : make_list(std::move(parts));
}

// ── Calls that are no source ───────────────────────────────────────────────────────────────────────────────────────

namespace {

// Questions about a tensor that its data does not answer.
bool asks_no_data(Symbol target) {
  using enum OperatorFlag;
  return has_flag(target, asks_sizes) || has_flag(target, asks_form) || has_flag(target, asks_otherwise);
}

bool asks_data(const Node& node) {
  const Call call = call_of(node);
  if (!call) return false;
  const OperatorSchema& schema = call.schema();
  const bool takes_tensor = !schema.arguments.empty() && schema.arguments[0].type.is_tensor();
  if ((takes_tensor && has_flag(schema.target, OperatorFlag::reads_data)) || data_decide_sizes(call)) return true;
  const TorchOperator* known = find_exported_operator(schema.target);
  return known && known->handle && !sizes_given_by(schema) && data_decide_sizes(*known->handle, schema.target);
}

bool depends_on_data(const Node& node, const ProgramValues& program) {
  if (program.data.find(node)) return false;
  if (asks_data(node)) return true;
  const Call call = call_of(node);
  if (call && call.schema().target == "aten::storage_offset") return true;  // an archive says it of no input
  const ValueShapes& shapes = program.values;
  const bool reads_tensor = std::ranges::any_of(
      node.all_input_nodes(), [&](const Node* input) { return shapes[*input].kind == ValueShape::Kind::tensor; });
  if (is_number(shapes[node].kind) && reads_tensor) return !asks_no_data(node.target());
  bool by_mask = false;
  if (node.target() == kMasked)
    for_each_node(indices_of(node), [&](const Node& index) { by_mask |= is_mask(shapes[index]); });
  return by_mask;
}

void list_calls(std::string& all, const Graph& graph, const std::function<bool(const Node&)>& is_one) {
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || !is_one(node)) continue;
    all += (all.empty() ? "" : ", ") + target_text(node.target()) + " at %" + node.name();
  }
}

}  // namespace

std::string calls_of_data(const Graph& graph, const GraphModule& module) {
  std::string all;
  std::vector<std::pair<const Graph*, const GraphModule*>> left = {{&graph, &module}};
  std::set<const Graph*> seen = {&graph};  // asked only, not gone through
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto [at, owner] = left[i];
    const bool is_whole = at == &graph;
    list_calls(all, *at, [&](const Node& node) { return asks_data(node) && !(is_whole && DataSizes::may_be(node)); });
    for (const Node& node : at->nodes()) {
      if (!node.is(Op::get_attr)) continue;
      const auto inner = std::dynamic_pointer_cast<GraphModule>(owner->find_submodule(node.target().str()));
      if (inner && seen.insert(&inner->graph()).second) left.emplace_back(&inner->graph(), inner.get());
    }
  }
  return all;
}

std::string calls_of_data(const Graph& graph, const ProgramValues& shapes) {
  std::string all;
  list_calls(all, graph, [&](const Node& node) { return depends_on_data(node, shapes); });
  return all;
}

}  // namespace fx::pt2
