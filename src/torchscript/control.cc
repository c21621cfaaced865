// Conditions, loops and exceptions.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <unordered_set>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/importer.h>
#include <fxgraph/torchscript/source.h>

namespace fx::torchscript {
namespace {

/// Does running the block surely raise?
bool always_raises(const JitBlock& block) {
  for (const JitNode* node : block.nodes()) {
    if (node->kind() == torch::jit::prim::RaiseException) return true;
    if (node->kind() == torch::jit::prim::If && always_raises(*node->blocks()[0]) &&
        always_raises(*node->blocks()[1])) {
      return true;
    }
  }
  return false;
}

/// Operators that can be run although the program would not have: they change nothing and never fail.
bool is_harmless(const JitBlock& block);

bool is_harmless(const JitNode& node) {
  if (node.kind() == torch::jit::prim::If) return is_harmless(*node.blocks()[0]) && is_harmless(*node.blocks()[1]);
  static const std::unordered_set<std::string> kHarmless{"prim::Constant",
                                                         "prim::ListConstruct",
                                                         "prim::TupleConstruct",
                                                         "prim::GetAttr",
                                                         "prim::dtype",
                                                         "prim::device",
                                                         "prim::is_cuda",
                                                         "aten::dim",
                                                         "aten::len",
                                                         "aten::numel",
                                                         "aten::eq",
                                                         "aten::ne",
                                                         "aten::lt",
                                                         "aten::le",
                                                         "aten::gt",
                                                         "aten::ge",
                                                         "aten::add",
                                                         "aten::sub",
                                                         "aten::mul",
                                                         "aten::__not__",
                                                         "aten::__and__",
                                                         "aten::__or__",
                                                         "aten::__is__",
                                                         "aten::__isnot__",
                                                         "prim::unchecked_cast",
                                                         "aten::is_floating_point",
                                                         "aten::format",
                                                         "aten::__contains__",
                                                         "prim::Uninitialized"};
  const auto is_tensor = [](const JitValue* value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); };
  if (node.kind().is_aten() && std::ranges::any_of(node.outputs(), is_tensor))
    return false;  // of sizes that do not fit
  if (std::string(node.kind().toQualString()) == "aten::size") return node.inputs().size() == 1;
  return kHarmless.contains(node.kind().toQualString());
}

bool is_harmless(const JitBlock& block) {
  const auto nodes = block.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [](const JitNode* node) { return is_harmless(*node); });
}

/// May the block be run although the program would not, when `may_raise`?
bool may_run(const JitBlock& block, bool may_raise) {
  const auto nodes = block.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [&](const JitNode* node) {
    const std::string_view kind = node->kind().toQualString();
    return is_harmless(*node) || (may_raise && (kind == "aten::size" || kind == "aten::__getitem__"));
  });
}

constexpr int kMostWords = 6;  // so deep do conditions show

/// The comparison that is true when this one is not, for numbers that are no floats (NaN) and no tensors.
const char* opposite(Symbol target) {
  static constexpr std::pair<const char*, const char*> kOpposites[] = {
      {"aten::eq.int", "aten::ne.int"}, {"aten::ne.int", "aten::eq.int"}, {"aten::lt.int", "aten::ge.int"},
      {"aten::ge.int", "aten::lt.int"}, {"aten::gt.int", "aten::le.int"}, {"aten::le.int", "aten::gt.int"}};
  for (const auto& [from, to] : kOpposites) {
    if (target == from) return to;
  }
  return nullptr;
}

}  // namespace

bool raises_when(const JitValue& value, bool outcome) {
  if (value.uses().size() != 1) return false;
  const JitNode& user = *value.uses()[0].user;
  if (user.kind() == torch::jit::aten::__not__) return raises_when(*user.output(), !outcome);
  if (user.kind() != torch::jit::prim::If) return false;
  const JitBlock& taken = *user.blocks()[outcome ? 0 : 1];
  if (always_raises(taken)) return true;
  // It is part of a larger condition when the branch is a bare constant.
  if (user.outputs().size() != 1 || taken.outputs()[0]->type()->kind() != c10::TypeKind::BoolType) return false;
  const auto result = torch::jit::toIValue(taken.outputs()[0]);
  return result && raises_when(*user.output(), result->toBool());
}

std::optional<bool> Importer::truth_of(const AbstractValue& value) const {
  if (!value.is_constant() || !value.constant.isBool()) return std::nullopt;
  return value.constant.toBool();
}

// The types and ranks of attributes are in the file. They stay calls in the graph, so that a model can be converted to
// another type later, and are looked at only where they decide which way to go.
std::optional<bool> Importer::truth_of_types(const Node& condition) const {
  const bool equal = condition.target() == "aten::eq.int";
  if ((!equal && condition.target() != "aten::ne.int") || condition.args().size() != 2) return std::nullopt;
  const std::optional<std::int64_t> a = known_number(condition.arg(0)), b = known_number(condition.arg(1));
  if (!a || !b) return std::nullopt;
  return (*a == *b) == equal;
}

std::optional<std::int64_t> Importer::known_number(const fx::Argument& value) const {
  if (value.is_int()) return value.as_int();
  const Node* node = value.node_or_null();
  const bool dtype = node && node->target() == "prim::dtype";
  if (!dtype && !(node && node->target() == "aten::dim")) return std::nullopt;
  const Node* owner = node->arg(0).node_or_null();
  if (!owner || !owner->is(Op::get_attr)) return std::nullopt;
  const auto tensor = std::ranges::find(tensors, owner->target().str(), &NamedTensor::path);
  if (tensor == tensors.end()) return std::nullopt;
  return dtype ? static_cast<std::int64_t>(tensor->tensor.scalar_type()) : tensor->tensor.dim();
}

void Importer::take_branch(const JitNode& node, Frame& frame, std::size_t branch) {
  Values results = run_block(*node.blocks()[branch], frame);
  for (std::size_t i = 0; i < results.size(); ++i) set(node, frame, std::move(results[i]), i);
}

void Importer::run_if(const JitNode& node, Frame& frame) {
  const AbstractValue condition = value_of(node.input(), frame);
  if (const std::optional<bool> known = truth_of(condition)) return take_branch(node, frame, *known ? 0 : 1);
  if (condition.is_node()) {
    if (const std::optional<bool> known = truth_of_types(*condition.node))
      return take_branch(node, frame, *known ? 0 : 1);
    if (assert_instead(node, frame, *condition.node)) return;
    if (combine_conditions(node, frame, *condition.node)) return;
    if (skip_branches(node, frame)) return;
  }
  if (const std::optional<c10::IValue> known = decide(node, frame, condition))
    return take_branch(node, frame, known->toBool() ? 0 : 1);
  const bool asks_for_none =
      condition.is_node() && packet_of(condition.node->target().view()).starts_with("aten::__is");
  refuse(node, frame,
         asks_for_none ? "control flow that depends on whether an optional input is given cannot become a graph; fix "
                         "that input with LoadOptions::concrete_inputs, or " +
                             cure()
                       : "control flow that depends on the input's data or shape cannot become a graph; " + cure());
}

std::string Importer::cure() const {
  return examples_ ? "save the model with torch.jit.trace" : "give examples: LoadOptions::examples, or --input";
}

// A number, bool or string that hangs on the form of the inputs is what it is at the examples, and the graph asserts
// that.
std::optional<c10::IValue> Importer::decide(const JitNode& node, Frame& frame, const AbstractValue& value) {
  if (value.is_constant()) return value.constant;
  if (!examples_ || !value.is_node()) return std::nullopt;
  Node& asked = *value.node;
  const c10::IValue* found = examples_->value(asked);
  if (examples_->hangs_on_data(asked))
    refuse(node, frame, "control flow that hangs on the elements of a tensor cannot become a graph");
  if (!found)
    refuse(node, frame, "what decides here has no value at the examples (" + examples_->failure() + "); " + cure());
  if ((!is_number(*found) && !found->isString()) || (inside_leaf_ && asks_for_sizes(Argument(asked))))
    return std::nullopt;
  const c10::IValue known = *found;  // nodes that are made here move it
  const bool is_state = node.kind() == torch::jit::prim::SetAttr;
  const std::string line = is_state ? "self." + node.s(torch::jit::attr::name) : source_line(node);
  const SourceLocation place = location_of(node);
  const std::string number = to_string(*fx::to_argument(known));
  bool fails = known.isBool() && !known.toBool();
  Node* said = &asked;
  for (; said->is_call("aten::__not__") && said->arg(0).is_node(); fails = !fails) said = &said->arg(0).node();
  const char* const flipped = fails ? opposite(said->target()) : nullptr;
  std::string holds = in_words(Argument(*said), 0, flipped ? fx::Symbol(flipped) : fx::Symbol());
  if (!known.isBool()) holds += " == " + number;
  if (fails && !flipped) holds = "not (" + holds + ")";
  const std::string reason =
      "the program was read for inputs at which " + holds + ": `" + (line.empty() ? asked.name() : line) +
      (is_state ? "` becomes " + number : "` goes another way") + (place.known() ? " (" + place.str() + ")" : "");
  if (!decided_.insert(condition_text(Argument(asked)) + " is " + to_string(*fx::to_argument(known))).second)
    return known;
  if (known.isBool()) {
    emit_assert(node, frame, asked, known.toBool(), reason);
  } else {
    const char* const equal = known.isInt() ? "aten::eq.int" : known.isString() ? "aten::eq.str" : "aten::eq.float";
    Node& same = emit_call(node, frame, equal, {Argument(asked), *fx::to_argument(known)});
    emit_assert(node, frame, same, true, reason);
  }
  return known;
}

bool Importer::asks_for_sizes(const fx::Argument& value) const {
  const Node* node = value.node_or_null();
  if (!node || !node->is(Op::call_function)) return false;
  const std::string_view packet = packet_of(node->target().view());
  bool of_tensor = false, found = false;
  node->for_each_input([&](Node& input) {
    const c10::IValue* known = examples_->value(input);
    of_tensor = of_tensor || (known && known->isTensor());
    found = found || asks_for_sizes(Argument(input));
  });
  constexpr std::string_view kSizes[] = {"aten::size", "aten::numel", "aten::len", "aten::stride"};
  return of_tensor ? std::ranges::find(kSizes, packet) != std::end(kSizes)
                   : found && packet != "aten::len";  // of sizes that is the rank
}

// `x.size(2) % 8 == 0`, as far as it is arithmetic on sizes and numbers; what else there is goes by its name. A
// comparison may show `as` another one.
std::string Importer::in_words(const fx::Argument& argument, int depth, fx::Symbol as) const {
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"aten::add", "+"},       {"aten::sub", "-"},           {"aten::mul", "*"}, {"aten::floordiv", "//"},
      {"aten::remainder", "%"}, {"aten::div", "/"},           {"aten::eq", "=="}, {"aten::ne", "!="},
      {"aten::lt", "<"},        {"aten::le", "<="},           {"aten::gt", ">"},  {"aten::ge", ">="},
      {"aten::__is__", "is"},   {"aten::__isnot__", "is not"}};
  const Node* node = argument.node_or_null();
  if (!node || !node->is(Op::call_function) || depth > kMostWords) return node ? node->name() : to_string(argument);
  const std::string_view packet = packet_of((as.empty() ? node->target() : as).view());
  const auto part = [&](std::size_t i) { return in_words(node->arg(i), depth + 1, {}); };
  const auto sign = std::ranges::find(kSigns, packet, &std::pair<std::string_view, std::string_view>::first);
  const bool of_tensors = node->target().view().ends_with(".Tensor") || node->target().view().ends_with(".Scalar");
  if (sign != std::end(kSigns) && node->args().size() == 2 && !of_tensors) {
    const std::string text = part(0) + " " + std::string(sign->second) + " " + part(1);
    return depth == 0 ? text : "(" + text + ")";
  }
  if (packet == "aten::__not__") return "not " + part(0);
  if (packet == "aten::dim" || packet == "aten::numel") return part(0) + "." + std::string(packet.substr(6)) + "()";
  if (packet == "aten::size" && node->args().size() == 2) return part(0) + ".size(" + part(1) + ")";
  if (packet == "aten::len") return "len(" + part(0) + ")";
  if (node->target() == python::kGetItem && node->args().size() == 2) return part(0) + "[" + part(1) + "]";
  return packet == "aten::size" ? part(0) + ".size()" : node->name();
}

// Equal texts are equal conditions: numbers of numbers, down to the sizes of a tensor and the inputs.
std::string Importer::condition_text(const fx::Argument& argument) const {
  const Node* node = argument.node_or_null();
  const c10::IValue* known = node ? examples_->value(*node) : nullptr;
  if (!known || !is_number(*known) || !node->is(Op::call_function) || examples_->hangs_on_data(*node))
    return to_string(argument);
  std::string text = node->target().str() + "@" + std::to_string(examples_->moment(*node)) + "(";
  for (const Argument& operand : node->args()) text += condition_text(operand) + ", ";
  return text + ")";
}

// if condition: raise … -> torch._assert
bool Importer::assert_instead(const JitNode& node, Frame& frame, Node& condition) {
  const bool then_raises = always_raises(*node.blocks()[0]);
  const bool else_raises = always_raises(*node.blocks()[1]);
  if (then_raises == else_raises) return false;
  const JitBlock& raising = *node.blocks()[then_raises ? 0 : 1];
  emit_assert(node, frame, condition, /*expected=*/else_raises, message_of(raising, frame));
  take_branch(node, frame, then_raises ? 1 : 0);
  return true;
}

void Importer::emit_assert(const JitNode& node, Frame& frame, Node& condition, bool expected,
                           const std::string& message) {
  Node& holds = expected ? condition : negate(node, frame, condition);
  AssertionWriter([&](Symbol target, ArgumentSpan args) -> Node& {
    return emit_call(node, frame, target, args.to_vector());
  }).add(holds, message);
}

Node& Importer::negate(const JitNode& node, Frame& frame, Node& condition) {
  const char* flipped = opposite(condition.target());
  if (!flipped) return emit_call(node, frame, "aten::__not__", {Argument(condition)});
  return emit_call(node, frame, flipped, condition.args().to_vector());
}

// `a and b`, `a or b` are conditions too: then- or else-block is a bare constant, the other computes b.
bool Importer::combine_conditions(const JitNode& node, Frame& frame, Node& condition) {
  if (node.outputs().size() != 1 || node.output()->type()->kind() != c10::TypeKind::BoolType) return false;
  for (std::size_t constant = 0; constant < 2; ++constant) {
    const JitBlock& bare = *node.blocks()[constant];
    const JitBlock& other = *node.blocks()[1 - constant];
    if (!is_harmless(bare) || !may_run(other, true)) continue;
    const std::optional<bool> known = truth_of(run_block(bare, frame)[0]);
    if (!known || !may_run(other, raises_when(*node.output(), *known))) continue;
    const AbstractValue rest = run_block(other, frame)[0];
    // then-block constant: condition or rest, not condition and rest; else-block constant: the other way round.
    Node& where = (constant == 0) == *known ? condition : negate(node, frame, condition);
    if (const std::optional<bool> certain = truth_of(rest)) {
      set(node, frame, *certain == *known ? rest : AbstractValue::of_node(where, c10::BoolType::get()));
      return true;
    }
    const Argument second = to_argument(rest, nullptr, node, frame);
    Node& both = emit_call(node, frame, *known ? "aten::__or__.bool" : "aten::__and__.bool", {Argument(where), second});
    set(node, frame, AbstractValue::of_node(both, c10::BoolType::get()));
    return true;
  }
  return false;
}

// Both ways do nothing but warn, and give the same values.
bool Importer::skip_branches(const JitNode& node, Frame& frame) {
  for (const JitBlock* block : node.blocks()) {
    for (const JitNode* inner : block->nodes()) {
      if (!is_harmless(*inner) && inner->kind() != torch::jit::aten::warn) return false;
    }
  }
  Values first = run_block(*node.blocks()[0], frame);
  const Values second = run_block(*node.blocks()[1], frame);
  if (!std::equal(first.begin(), first.end(), second.begin(), second.end(), is_same)) return false;
  for (std::size_t i = 0; i < first.size(); ++i) set(node, frame, std::move(first[i]), i);
  return true;
}

void Importer::run_loop(const JitNode& node, Frame& frame) {
  const auto decided = [&](const AbstractValue& value, const char* what) {
    const std::optional<c10::IValue> known = decide(node, frame, value);
    if (!known) refuse(node, frame, std::string(what) + " cannot become a graph; " + cure());
    return *known;
  };
  constexpr const char* kRounds = "a loop whose number of rounds depends on the input";
  const std::int64_t rounds = decided(value_of(node.inputs()[0], frame), kRounds).toInt();
  bool goes_on = decided(value_of(node.inputs()[1], frame), kRounds).toBool();
  Values carried;
  for (std::size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(value_of(node.inputs()[i], frame));
  const JitBlock& body = *node.blocks()[0];
  for (std::int64_t round = 0; round < rounds && goes_on; ++round) {
    if (round >= options_.max_unrolled_rounds) {
      refuse(node, frame,
             "a loop of more than " + std::to_string(options_.max_unrolled_rounds) +
                 " rounds; raise LoadOptions::max_unrolled_rounds");
    }
    frame.values[body.inputs()[0]] = AbstractValue::of_constant(round);
    for (std::size_t i = 0; i < carried.size(); ++i) frame.values[body.inputs()[i + 1]] = carried[i];
    Values results = run_block(body, frame);
    goes_on = decided(results[0], "a loop that ends when the input says so").toBool();
    carried.assign(results.begin() + 1, results.end());
  }
  for (std::size_t i = 0; i < carried.size(); ++i) set(node, frame, std::move(carried[i]), i);
}

void Importer::raise(const JitNode& node, Frame& frame) {
  refuse(node, frame, "the model always raises '" + text_of(node.inputs()[0], frame) + "'");
}

std::string Importer::message_of(const JitBlock& block, Frame& frame) {
  for (const JitNode* node : block.nodes()) {
    if (node->kind() == torch::jit::prim::RaiseException) {
      std::string text = text_of(node->inputs()[0], frame);
      constexpr std::string_view kPrefix = "AssertionError: ";
      if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
      return text.empty() ? "assertion failed" : text;
    }
    if (node->kind() == torch::jit::prim::If && always_raises(*node->blocks()[0]))
      return message_of(*node->blocks()[0], frame);
  }
  return "assertion failed";
}

}  // namespace fx::torchscript
