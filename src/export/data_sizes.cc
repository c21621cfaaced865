#include <fxgraph/export/data_sizes.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/effects/effects_of.h>

namespace fx::pt2 {
namespace {

using Kind = DataSource::Kind;
using Place = DataSource::Place;

// Where the rows of a result are. `dim`: the argument that names the dimension; without one, or for None, it is 0.
struct RowCall {
  std::string_view target;
  std::string_view dim_name;
  std::size_t dim_at;
  std::vector<std::size_t> elements;  // of the result
  std::vector<std::size_t> flat;      // elements that have one dimension, whatever `dim` says
  std::vector<std::size_t> counts;    // elements that are row numbers
};
const RowCall kRowCalls[] = {
    {"aten::nonzero", "", 0, {0}, {}, {}},
    {"aten::masked_select", "", 0, {0}, {}, {}},
    {"aten::bincount", "", 0, {0}, {}, {}},
    {"aten::repeat_interleave.Tensor", "", 0, {0}, {}, {}},
    {"aten::repeat_interleave.self_Tensor", "dim", 2, {0}, {}, {}},
    {"aten::_unique2", "", 0, {0}, {2}, {1}},
    {"aten::unique_dim", "dim", 1, {0}, {2}, {1}},
    {"aten::unique_dim_consecutive", "dim", 1, {0}, {2}, {1}},
    {"aten::unique_consecutive", "dim", 3, {0}, {2}, {1}},
};
constexpr std::string_view kItemCalls[] = {"aten::item", "aten::_local_scalar_dense"};
constexpr std::string_view kMasked = "aten::index.Tensor";
// Results of which every element has as many rows.
bool is_list_of_rows(const Node& node) {
  return node.target() == "aten::nonzero_numpy" ||
         (node.target() == "aten::where" && node.args().size() + node.kwargs().size() == 1);
}

// Whole numbers are made of floats.
bool rounds(const Node& node) {
  constexpr std::string_view kRoundings[] = {"torch.sym_int",    "math.trunc",        "math.floor",
                                             "math.ceil",        "builtins.int",      "aten::Int.float",
                                             "aten::Int.Scalar", "aten::floor.float", "aten::ceil.float"};
  return node.is(Op::call_function) && !node.args().empty() && node.arg(0).is_node() &&
         std::ranges::find(kRoundings, node.target().view()) != std::end(kRoundings);
}

bool reads_number(const Node& node) {
  return node.is(Op::call_function) && std::ranges::find(kItemCalls, node.target().view()) != std::end(kItemCalls);
}

// A number read out of a tensor, or what arithmetic of words for numbers makes of one.
bool is_of_number_read(const Node& node, int depth = 0) {
  constexpr int kDeepest = 16;
  if (reads_number(node)) return true;
  const std::string_view target = node.target().view();
  const bool counts = target.starts_with("operator.") || target.starts_with("torch.sym_") ||
                      target.starts_with("torch._sym_") || target.starts_with("math.") || target.ends_with(".float") ||
                      target.ends_with("_float") || target.ends_with(".float_int");
  if (!node.is(Op::call_function) || !counts || depth > kDeepest) return false;
  return std::ranges::any_of(node.all_input_nodes(),
                             [&](const Node* each) { return is_of_number_read(*each, depth + 1); });
}

const RowCall* row_call(const Node& node) {
  const auto found = std::ranges::find(kRowCalls, node.target().view(), &RowCall::target);
  return found == std::end(kRowCalls) ? nullptr : &*found;
}

const Argument* argument_of(const Node& node, std::string_view name, std::size_t at) {
  const Argument* value = name.empty() ? nullptr : node.kwarg(Symbol(name));
  return value || name.empty() || at >= node.args().size() ? value : &node.args()[at];
}

// The only mask among indices that are otherwise left out, and the dimension that its rows are.
struct Mask {
  const Node* node;
  std::int64_t dim;
};
std::optional<Mask> only_mask(const Node& node, const std::function<bool(const Node&)>& is_mask) {
  if (node.args().size() < 2 || !node.arg(1).is_sequence()) return std::nullopt;
  std::optional<Mask> found;
  std::int64_t at = 0;
  for (const Argument& index : node.arg(1).elements()) {
    const Node* value = index.node_or_null();
    if (value && (found || !is_mask(*value))) return std::nullopt;
    if (value) found = Mask{value, at};
    ++at;
  }
  return found;
}

at::Tensor element_of(const c10::IValue& result, std::size_t element) {
  if (result.isTensor()) return element == 0 ? result.toTensor() : at::Tensor();
  if (result.isTensorList())
    return element < result.toTensorVector().size() ? result.toTensorVector()[element] : at::Tensor();
  if (result.isTuple() && element < result.toTupleRef().elements().size()) {
    const c10::IValue& value = result.toTupleRef().elements()[element];
    if (value.isTensor()) return value.toTensor();
  }
  return {};
}

std::size_t num_elements(const c10::IValue& result) {
  if (result.isTensorList()) return result.toTensorVector().size();
  return result.isTuple() ? result.toTupleRef().elements().size() : 1;
}

c10::IValue map_elements(const c10::IValue& result,
                         const std::function<at::Tensor(std::size_t, const at::Tensor&)>& change) {
  if (result.isTensor()) return change(0, result.toTensor());
  if (result.isTensorList()) {
    std::vector<at::Tensor> tensors = result.toTensorVector();
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = change(i, tensors[i]);
    return tensors;
  }
  if (!result.isTuple()) return result;
  std::vector<c10::IValue> values = result.toTupleRef().elements().vec();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].isTensor()) values[i] = change(i, values[i].toTensor());
  }
  return c10::ivalue::Tuple::create(std::move(values));
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
  return node.is(Op::call_function) && (row_call(node) || is_list_of_rows(node) || node.target() == kMasked ||
                                        reads_number(node) || (rounds(node) && is_of_number_read(node.arg(0).node())));
}

void DataSizes::look(const Node& node, const c10::IValue& result, const std::function<bool(const Node&)>& is_mask) {
  DataSource source;
  source.node = &node;
  const auto add = [&] {
    sources_.push_back(std::move(source));
    at_[node] = sources_.size();
  };
  if (!result.isTensor() && num_elements(result) == 1 && !result.isTuple() && !result.isTensorList()) {
    if (result.isBool()) {
      source.kind = Kind::boolean;
    } else if (result.isInt()) {
      source.kind = Kind::integer;
      source.seen = result.toInt();
    } else if (result.isDouble()) {
      source.kind = Kind::floating;
    } else {
      return;
    }
    return add();
  }
  if (is_list_of_rows(node)) {
    for (std::size_t i = 0; i < num_elements(result); ++i) source.places.push_back({i, 0});
  } else if (node.target() == kMasked) {
    const std::optional<Mask> mask = only_mask(node, is_mask);
    if (!mask) return;
    source.places = {{0, mask->dim}};
  } else if (const RowCall* row = row_call(node)) {
    const Argument* named = argument_of(node, row->dim_name, row->dim_at);
    if (node.target() == "aten::repeat_interleave.self_Tensor" && argument_of(node, "output_size", 3) &&
        !argument_of(node, "output_size", 3)->is_none())
      return;
    if (named && !named->is_int() && !named->is_none()) return;
    const at::Tensor first = element_of(result, 0);
    if (!first.defined() || first.dim() == 0) return;
    std::int64_t dim = named && named->is_int() ? named->as_int() : 0;
    if (dim < 0) dim += first.dim();
    for (const std::size_t element : row->elements) source.places.push_back({element, dim});
    const std::int64_t rows = first.size(dim);
    for (const std::size_t element : row->flat) {
      const at::Tensor counts = element_of(result, element);  // empty where nobody asked for it
      if (counts.defined() && counts.numel() == rows && rows > 0) source.places.push_back({element, 0});
    }
    source.counts = row->counts;
  }
  if (source.places.empty()) return;
  const at::Tensor rows = element_of(result, source.places[0].element);
  source.seen = rows.size(source.places[0].dim);
  // Of one row and of none, strides do not tell.
  source.by_columns = node.target() == "aten::nonzero" && rows.dim() == 2 &&
                      (source.seen < 2 || (rows.stride(0) == 1 && rows.stride(1) == source.seen));
  add();
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
      for (const Argument& index : node.arg(1).elements()) asked = index.is_node() ? &index.node() : asked;
    }
    std::string* symbol = asked ? &known[{source.kind == Kind::rows ? 'r' : 'n', asked}] : nullptr;
    source.symbol = symbol && !symbol->empty() ? *symbol : fresh();
    if (symbol) *symbol = source.symbol;
  }
  // What is asserted: two that are equal are one, and the ends of ranges.
  for (const DataSource& source : sources_) {
    if (source.kind == Kind::rows) ranges_[source.symbol].min = 0;
    if (source.kind == Kind::integer) ranges_.try_emplace(source.symbol);
  }
  for (const Node* check : graph.find_nodes(Op::call_function, Symbol("torch._assert"))) {
    const Node* condition = check->args().empty() ? nullptr : check->arg(0).node_or_null();
    if (!condition || condition->args().size() != 2) continue;
    const std::string comparison = number_operator(condition->target());
    const auto side = [&](std::size_t at) {
      const Node* value = condition->arg(at).node_or_null();
      return value ? symbol_of(*value) : std::string();
    };
    const std::string left = side(0), right = side(1);
    if (comparison == "operator.eq" && !left.empty() && !right.empty() && left != right) {
      for (DataSource& source : sources_) {
        if (source.symbol == right) source.symbol = left;
      }
      SizeRange& range = ranges_[left];
      const SizeRange other = ranges_[right];
      if (other.min) range.min = std::max(range.min.value_or(*other.min), *other.min);
      if (other.max) range.max = std::min(range.max.value_or(*other.max), *other.max);
      ranges_.erase(right);
      continue;
    }
    if (left.empty() || !condition->arg(1).is_int()) continue;
    const std::int64_t bound = condition->arg(1).as_int();
    SizeRange& range = ranges_[left];
    const auto at_least = [&](std::int64_t least) { range.min = std::max(range.min.value_or(least), least); };
    const auto at_most = [&](std::int64_t most) { range.max = std::min(range.max.value_or(most), most); };
    if (comparison == "operator.ge" || comparison == "operator.eq") at_least(bound);
    if (comparison == "operator.gt" && bound < INT64_MAX) at_least(bound + 1);
    if (comparison == "operator.le" || comparison == "operator.eq") at_most(bound);
    if (comparison == "operator.lt" && bound > INT64_MIN) at_most(bound - 1);
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
  return map_elements(result, [&](std::size_t element, const at::Tensor& tensor) {
    for (const Place& place : source.places) {
      if (place.element == element) return with_rows(tensor, place.dim, rows, source.by_columns);
    }
    const bool is_count = std::ranges::find(source.counts, element) != source.counts.end();
    return is_count && rows > 0 ? tensor.remainder(rows) : tensor;
  });
}

}  // namespace fx::pt2
