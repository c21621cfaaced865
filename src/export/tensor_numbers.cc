// Numbers that torch.jit.trace keeps in tensors.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fxgraph/effects/in_place.h>
#include <fxgraph/export/numbers.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>

namespace fx::pt2 {
namespace {

/// What a tensor without dimensions holds. A float is kept as the quotient of two whole numbers, or the root of one:
/// what is made whole again of these is the same whether it was rounded to 32 bits in between or not, for numbers below
/// 2^23. No other float is followed.
struct TensorNumber {
  Argument over;
  Argument under = Argument(1);
  bool is_real = false;
  bool is_root = false;
};

// c = first / second, with so few digits that 32 bits hold its product with a size.
std::optional<std::pair<std::int64_t, std::int64_t>> as_fraction(double value) {
  constexpr std::int64_t kMostUnder = 64, kMostOver = 256;
  for (std::int64_t under = 1; under <= kMostUnder; under *= 2) {
    const double over = value * static_cast<double>(under);
    if (std::abs(over) <= kMostOver && over == std::floor(over))
      return std::pair(static_cast<std::int64_t>(over), under);
  }
  return std::nullopt;
}

bool may_be_named_again(const Node& user) {
  const Call call = call_of(user);
  return !user.is(Op::output) && (!call || call.schema().traits.view || call.schema().traits.may_copy);
}

// Whether `user` writes to `tensor`, which it takes.
bool writes_to(const Node& user, const Node& tensor) {
  if (user.is(Op::output)) return false;
  if (!call_of(user)) return true;
  bool found = false;
  for_each_written(user, [&](const Argument& written) {
    for_each_node(written, [&](const Node& node) { found |= &node == &tensor; });
  });
  return found;
}

// Whether somebody sees another value in the result than it was made with: a write comes before another use, or the
// memory has another name.
bool is_overwritten(const Node& node) {
  for (const Node& user : node.users()) {
    if (!writes_to(user, node)) continue;
    if (may_be_named_again(node)) return true;
    for (const Node& other : node.users()) {
      if (&other != &user && (user.is_before(other) || may_be_named_again(other))) return true;
    }
  }
  return false;
}

// Calls that read the number, and whether they truncate it.
constexpr std::pair<std::string_view, bool> kExits[] = {
    {"aten::Int.Tensor", true},           {"aten::IntImplicit", false}, {"aten::ScalarImplicit", false},
    {"aten::_local_scalar_dense", false}, {"aten::item", false},
};

class TensorNumbers {
 public:
  TensorNumbers(Graph& graph, const GraphModule& module) : graph_(graph), module_(module) {}

  void run() {
    for (Node& node : graph_.nodes()) {
      if (node.is(Op::call_function)) visit(node);
    }
    for (Node* made : made_) make_as_tensor(*made);
  }

 private:
  using Make = std::optional<TensorNumber> (TensorNumbers::*)(const Call& from, const char* call);
  struct NumberForm {
    std::string_view target;
    Make make;
    const char* call = nullptr;
  };

  void visit(Node& node) {
    const auto at = graph_.inserting_before(node);
    const Call from = call_of(node);
    const Symbol target = from ? from.schema().target : Symbol();
    const auto* exit = std::ranges::find(kExits, target.view(), &std::pair<std::string_view, bool>::first);
    if (exit != std::end(kExits)) {
      if (read(node, from, exit->second)) graph_.erase_node(node);
      return;
    }
    const OperatorSchema* functional = from ? functional_overload(from.schema()) : nullptr;
    const NumberForm* form = form_of(functional ? functional->target : target);
    const Argument* is_trained = from.argument("requires_grad");
    std::optional<TensorNumber> number;
    if (form && from.argument(0) && (!is_trained || *is_trained == Argument(false))) {
      if (form->make == &TensorNumbers::made) made_.push_back(&node);
      number = (this->*form->make)(from, form->call);
    }
    if (number && is_overwritten(node)) {
      wordless_.emplace(&node, &node);
    } else if (number) {
      numbers_.emplace(&node, std::move(*number));
    } else if (const Node* wordless = wordless_in(node)) {
      wordless_.emplace(&node, wordless);
    }
  }

  // ── Ends ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  bool read(Node& node, const Call& from, bool truncates) {
    const Node* tensor = from.argument(0) ? from.argument(0)->node_or_null() : nullptr;
    if (!tensor) return false;
    if (const auto lost = wordless_.find(tensor); lost != wordless_.end()) refuse(node, *lost->second);
    const auto known = numbers_.find(tensor);
    if (known == numbers_.end()) return false;
    if (known->second.is_real && !truncates) refuse(node, *tensor);
    const Argument value = truncated(known->second);
    if (value.is_node()) whole_.insert(&value.node());
    node.replace_all_uses_with(value);
    return true;
  }

  [[noreturn]] static void refuse(const Node& node, const Node& wordless) {
    throw Error(ErrorKind::unsupported,
                "%" + node.name() + " reads a number that " + target_text(wordless.target()) + " at %" +
                    wordless.name() + " makes of sizes; torch.export has no words for it (whole numbers, and the " +
                    "whole parts of their quotients, are written): compute it of the sizes as a number",
                node.name());
  }

  // `torch.tensor(n)` and what traces make of a number.
  void make_as_tensor(Node& node) {
    const Call from = call_of(node);
    const auto given = [&](const char* name, const Argument& otherwise) {
      const Argument* value = from.argument(name);
      return value && !value->is_none() ? *value : otherwise;
    };
    const bool is_real = from.schema().target == "aten::tensor.float";
    const DType own = is_real ? DType::float32 : is_floating(*from.argument(0)) ? DType::float64 : DType::int64;
    const auto at = graph_.inserting_before(node);
    Node& tensor = graph_.call_function(
        "aten::scalar_tensor", {*from.argument(0)},
        {{"dtype", given("dtype", own)}, {"device", given("device", Argument(Device{Symbol("cpu")}))}});
    node.replace_all_uses_with(tensor);
    graph_.erase_node(node);
  }

  // ── Numbers ────────────────────────────────────────────────────────────────────────────────────────────────────────

  static bool returns(const Node& node, SchemaType::Base base) {
    const Call from = call_of(node);
    const SchemaType* type = from && from.schema().returns.size() == 1 ? &from.schema().returns[0].type : nullptr;
    return type && type->base == base && !type->list;
  }
  bool is_whole(const Node& node) const { return whole_.contains(&node) || returns(node, SchemaType::Base::integer); }
  bool is_whole(const Argument& value) const { return value.is_node() ? is_whole(value.node()) : value.is_int(); }
  static bool is_floating(const Argument& value) {
    return value.is_node() ? returns(value.node(), SchemaType::Base::floating) : value.is_float();
  }

  std::optional<TensorNumber> number_of(const Argument& value) {
    if (is_whole(value)) return TensorNumber{value};
    if (value.is_float()) return literal(value.as_float());
    const Node* node = value.node_or_null();
    if (!node) return std::nullopt;
    if (node->is(Op::get_attr)) return constant(*node);
    const auto known = numbers_.find(node);
    return known == numbers_.end() ? std::nullopt : std::optional(known->second);
  }

  static std::optional<TensorNumber> literal(double value) {
    const auto fraction = as_fraction(value);
    if (!fraction) return std::nullopt;
    return TensorNumber{Argument(fraction->first), Argument(fraction->second), true};
  }

  // A tensor that the trace put in, and nothing writes. Asked once for each.
  std::optional<TensorNumber> constant(const Node& node) {
    const auto [known, fresh] = constants_.try_emplace(node.target().str());
    if (!fresh) return known->second;
    const std::string_view path = node.target().view();
    const std::string_view name = path.substr(path.rfind('.') + 1);  // the whole path where there is none
    if (!name.starts_with("_tensor_constant") && !path.starts_with("CONSTANTS.")) return std::nullopt;
    const at::Tensor tensor = module_.find_attribute(node.target().str());
    if (!tensor.defined() || tensor.dim() != 0 || tensor.requires_grad()) return std::nullopt;
    for (const Node* read : graph_.find_nodes(Op::get_attr, node.target())) {
      for (const Node& user : read->users()) {
        if (writes_to(user, *read)) return std::nullopt;
      }
    }
    if (at::isFloatingType(tensor.scalar_type())) known->second = literal(tensor.item<double>());
    if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false))
      known->second = TensorNumber{Argument(tensor.item<std::int64_t>())};
    return known->second;
  }

  // The first call behind `node` that has no words, where sizes and constants alone decide its result.
  const Node* wordless_in(const Node& node) const {
    const Node* first = nullptr;
    bool is_of_sizes = false;
    for (const Node* input : node.all_input_nodes()) {
      const auto lost = wordless_.find(input);
      if (lost != wordless_.end() && !first) first = lost->second;
      const bool is_number = numbers_.contains(input) || lost != wordless_.end();
      is_of_sizes |= is_number;
      if (!is_number && !input->is(Op::get_attr) && !is_whole(*input)) return nullptr;
    }
    return !is_of_sizes ? nullptr : first ? first : &node;
  }

  Argument call(const char* target, std::initializer_list<Argument> args) {
    Node& made = graph_.call_function(target, args);
    whole_.insert(&made);
    return Argument(made);
  }
  static bool is_one(const Argument& value) { return value.is_int() && value.as_int() == 1; }

  Argument floor_of(const TensorNumber& number) {
    if (number.is_root) return truncated(number);
    return is_one(number.under) ? number.over : call("operator.floordiv", {number.over, number.under});
  }
  // Towards zero.
  Argument truncated(const TensorNumber& number) {
    if (number.is_root) {
      const Argument real = Argument(graph_.call_function("torch.sym_float", {number.over}));
      return call("torch.sym_int", {Argument(graph_.call_function("torch._sym_sqrt", {real}))});
    }
    if (is_one(number.under)) return number.over;
    return call("torch.sym_int", {Argument(graph_.call_function("operator.truediv", {number.over, number.under}))});
  }
  Argument product(const Argument& left, const Argument& right) {
    if (is_one(left)) return right;
    if (is_one(right)) return left;
    if (left.is_int() && right.is_int()) return Argument(left.as_int() * right.as_int());
    return call("operator.mul", {left, right});
  }

  // ── Forms ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  std::optional<TensorNumber> made(const Call& from, const char* /*call*/) {
    const Argument* type = from.argument("dtype");
    if (type && !type->is_none() && *type != Argument(DType::int64)) return std::nullopt;
    return is_whole(*from.argument(0)) ? std::optional(TensorNumber{*from.argument(0)}) : std::nullopt;
  }

  std::optional<std::pair<TensorNumber, TensorNumber>> operands(const Call& from) {
    if (!from.argument(1)) return std::nullopt;
    const Argument &first = *from.argument(0), &second = *from.argument(1);
    const std::optional<TensorNumber> left = number_of(first), right = number_of(second);
    const bool is_known = numbers_.contains(first.node_or_null()) || numbers_.contains(second.node_or_null());
    return left && right && is_known ? std::optional(std::pair(*left, *right)) : std::nullopt;
  }

  std::optional<TensorNumber> of_wholes(const Call& from, const char* target) {
    const auto two = operands(from);
    const Argument* alpha = from.argument("alpha");
    if (!two || two->first.is_real || two->second.is_real || (alpha && !is_one(*alpha))) return std::nullopt;
    return TensorNumber{call(target, {two->first.over, two->second.over})};
  }
  std::optional<TensorNumber> reversed(const Call& from, const char* target) {
    const std::optional<TensorNumber> difference = of_wholes(from, target);
    return difference ? std::optional(TensorNumber{call("operator.neg", {difference->over})}) : std::nullopt;
  }
  std::optional<TensorNumber> multiplied(const Call& from, const char* target) {
    const auto two = operands(from);
    if (!two || two->first.is_root || two->second.is_root) return std::nullopt;
    const auto& [left, right] = *two;
    if (!left.is_real && !right.is_real) return TensorNumber{call(target, {left.over, right.over})};
    // Of a quotient that was rounded no product is followed.
    if (!left.under.is_int() || !right.under.is_int()) return std::nullopt;
    const Argument under = product(left.under, right.under);
    if (!as_fraction(1.0 / static_cast<double>(under.as_int()))) return std::nullopt;
    return TensorNumber{product(left.over, right.over), under, true};
  }
  std::optional<TensorNumber> divided(const Call& from, const char* /*call*/) {
    const auto two = operands(from);
    if (!two || two->first.is_real || two->second.is_real) return std::nullopt;
    const Argument* rounding = from.argument("rounding_mode");
    TensorNumber quotient{two->first.over, two->second.over, true};
    if (!rounding || rounding->is_none()) return quotient;
    if (!rounding->is_string()) return std::nullopt;
    return TensorNumber{rounding->as_string() == "floor" ? floor_of(quotient) : truncated(quotient)};
  }
  std::optional<TensorNumber> power(const Call& from, const char* target) {
    const auto base = number_of(*from.argument(0));
    if (!base || base->is_real || !from.argument(1)) return std::nullopt;
    const Argument& exponent = *from.argument(1);
    constexpr std::int64_t kMost = 8;
    if (exponent.is_int() && exponent.as_int() > 0 && exponent.as_int() <= kMost) {
      Argument all = base->over;
      for (std::int64_t i = 1; i < exponent.as_int(); ++i) all = call(target, {all, base->over});
      return TensorNumber{all};
    }
    return exponent.is_float() && exponent.as_float() == 0.5 ? root(from, target) : std::nullopt;
  }
  std::optional<TensorNumber> root(const Call& from, const char* /*call*/) {
    const auto base = number_of(*from.argument(0));
    return base && !base->is_real ? std::optional(TensorNumber{base->over, Argument(1), true, true}) : std::nullopt;
  }
  std::optional<TensorNumber> negated(const Call& from, const char* target) {
    const auto value = number_of(*from.argument(0));
    if (!value || value->is_root) return std::nullopt;
    return TensorNumber{call(target, {value->over}), value->under, value->is_real};
  }
  std::optional<TensorNumber> rounded_down(const Call& from, const char* /*call*/) {
    const auto value = number_of(*from.argument(0));
    return value ? std::optional(TensorNumber{floor_of(*value), Argument(1), value->is_real}) : std::nullopt;
  }
  std::optional<TensorNumber> rounded_up(const Call& from, const char* /*call*/) {
    auto value = number_of(*from.argument(0));
    if (!value || value->is_root || is_one(value->under)) return value && !value->is_root ? value : std::nullopt;
    value->over = call("operator.neg", {value->over});
    return TensorNumber{call("operator.neg", {floor_of(*value)}), Argument(1), value->is_real};
  }
  std::optional<TensorNumber> cut(const Call& from, const char* /*call*/) {
    const auto value = number_of(*from.argument(0));
    return value ? std::optional(TensorNumber{truncated(*value), Argument(1), value->is_real}) : std::nullopt;
  }
  std::optional<TensorNumber> converted(const Call& from, const char* /*call*/) {
    auto value = number_of(*from.argument(0));
    const Argument* type = from.argument("dtype");
    if (!value || !type || type->is_none()) return value;
    if (type->kind() != ArgumentKind::dtype) return std::nullopt;
    if (type->as_dtype() == DType::int64) return TensorNumber{truncated(*value)};
    if (type->as_dtype() != DType::float32 && type->as_dtype() != DType::float64) return std::nullopt;
    value->is_real = true;
    return value;
  }

  // Of a packet: its overloads that take a tensor and a number, or two tensors.
  static const NumberForm* form_of(Symbol target) {
    static constexpr NumberForm kForms[] = {
        {"prim::NumToTensor", &TensorNumbers::made},
        {"aten::tensor.int", &TensorNumbers::made},
        {"aten::tensor.float", &TensorNumbers::made},
        {"aten::add", &TensorNumbers::of_wholes, "operator.add"},
        {"aten::sub", &TensorNumbers::of_wholes, "operator.sub"},
        {"aten::rsub", &TensorNumbers::reversed, "operator.sub"},
        {"aten::mul", &TensorNumbers::multiplied, "operator.mul"},
        {"aten::floor_divide", &TensorNumbers::of_wholes, "operator.floordiv"},
        {"aten::remainder", &TensorNumbers::of_wholes, "operator.mod"},
        {"aten::maximum", &TensorNumbers::of_wholes, "torch.sym_max"},
        {"aten::max.other", &TensorNumbers::of_wholes, "torch.sym_max"},
        {"aten::minimum", &TensorNumbers::of_wholes, "torch.sym_min"},
        {"aten::min.other", &TensorNumbers::of_wholes, "torch.sym_min"},
        {"aten::div", &TensorNumbers::divided},
        {"aten::pow.Tensor_Scalar", &TensorNumbers::power, "operator.mul"},
        {"aten::sqrt", &TensorNumbers::root},
        {"aten::neg", &TensorNumbers::negated, "operator.neg"},
        {"aten::floor", &TensorNumbers::rounded_down},
        {"aten::ceil", &TensorNumbers::rounded_up},
        {"aten::trunc", &TensorNumbers::cut},
        {"aten::clone", &TensorNumbers::converted},
        {"aten::detach", &TensorNumbers::converted},
        {"aten::to.dtype", &TensorNumbers::converted},
        {"aten::to.dtype_layout", &TensorNumbers::converted},
        {"aten::to.device", &TensorNumbers::converted},
    };
    constexpr std::string_view kOverloads[] = {".Tensor", ".Scalar", ".Tensor_mode", ".Scalar_mode"};
    std::string_view name = target.view();
    const std::string_view packet = packet_of(name);
    if (std::ranges::find(kOverloads, name.substr(packet.size())) != std::end(kOverloads)) name = packet;
    const auto* row = std::ranges::find(kForms, name, &NumberForm::target);
    return row == std::end(kForms) ? nullptr : row;
  }

  Graph& graph_;
  const GraphModule& module_;
  std::map<const Node*, TensorNumber> numbers_;  // looked up, not gone through
  std::map<const Node*, const Node*> wordless_;  // by tensor of sizes: the call that has no words; likewise
  std::set<const Node*> whole_;                  // numbers that were made; likewise
  std::map<std::string, std::optional<TensorNumber>> constants_;
  std::vector<Node*> made_;
};

}  // namespace

void compute_with_numbers(Graph& graph, const GraphModule& module) { TensorNumbers(graph, module).run(); }

}  // namespace fx::pt2
