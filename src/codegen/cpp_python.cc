// The calls that have Python's names: `operator.add` on numbers, `operator.getitem`, `builtins.getattr`, assertions.
// And values by themselves.
#include <algorithm>
#include <array>

#include <fxgraph/codegen/cpp_calls.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

struct Infix {
  std::string_view target;
  std::string_view text;
  bool compares;
};

constexpr std::array kInfix = std::to_array<Infix>({
    {"operator.add", " + ", false},     {"operator.iadd", " + ", false},    {"operator.sub", " - ", false},
    {"operator.isub", " - ", false},    {"operator.mul", " * ", false},     {"operator.imul", " * ", false},
    {"operator.truediv", " / ", false}, {"operator.floordiv", "//", false}, {"operator.ifloordiv", "//", false},
    {"operator.mod", "%", false},       {"operator.pow", "**", false},      {"operator.ipow", "**", false},
    {"operator.eq", " == ", true},      {"operator.ne", " != ", true},      {"operator.lt", " < ", true},
    {"operator.le", " <= ", true},      {"operator.gt", " > ", true},       {"operator.ge", " >= ", true},
    {"operator.and_", " & ", false},    {"operator.or_", " | ", false},
});

struct Read {
  std::string_view name;
  std::string_view text;
  CppKind kind;
};

constexpr std::array kReads = std::to_array<Read>({
    {"shape", ".sizes().vec()", CppKind::integers},
    {"dtype", ".scalar_type()", CppKind::other},
    {"device", ".device()", CppKind::other},
    {"ndim", ".dim()", CppKind::integer},
    {"requires_grad", ".requires_grad()", CppKind::boolean},
    {"data", ".detach()", CppKind::tensor},
});

// Sizes as methods, where schemas do not tell one from the other.
constexpr std::array kMethodReads = std::to_array<Read>({
    {"size", ".sizes().vec()", CppKind::integers},
    {"dim", ".dim()", CppKind::integer},
    {"ndimension", ".dim()", CppKind::integer},
    {"numel", ".numel()", CppKind::integer},
    {"item", ".item()", CppKind::scalar},
});

CppKind literal_kind(const Argument& argument) {
  switch (argument.kind()) {
    case ArgumentKind::none: return CppKind::tensor;
    case ArgumentKind::boolean: return CppKind::boolean;
    case ArgumentKind::integer: return CppKind::integer;
    case ArgumentKind::floating: return CppKind::floating;
    case ArgumentKind::string: return CppKind::string;
    default: return CppKind::other;
  }
}

bool is_number(CppKind kind) {
  return kind == CppKind::integer || kind == CppKind::floating || kind == CppKind::boolean;
}

}  // namespace

bool CppCalls::python(const Node& node, Value& result) {
  const std::string_view target = node.target().view();
  if (node.is(Op::call_method)) {
    if (node.args().size() != 1 || !node.arg(0).is_node()) return false;
    for (const Read& read : kMethodReads) {
      if (target != read.name) continue;
      result = {values_[node.arg(0).node()].text + std::string(read.text), {read.kind}};
      return true;
    }
    return false;
  }
  if (target == "operator.getitem") return result = getitem(node), true;
  if (target == "builtins.getattr") return result = getattr(node), true;
  if (target == "torch._assert" && node.args().size() == 2) {
    const Value condition = value(node.arg(0));
    const std::string text = condition.type.kind == CppKind::tensor ? condition.text + ".item<bool>()" : condition.text;
    return result = {"TORCH_CHECK(" + text + ", " + value(node.arg(1)).text + ")", {CppKind::nothing}}, true;
  }
  // None is a tensor that is not defined.
  if ((target == "operator.is_" || target == "operator.is_not") && node.args().size() == 2 && node.arg(1).is_none()) {
    const Value of = value(node.arg(0));
    if (of.type.kind != CppKind::tensor) return false;
    return result = {(target == "operator.is_" ? "!" : "") + of.text + ".defined()", {CppKind::boolean}}, true;
  }
  if (target == "builtins.len" && node.args().size() == 1) {
    const Value of = value(node.arg(0));
    if (of.type.kind != CppKind::tensors && of.type.kind != CppKind::integers) return false;
    return result = {"static_cast<int64_t>(" + of.text + ".size())", {CppKind::integer}}, true;
  }
  if ((target == "math.sqrt" || target == "math.log") && node.args().size() == 1) {
    const std::string function = target == "math.sqrt" ? "std::sqrt" : "std::log";
    return result = {function + "(static_cast<double>(" + value(node.arg(0)).text + "))", {CppKind::floating}}, true;
  }
  if (target == "math.trunc" && node.args().size() == 1)
    return result = {"static_cast<int64_t>(" + value(node.arg(0)).text + ")", {CppKind::integer}}, true;
  return infix(node, result);
}

// Of numbers only: on tensors these are operators.
bool CppCalls::infix(const Node& node, Value& result) {
  const auto form = std::ranges::find(kInfix, node.target().view(), &Infix::target);
  if (form == kInfix.end() || node.args().size() != 2) return false;
  if (node.arg(0).is_container() || node.arg(1).is_container()) return false;
  const Value a = value(node.arg(0)), b = value(node.arg(1));
  if (!is_number(a.type.kind) || !is_number(b.type.kind)) return false;
  if (form->text == "**") return result = power(node, a, b), true;
  const bool integers = a.type.kind != CppKind::floating && b.type.kind != CppKind::floating;
  CppKind kind = form->compares ? CppKind::boolean : integers ? CppKind::integer : CppKind::floating;
  if (form->text == "//" || form->text == "%") {
    if (!integers) return false;
    used_floor_ = true;
    result = {std::string(form->text == "//" ? "floor_divide(" : "floor_remainder(") + a.text + ", " + b.text + ")",
              {kind}};
    return true;
  }
  const bool bitwise = form->text == " & " || form->text == " | ";
  if (bitwise && a.type.kind == CppKind::boolean && b.type.kind == CppKind::boolean) kind = CppKind::boolean;
  const bool divides = form->text == " / ";
  if (divides) kind = CppKind::floating;
  result = {"(" + (divides ? "static_cast<double>(" + a.text + ")" : a.text) + std::string(form->text) + b.text + ")",
            {kind}};
  return true;
}

// Of two ints Python gives an int or a float, as the second is.
CppCalls::Value CppCalls::power(const Node& node, const Value& a, const Value& b) {
  const bool integers = a.type.kind != CppKind::floating && b.type.kind != CppKind::floating;
  const Argument& exponent = node.arg(1);
  if (integers && !exponent.is_int())
    throw Error(ErrorKind::unsupported,
                "C++ has one type for a power: make the exponent a literal, or one of the two a float");
  if (!integers || exponent.as_int() < 0)
    return {"std::pow(static_cast<double>(" + a.text + "), static_cast<double>(" + b.text + "))", {CppKind::floating}};
  used_int_pow_ = true;
  return {"int_pow(" + a.text + ", " + b.text + ")", {CppKind::integer}};
}

CppCalls::Value CppCalls::element(const Value& list, const std::string& index, CppKind kind) {
  used_element_ = true;
  return {"element(" + list.text + ", " + index + ")", {kind}};
}

CppCalls::Value CppCalls::getitem(const Node& node) {
  const Argument& item = node.arg(1);
  const Value of = value(node.arg(0));
  const std::size_t count = of.type.elements.size();
  const bool fixed = of.type.kind == CppKind::tuple || of.type.kind == CppKind::stack;
  if (fixed && item.is_int()) {
    const std::int64_t i = item.as_int() < 0 ? item.as_int() + static_cast<std::int64_t>(count) : item.as_int();
    if (i < 0 || i >= static_cast<std::int64_t>(count)) {
      throw Error(ErrorKind::invalid_argument,
                  "there is no element " + std::to_string(item.as_int()) + " in a tuple of " + std::to_string(count));
    }
    const CppType& type = of.type.elements[static_cast<std::size_t>(i)];
    if (of.type.kind == CppKind::tuple) return {"std::get<" + std::to_string(i) + ">(" + of.text + ")", type};
    return {of.text + "[" + std::to_string(i) + "]" + std::string(cpp_from_ivalue(type.kind)), type};
  }
  if (of.type.kind == CppKind::tensors || of.type.kind == CppKind::integers) {
    const CppKind kind = of.type.kind == CppKind::tensors ? CppKind::tensor : CppKind::integer;
    if (item.is_int() || item.is_node()) return this->element(of, value(item).text, kind);
  }
  if (of.type.kind == CppKind::tensor) return index(of.text, item);
  throw Error(ErrorKind::unsupported,
              "C++ cannot take " + to_string(item) + " of this value; take elements one by one");
}

CppCalls::Value CppCalls::index(const std::string& tensor, const Argument& index) {
  std::string elements;
  if (index.is_tuple()) {
    for (const Argument& each : index.elements()) elements += (elements.empty() ? "" : ", ") + index_element(each);
  } else {
    elements = index_element(index);
  }
  return {tensor + ".index({" + elements + "})", {CppKind::tensor}};
}

std::string CppCalls::index_element(const Argument& element) {
  if (element.kind() == ArgumentKind::ellipsis) return "torch::indexing::Ellipsis";
  if (element.is_none()) return "torch::indexing::None";
  if (element.is_slice()) {
    std::string text;
    for (const Argument& each : element.elements()) text += (text.empty() ? "" : ", ") + index_element(each);
    return "torch::indexing::Slice(" + text + ")";
  }
  if (element.is_list()) {  // of numbers: an index tensor
    return "torch::tensor(" + value(element).text + ")";
  }
  return value(element).text;
}

CppCalls::Value CppCalls::getattr(const Node& node) {
  if (node.args().size() == 2 && node.arg(1).is_string()) {
    const auto read = std::ranges::find(kReads, node.arg(1).as_string(), &Read::name);
    if (read != kReads.end()) return {value(node.arg(0)).text + std::string(read->text), {read->kind}};
  }
  throw Error(ErrorKind::unsupported, "C++ has nothing for this getattr; read shape, dtype, device or ndim");
}

CppCalls::Value CppCalls::value(const Argument& argument) {
  if (const Node* node = argument.node_or_null()) return values_[*node];
  if (argument.is_none()) return {"torch::Tensor()", {CppKind::tensor}};
  if (!argument.is_container() || argument.kind() == ArgumentKind::complex)
    return {cpp_literal(argument), {literal_kind(argument)}};
  if (argument.is_slice()) throw Error(ErrorKind::unsupported, "a slice is no C++ value");
  CppType type{CppKind::tuple};
  std::vector<std::string> texts;
  for (const Argument& element : argument.elements()) {
    const Value each = value(element);
    type.elements.push_back(each.type);
    texts.push_back(each.text);
  }
  const auto all = [&](CppKind kind, std::size_t first, std::size_t step) {
    for (std::size_t i = first; i < type.elements.size(); i += step) {
      if (type.elements[i].kind != kind) return false;
    }
    return true;
  };
  std::string joined;
  for (std::size_t i = 0; i < texts.size(); ++i) joined += (i ? ", " : "") + texts[i];
  if (argument.is_dict()) {
    if (!all(CppKind::string, 0, 2) || !all(CppKind::tensor, 1, 2))
      throw Error(ErrorKind::unsupported, "C++ returns dicts from strings to tensors only; return a tuple");
    std::string pairs;
    for (std::size_t i = 0; i < texts.size(); i += 2)
      pairs += std::string(i ? ", " : "") + "{" + texts[i] + ", " + texts[i + 1] + "}";
    return {"std::map<std::string, torch::Tensor>{" + pairs + "}", {CppKind::other}};
  }
  if (argument.is_list() && all(CppKind::tensor, 0, 1))
    return {"std::vector<torch::Tensor>{" + joined + "}", {CppKind::tensors}};
  if (argument.is_list() && all(CppKind::integer, 0, 1))
    return {"std::vector<int64_t>{" + joined + "}", {CppKind::integers}};
  return {"std::make_tuple(" + joined + ")", type};
}

}  // namespace fx::internal
