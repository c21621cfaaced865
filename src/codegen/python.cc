#include "codegen/python.h"

#include <algorithm>
#include <array>
#include <vector>

#include "codegen/releases.h"
#include "ir/target.h"

namespace fx {

namespace {

struct Form {
  std::string_view target;
  std::string_view text;  // {} stands for the next argument
};

// torch.fx's magic methods, sorted by target.
constexpr std::array kInfix = std::to_array<Form>({
    {"operator.add", "{} + {}"},       {"operator.and_", "{} & {}"},    {"operator.eq", "{} == {}"},
    {"operator.floordiv", "{} // {}"}, {"operator.ge", "{} >= {}"},     {"operator.getitem", "{}[{}]"},
    {"operator.gt", "{} > {}"},        {"operator.inv", "~{}"},         {"operator.invert", "~{}"},
    {"operator.le", "{} <= {}"},       {"operator.lshift", "{} << {}"}, {"operator.lt", "{} < {}"},
    {"operator.matmul", "{} @ {}"},    {"operator.mod", "{} % {}"},     {"operator.mul", "{} * {}"},
    {"operator.ne", "{} != {}"},       {"operator.neg", "-{}"},         {"operator.or_", "{} | {}"},
    {"operator.pos", "+{}"},           {"operator.pow", "{} ** {}"},    {"operator.rshift", "{} >> {}"},
    {"operator.sub", "{} - {}"},       {"operator.truediv", "{} / {}"}, {"operator.xor", "{} ^ {}"},
});
constexpr std::array kInPlace = std::to_array<Form>({
    {"operator.iadd", "{} += {}"},
    {"operator.iand", "{} &= {}"},
    {"operator.ifloordiv", "{} //= {}"},
    {"operator.ilshift", "{} <<= {}"},
    {"operator.imatmul", "{} @= {}"},
    {"operator.imod", "{} %= {}"},
    {"operator.imul", "{} *= {}"},
    {"operator.ior", "{} |= {}"},
    {"operator.ipow", "{} **= {}"},
    {"operator.irshift", "{} >>= {}"},
    {"operator.isub", "{} -= {}"},
    {"operator.itruediv", "{} /= {}"},
    {"operator.ixor", "{} ^= {}"},
});

template <std::size_t N>
const Form* find_form(const std::array<Form, N>& forms, std::string_view target) {
  static_assert(N > 0);
  const auto at = std::ranges::lower_bound(forms, target, {}, &Form::target);
  return at != forms.end() && at->target == target ? &*at : nullptr;
}

std::size_t arity(const Form& form) { return static_cast<std::size_t>(std::ranges::count(form.text, '{')); }

std::string filled(const Form& form, const Node& node) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < form.text.size(); ++i) {
    if (form.text.substr(i).starts_with("{}")) {
      out += to_string(node.arg(next++), NodeStyle::plain);
      ++i;
    } else {
      out += form.text[i];
    }
  }
  return out;
}

class PythonWriter {
 public:
  explicit PythonWriter(const Graph& graph) : graph_(graph), releases_(graph) {}

  std::string method() {
    for (const Node& node : graph_.nodes()) statement(node);
    std::string header = "def forward(self";
    for (const std::string& parameter : parameters_) header += ", " + parameter;
    return header + "):\n" + (body_.empty() ? "    pass\n" : body_);
  }

 private:
  static std::string annotation(const Node& node) {
    const Meta* meta = node.find_meta();
    const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    return type ? " : " + *type : "";
  }

  void statement(const Node& node) {
    switch (node.op()) {
      case Op::placeholder: return parameter(node);
      case Op::output: line("return " + to_string(node.arg(0), NodeStyle::plain)); return;
      case Op::get_attr: line(assigned(node, python_attribute(node.target().view()))); break;
      case Op::call_module: line(assigned(node, python_attribute(node.target().view()) + call(node, 0))); break;
      case Op::call_method: line(assigned(node, receiver(node) + "." + node.target().str() + call(node, 1))); break;
      case Op::call_function: line(function(node)); break;
    }
    release(node);
  }

  void parameter(const Node& node) {
    std::string text = node.target().str();
    std::string_view raw = text;
    while (raw.starts_with('*')) raw.remove_prefix(1);
    if (!is_identifier(raw)) text = node.name();
    const std::string name = node.name();
    if (is_identifier(raw) && raw != name) body_ += "    " + name + " = " + std::string(raw) + "\n";
    text += annotation(node);
    if (!node.args().empty()) text += " = " + to_string(node.args()[0], NodeStyle::plain);
    parameters_.push_back(text);
  }

  std::string function(const Node& node) {
    const std::string_view target = node.target().view();
    const bool plain = node.kwargs().empty();
    if (std::optional<std::string> infix = python_infix(node)) return assigned(node, *infix);
    if (const Form* form = find_form(kInPlace, target); form && plain && node.args().size() == arity(*form)) {
      return filled(*form, node) + ";  " + node.name() + annotation(node) + " = " + value(node.arg(0));
    }
    if (target == "builtins.getattr" && plain && node.args().size() == 2 && node.arg(1).is_string() &&
        is_identifier(node.arg(1).as_string())) {
      return assigned(node, receiver(node) + "." + std::string(node.arg(1).as_string()));
    }
    std::string name = target_text(node.target());
    if (name.starts_with("builtins.")) name = name.substr(9);
    return assigned(node, name + call(node, 0));
  }

  static std::string assigned(const Node& node, const std::string& expression) {
    return node.name() + annotation(node) + " = " + expression;
  }
  static std::string value(const Argument& argument) { return to_string(argument, NodeStyle::plain); }

  // Literals need parentheses before a dot.
  static std::string receiver(const Node& node) {
    if (node.args().empty()) return "None";
    return node.arg(0).is_node() ? value(node.arg(0)) : "(" + value(node.arg(0)) + ")";
  }

  static std::string call(const Node& node, std::size_t skip) {
    std::string out = "(";
    const auto separate = [&] {
      if (out.size() > 1) out += ", ";
    };
    for (std::size_t i = skip; i < node.args().size(); ++i) {
      separate();
      out += value(node.args()[i]);
    }
    for (const auto& [name, argument] : node.kwargs()) {
      separate();
      out += name.str() + " = " + value(argument);
    }
    return out + ")";
  }

  void line(const std::string& text) { body_ += "    " + text + "\n"; }

  void release(const Node& node) {
    const std::vector<const Node*>& values = releases_.after(node);
    if (values.empty()) return;
    body_.back() = ';';
    body_ += "  ";
    for (const Node* value : values) body_ += value->name() + " = ";
    body_ += "None\n";
  }

  const Graph& graph_;
  Releases releases_;
  std::vector<std::string> parameters_;
  std::string body_;
};

}  // namespace

std::string python_attribute(std::string_view path) {
  std::string out = "self";
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view atom = path.substr(0, dot);
    out = is_identifier(atom) ? out + "." + std::string(atom) : "getattr(" + out + ", \"" + std::string(atom) + "\")";
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return out;
}

std::optional<std::string> python_infix(const Node& node) {
  const Form* form = find_form(kInfix, node.target().view());
  if (!form || !node.kwargs().empty() || node.args().size() != arity(*form)) return std::nullopt;
  return filled(*form, node);
}

std::string python_code(const Graph& graph) { return PythonWriter(graph).method(); }

std::string python_module(const Graph& graph, const std::string& name) {
  std::string out =
      "import builtins\nimport math\nimport operator\n\nimport torch\nfrom math import inf, nan\nfrom torch import "
      "device\n\n\n"
      "class " +
      name + "(torch.nn.Module):\n";
  const std::string method = python_code(graph);
  for (std::size_t from = 0; from < method.size();) {
    const std::size_t end = method.find('\n', from);
    out += "    " + method.substr(from, end - from) + "\n";
    from = end + 1;
  }
  return out;
}

}  // namespace fx
