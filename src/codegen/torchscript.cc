#include <fxgraph/codegen/torchscript.h>

#include <array>

#include <fxgraph/codegen/python.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

constexpr std::array kLayouts = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                 "sparse_csc", "sparse_bsr", "sparse_bsc"};
constexpr std::array kMemoryFormats = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

// What computes with numbers and is no operator by its name.
constexpr const char* kOfNumbers[][2] = {{"math.trunc", "int"},     {"math.sqrt", "torch.sqrt"},
                                         {"math.log", "torch.log"}, {"builtins.len", "len"},
                                         {"prim::max", "max"},      {"prim::min", "min"}};

template <std::size_t N>
std::string number_of(const std::array<const char*, N>& names, Symbol name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (name == names[i]) return std::to_string(i);
  }
  throw Error(ErrorKind::unsupported, "TorchScript has no number for torch." + name.str());
}

class TorchScriptWriter {
 public:
  explicit TorchScriptWriter(const Graph& graph) : graph_(graph) {}

  std::string method() {
    for (const Node& node : graph_.nodes()) {
      try {
        statement(node);
      } catch (const Error& error) {
        if (!error.node().empty()) throw;
        throw Error(error.kind(), "torchscript_code: %" + node.name() + ": " + error.message(), node.name());
      }
    }
    return "def forward(self" + parameters_ + "):\n" + (body_.empty() ? "    pass\n" : body_);
  }

 private:
  void line(const std::string& text) { body_ += "    " + text + "\n"; }
  void assign(const Node& node, const std::string& text) { line(node.name() + " = " + text); }

  void statement(const Node& node) {
    if (const Call call = call_of(node); call.is_translated())
      return assign(node, by_name(call.schema().target, arguments(call.args(), call.kwargs())));
    switch (node.op()) {
      case Op::placeholder: return parameter(node);
      case Op::get_attr: return assign(node, python_attribute(node.target().view()));
      case Op::call_module:
        return assign(node, python_attribute(node.target().view()) + arguments(node.args(), node.kwargs()));
      case Op::call_method:
        return assign(node,
                      receiver(node) + "." + node.target().str() + arguments(node.args().subspan(1), node.kwargs()));
      case Op::call_function:
        if (node.target() == "torch._assert" && node.args().size() == 2)
          return line("assert " + value(node.arg(0)) + ", " + value(node.arg(1)));
        return assign(node, function(node));
      case Op::output: line("return " + (node.args().empty() ? "None" : value(node.arg(0)))); return;
    }
  }

  void parameter(const Node& node) {
    if (node.target().view().starts_with('*'))
      throw Error(ErrorKind::unsupported, "TorchScript has no '" + node.target().str() + "'; take a list");
    std::string text = ", " + node.name();
    const Meta* meta = node.find_meta();
    const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    const Argument* other = node.args().empty() ? nullptr : &node.arg(0);
    const char* of_default = !other               ? "Tensor"
                             : other->is_int()    ? "int"
                             : other->is_float()  ? "float"
                             : other->is_bool()   ? "bool"
                             : other->is_string() ? "str"
                             : other->is_none()   ? "Optional[Tensor]"
                                                  : "Tensor";
    text += ": " + (type ? *type : std::string(of_default));
    if (other) text += " = " + value(*other);
    parameters_ += text;
  }

  std::string function(const Node& node) {
    const std::string_view target = node.target().view();
    if (target == "operator.getitem" && node.args().size() == 2) return subscript(node);
    if (std::optional<std::string> power = int_pow(node)) return *power;
    if (std::optional<std::string> infix = python_infix(node)) return *infix;
    if (target == "builtins.getattr" && node.args().size() == 2 && node.arg(1).is_string())
      return receiver(node) + "." + std::string(node.arg(1).as_string());
    return by_name(node.target(), arguments(node.args(), node.kwargs()));
  }

  static std::string by_name(Symbol target, const std::string& arguments) {
    const std::string_view packet = packet_of(target.view());
    for (const auto& [ours, theirs] : kOfNumbers) {
      if (target == ours || packet == ours) return theirs + arguments;
    }
    if (packet.starts_with("aten::")) return "torch." + std::string(packet.substr(6)) + arguments;
    const std::size_t colons = packet.find("::");
    if (colons == std::string_view::npos) {
      throw Error(ErrorKind::unsupported, "TorchScript has nothing for " + target.str() +
                                              "; replace it by operators (fx::normalize_operators, fx::decompose)");
    }
    return "torch.ops." + std::string(packet.substr(0, colons)) + "." + std::string(packet.substr(colons + 2)) +
           arguments;
  }

  // Of two ints: TorchScript's `**` gives a float.
  static std::optional<std::string> int_pow(const Node& node) {
    const bool is_pow = node.target() == "operator.pow" || node.target() == "operator.ipow";
    if (!is_pow || node.args().size() != 2) return std::nullopt;
    for (const Argument& argument : node.args()) {
      const internal::ArgumentType type = internal::argument_type(argument);
      if (type.list || (type.base != SchemaType::Base::integer && type.base != SchemaType::Base::boolean))
        return std::nullopt;
    }
    constexpr std::int64_t kMostFactors = 64;
    const Argument& exponent = node.arg(1);
    if (!exponent.is_int() || exponent.as_int() > kMostFactors)
      throw Error(ErrorKind::unsupported,
                  "TorchScript has one type for a power: make the exponent a small literal, or one of the two a float");
    if (exponent.as_int() < 0) return std::nullopt;
    std::string text = "1";
    for (std::int64_t i = 0; i < exponent.as_int(); ++i) text += " * " + value(node.arg(0));
    return text;
  }

  // Literals need parentheses before a dot.
  static std::string receiver(const Node& node) {
    return node.arg(0).is_node() ? value(node.arg(0)) : "(" + value(node.arg(0)) + ")";
  }

  // `x[..., :-1]`: TorchScript knows slices only where Python has its own sign for them.
  static std::string subscript(const Node& node) {
    const Argument& index = node.arg(1);
    std::string out;
    const auto add = [&](const Argument& each) { out += (out.empty() ? "" : ", ") + index_text(each); };
    if (index.is_tuple()) {
      for (const Argument& each : index.elements()) add(each);
    } else {
      add(index);
    }
    return value(node.arg(0)) + "[" + out + "]";
  }

  static std::string index_text(const Argument& index) {
    if (index.kind() == ArgumentKind::ellipsis) return "...";
    if (!index.is_slice()) return value(index);
    const ArgumentSpan parts = index.elements();
    const auto bound = [](const Argument& part) { return part.is_none() ? std::string() : value(part); };
    return bound(parts[0]) + ":" + bound(parts[1]) + (parts[2].is_none() ? "" : ":" + value(parts[2]));
  }

  static std::string arguments(ArgumentSpan args, KwargSpan kwargs) {
    std::string out;
    for (const Argument& argument : args) out += (out.empty() ? "" : ", ") + value(argument);
    for (const auto& [name, argument] : kwargs) out += (out.empty() ? "" : ", ") + name.str() + "=" + value(argument);
    return "(" + out + ")";
  }

  static std::string elements(const Argument& argument) {
    std::string out;
    for (const Argument& each : argument.elements()) out += (out.empty() ? "" : ", ") + value(each);
    return out;
  }

  static std::string value(const Argument& argument) {
    switch (argument.kind()) {
      case ArgumentKind::dtype: return std::to_string(static_cast<int>(argument.as_dtype()));
      case ArgumentKind::layout: return number_of(kLayouts, argument.as_layout().name);
      case ArgumentKind::memory_format: return number_of(kMemoryFormats, argument.as_memory_format().name);
      case ArgumentKind::device: return "torch.device(\"" + to_string(argument.as_device()) + "\")";
      case ArgumentKind::floating: return floating(argument);
      case ArgumentKind::list: return "[" + elements(argument) + "]";
      case ArgumentKind::tuple: return "(" + elements(argument) + (argument.elements().size() == 1 ? ",)" : ")");
      case ArgumentKind::dict: return dict(argument);
      case ArgumentKind::opaque:
        throw Error(ErrorKind::unsupported, "TorchScript cannot say the Python object " + to_string(argument));
      default: return to_string(argument, NodeStyle::plain);
    }
  }

  static std::string floating(const Argument& argument) {
    const std::string text = to_string(argument);
    return text.find_first_of("in") == std::string::npos ? text : "float(\"" + text + "\")";  // inf, nan
  }

  static std::string dict(const Argument& argument) {
    std::string out;
    const ArgumentSpan pairs = argument.elements();
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      out += (out.empty() ? "" : ", ") + value(pairs[i]) + ": " + value(pairs[i + 1]);
    return "{" + out + "}";
  }

  const Graph& graph_;
  std::string parameters_, body_;
};

}  // namespace

std::string torchscript_code(const Graph& graph) {
  graph.lint();
  return TorchScriptWriter(graph).method();
}

}  // namespace fx
