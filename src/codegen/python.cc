#include <fxgraph/codegen/python.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include <fxgraph/codegen/releases.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/schema.h>

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
      const std::string text = to_string(node.arg(next), NodeStyle::plain);
      // `-2 ** x` is the negative of a power.
      const bool is_base = next++ == 0 && form.text.find("**") != std::string_view::npos && text.starts_with('-');
      out += is_base ? "(" + text + ")" : text;
      ++i;
    } else {
      out += form.text[i];
    }
  }
  return out;
}

const std::string* annotation_of(const Node& node) {
  const Meta* meta = node.find_meta();
  return meta ? meta->get<std::string>(meta_key::kType) : nullptr;
}

// The words of an annotation with the names that they are reached by: `torch.Tensor` is one.
std::vector<std::string_view> words_of(std::string_view annotation) {
  const auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < annotation.size();) {
    std::size_t end = i;
    while (end < annotation.size() && belongs(annotation[end])) ++end;
    if (end > i) words.push_back(annotation.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

constexpr std::array kTypingNames = std::to_array<std::string_view>({
    "Any",
    "Callable",
    "Dict",
    "Iterable",
    "List",
    "Mapping",
    "NamedTuple",
    "Optional",
    "Sequence",
    "Set",
    "Tuple",
    "Union",
});
constexpr std::array kBuiltinTypes = std::to_array<std::string_view>(
    {"None", "bool", "complex", "dict", "float", "int", "list", "object", "str", "tuple"});

// What a file must import so that Python finds a word of an annotation; nothing when no import that we know of helps.
std::optional<std::string> import_for(std::string_view word) {
  if (word.starts_with("torch.") || std::ranges::find(kBuiltinTypes, word) != std::end(kBuiltinTypes)) return "";
  if (word == "Tensor") return "from torch import Tensor";
  if (word.starts_with("typing.")) return "import typing";
  if (std::ranges::find(kTypingNames, word) == kTypingNames.end()) return std::nullopt;
  return "from typing import " + std::string(word);
}

// Of Python itself.
bool is_word(std::string_view name) {
  static constexpr std::string_view kWords[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::ranges::find(kWords, name) != std::end(kWords);
}

class PythonWriter {
 public:
  /// `whole_file`: annotations whose words nobody imports are left out, and operators are called by their names without
  /// overload where that finds the overload, which is how torch.jit.script takes them.
  explicit PythonWriter(const Graph& graph, bool whole_file = false)
      : graph_(graph), releases_(graph), whole_file_(whole_file) {}

  std::string method() {
    for (const Node& node : graph_.nodes()) statement(node);
    std::string header = "def forward(self";
    // As Python has it, none has a default before one without.
    std::size_t last_needed = parameters_.size();
    while (last_needed > 0 && (!defaults_[last_needed - 1].empty() || parameters_[last_needed - 1].starts_with('*')))
      --last_needed;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      header += ", " + parameters_[i] + (i < last_needed ? std::string() : defaults_[i]);
    return header + "):\n" + (body_.empty() ? "    pass\n" : body_);
  }
  /// The lines that the annotations of the method need, sorted; once it is written.
  const std::set<std::string>& imports() const { return imports_; }

 private:
  std::string annotation(const Node& node) {
    const std::string* type = annotation_of(node);
    if (!type) return "";
    if (whole_file_) {
      std::set<std::string> needed;
      for (const std::string_view word : words_of(*type)) {
        const std::optional<std::string> import = import_for(word);
        if (!import) return "";
        if (!import->empty()) needed.insert(*import);
      }
      imports_.merge(needed);
    }
    return " : " + *type;
  }

  // `torch.ops.aten.add.Tensor`, or `torch.ops.aten.add`. A target without an overload means the one that its arguments
  // choose.
  std::string operator_name(const Node& node) const {
    const Symbol packet(packet_of(node.target().view()));
    const bool is_operator = node.target().view().find("::") != std::string_view::npos;
    const Call called = is_operator && node.target() == packet ? call_of(node) : Call();
    const Symbol meant = called ? called.schema().target : node.target();
    std::string name = spelled_target(meant);
    if (!whole_file_ || !is_operator) return name;
    // Of numbers Python takes the overload for bools, which is the first.
    if (packet == "aten::Int") return "int";
    if (packet == "aten::Float") return "float";
    const OperatorSchema* found = resolve_overload(packet, node.args(), node.kwargs());
    if (found && found->target == meant) name.resize(name.rfind('.'));
    return name;
  }

  // What our methods take and Python's do not: `out=`, and a memory format by position. And what is no method there.
  static bool is_no_method(const Node& node) {
    static constexpr std::string_view kProperties[] = {"H", "T", "imag", "mH", "mT", "real"};
    return node.kwarg("out") || (node.target() == "to" && node.args().size() > 4) ||
           std::ranges::find(kProperties, node.target().view()) != std::end(kProperties);
  }

  void statement(const Node& node) {
    switch (node.op()) {
      case Op::placeholder: return parameter(node);
      case Op::output: line("return " + to_string(node.arg(0), NodeStyle::plain)); return;
      case Op::get_attr: line(assigned(node, python_attribute(node.target().view()))); break;
      case Op::call_module: line(assigned(node, python_attribute(node.target().view()) + call(node, 0))); break;
      case Op::call_method: line(assigned(node, method(node))); break;
      case Op::call_function: line(function(node)); break;
    }
    release(node);
  }

  // Whether the body means something else by the name: a word of Python, a module, or a function that it calls.
  bool is_meant(const std::string& name) const {
    static constexpr std::string_view kMeant[] = {"builtins", "device", "float", "getattr",  "inf",  "int",   "math",
                                                  "max",      "min",    "nan",   "operator", "self", "slice", "torch"};
    return is_word(name) || std::ranges::find(kMeant, name) != std::end(kMeant) ||
           graph_.count(Op::call_function, "builtins." + name) != 0;
  }

  // A parameter keeps the name that callers know, unless it would hide what the body means by that name.
  void parameter(const Node& node) {
    const std::string& target = node.target().str();
    const std::size_t stars = target.find_first_not_of('*');
    const std::string raw = stars == std::string::npos ? std::string() : target.substr(stars), name = node.name();
    const bool is_another = raw != name && (std::ranges::count(parameter_names_, raw) || is_placeholder(raw));
    const bool is_kept = is_identifier(raw) && (raw == name || !is_meant(raw)) && !is_another;
    parameter_names_.push_back(is_kept ? raw : name);
    if (is_kept && raw != name) body_ += "    " + name + " = " + raw + "\n";
    parameters_.push_back(std::string(stars == std::string::npos ? 0 : stars, '*') + (is_kept ? raw : name) +
                          annotation(node));
    defaults_.push_back(node.args().empty() ? std::string() : " = " + to_string(node.args()[0], NodeStyle::plain));
  }

  bool is_placeholder(const std::string& name) const {
    const Node* node = graph_.find(name);
    return node && node->is(Op::placeholder);
  }

  std::string method(const Node& node) {
    if (const Call called = is_no_method(node) ? call_of(node) : Call()) {
      std::string name = spelled_target(called.schema().target);
      if (whole_file_) name.resize(name.rfind('.'));
      return name + call(node, 0);
    }
    return receiver(node) + "." + node.target().str() + call(node, 1);
  }

  std::string function(const Node& node) {
    const std::string_view target = node.target().view();
    const bool plain = node.kwargs().empty();
    if (std::optional<std::string> infix = python_infix(node)) return assigned(node, *infix);
    if (const Form* form = find_form(kInPlace, target);
        form && plain && node.args().size() == arity(*form) && is_last_reader(node)) {
      return filled(*form, node) + ";  " + node.name() + annotation(node) + " = " + value(node.arg(0));
    }
    if (target == "builtins.getattr" && plain && node.args().size() == 2 && node.arg(1).is_string() &&
        is_identifier(node.arg(1).as_string())) {
      return assigned(node, receiver(node) + "." + std::string(node.arg(1).as_string()));
    }
    std::string name = operator_name(node);
    if (name.starts_with("builtins.")) name = name.substr(9);
    if (packet_of(target) == "prim::max") name = "max";
    if (packet_of(target) == "prim::min") name = "min";
    return assigned(node, name + call(node, 0));
  }

  std::string assigned(const Node& node, const std::string& expression) {
    return node.name() + annotation(node) + " = " + expression;
  }
  static std::string value(const Argument& argument) { return to_string(argument, NodeStyle::plain); }

  // `x += 1` makes x another number, so nobody may read it later; where x is a tensor, the function does the same.
  static bool is_last_reader(const Node& node) {
    const Node* written = node.arg(0).node_or_null();
    if (!written) return false;
    for (const Node& user : written->users()) {
      if (node.is_before(user)) return false;
    }
    return true;
  }

  // Literals need parentheses before a dot.
  static std::string receiver(const Node& node) {
    if (node.args().empty()) return "None";
    return node.arg(0).is_node() ? value(node.arg(0)) : "(" + value(node.arg(0)) + ")";
  }

  // Python's operators are objects, whose own `self` is meant by that name: it is given by position, as all before it.
  static std::vector<Argument> by_position(const Node& node, const Call& called) {
    std::vector<Argument> args = node.args().to_vector();
    const auto is_self = [](const SchemaArgument& argument) { return argument.name == "self"; };
    const auto& all = called.schema().arguments;
    const auto until = static_cast<std::size_t>(std::ranges::find_if(all, is_self) - all.begin());
    while (args.size() <= until) {
      const SchemaArgument& next = all[args.size()];
      const Argument* given = node.kwarg(next.name);
      if (!given && !next.default_value) return node.args().to_vector();
      args.push_back(given ? *given : *next.default_value);
    }
    return args;
  }

  static std::string call(const Node& node, std::size_t skip) {
    std::string out = "(";
    const auto separate = [&] {
      if (out.size() > 1) out += ", ";
    };
    const Call called =
        node.kwarg("self") && node.target().view().find("::") != std::string_view::npos ? call_of(node) : Call();
    const std::vector<Argument> moved = called ? by_position(node, called) : std::vector<Argument>();
    const std::size_t count = called ? moved.size() : node.args().size();
    const bool is_moved = count > node.args().size();
    for (std::size_t i = skip; i < count; ++i) {
      separate();
      out += value(called ? moved[i] : node.args()[i]);
    }
    for (const auto& [name, argument] : node.kwargs()) {
      const auto is_it = [&, &name = name](const SchemaArgument& each) { return each.name == name; };
      if (is_moved && std::ranges::find_if(called.schema().arguments, is_it) - called.schema().arguments.begin() <
                          std::ssize(moved))
        continue;
      separate();
      out += is_word(name.view()) ? "**{\"" + name.str() + "\": " + value(argument) + "}"
                                  : name.str() + " = " + value(argument);
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
  bool whole_file_;
  std::vector<std::string> parameters_, parameter_names_, defaults_;
  std::string body_;
  std::set<std::string> imports_;
};

}  // namespace

std::string python_attribute(std::string_view path) {
  std::string out = "self";
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view atom = path.substr(0, dot);
    out = is_identifier(atom) && !is_word(atom) ? out + "." + std::string(atom)
                                                : "getattr(" + out + ", \"" + std::string(atom) + "\")";
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
  PythonWriter writer(graph, /*whole_file=*/true);
  const std::string method = writer.method();
  std::string out =
      "import builtins\nimport math\nimport operator\n\nimport torch\nfrom math import inf, nan\nfrom torch import "
      "device\n";
  for (const std::string& line : writer.imports()) out += line + "\n";
  out += "\n\nclass " + name + "(torch.nn.Module):\n";
  for (std::size_t from = 0; from < method.size();) {
    const std::size_t end = method.find('\n', from);
    out += "    " + method.substr(from, end - from) + "\n";
    from = end + 1;
  }
  return out;
}

}  // namespace fx
