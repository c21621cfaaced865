#include <fxgraph/codegen/cpp.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fxgraph/codegen/cpp_calls.h>
#include <fxgraph/codegen/releases.h>
#include <fxgraph/codegen/script_name.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

using internal::CppCalls;
using internal::CppKind;
using internal::CppType;

constexpr std::string_view kOwner = R"(
  /// The module in which `path` is registered, made with those on the way, so that torch::load and torch::save find it.
  torch::nn::Module& owner_of(const std::string& path, std::string& name) {
    torch::nn::Module* owner = this;
    std::size_t from = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; from = dot + 1, dot = path.find('.', from)) {
      const std::string atom = path.substr(from, dot - from);
      if (!owner->named_children().contains(atom)) owner->register_module(atom, std::make_shared<torch::nn::Module>());
      owner = owner->named_children()[atom].get();
    }
    name = path.substr(from);
    return *owner;
  }
)";
constexpr std::string_view kAddTensor = R"(
  torch::Tensor add_tensor(const std::string& path, const torch::Tensor& tensor, bool is_parameter) {
    std::string name;
    torch::nn::Module& owner = owner_of(path, name);
    for (const auto& present : {owner.named_parameters(false), owner.named_buffers(false)}) {
      if (const torch::Tensor* found = present.find(name)) return *found;  // of a module that the constructor has made
    }
    if (!is_parameter) return owner.register_buffer(name, tensor);
    return owner.register_parameter(name, tensor, /*requires_grad=*/tensor.is_floating_point());
  }
)";
constexpr std::string_view kAddModule = R"(
  template <typename Holder>
  Holder add_module(const std::string& path, Holder module, bool training) {
    std::string name;
    owner_of(path, name).register_module(name, module.ptr());
    module->train(training);
    return module;
  }
)";
constexpr std::string_view kCallOperator = R"(
  static torch::jit::Stack call_operator(const char* name, const char* overload, torch::jit::Stack arguments) {
    c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).callBoxed(&arguments);
    return arguments;
  }
)";
constexpr std::string_view kFloor = R"(
  static int64_t floor_divide(int64_t a, int64_t b) {
    TORCH_CHECK(b != 0, "integer division or modulo by zero");
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  static int64_t floor_remainder(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }
)";

constexpr std::string_view kElement = R"(
  /// A negative index counts from behind.
  template <typename List>
  static typename List::value_type element(const List& list, int64_t index) {
    const auto size = static_cast<int64_t>(list.size());
    TORCH_CHECK(-size <= index && index < size, "index ", index, " is out of range for ", size, " elements");
    return list[static_cast<std::size_t>(index < 0 ? index + size : index)];
  }
)";
constexpr std::string_view kIntPow = R"(
  static int64_t int_pow(int64_t base, int64_t exponent) {
    int64_t result = 1;
    bool overflows = false;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) overflows = overflows || __builtin_mul_overflow(result, base, &result);
      if (exponent > 1) overflows = __builtin_mul_overflow(base, base, &base) || overflows;
    }
    TORCH_CHECK(!overflows, "the power of two ints is larger than 64 bits hold");
    return result;
  }
)";

class CppWriter {
 public:
  CppWriter(const Graph& graph, const CodeOptions& options)
      : graph_(graph), options_(options), calls_(graph), releases_(graph, /*of_operators=*/true) {
    for (const CodeTensor& tensor : options.tensors) known_.emplace(tensor.path, &tensor);
    for (const CodeModule& module : options.modules) {
      if (!module.construction.empty()) known_modules_.emplace(module.path, &module);
    }
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::get_attr)) locals_[node] = unique(internal::cpp_identifier(node.name()));
    }
  }

  std::string file() {
    for (const Node& node : graph_.nodes()) {
      try {
        statement(node);
      } catch (const Error& error) {
        if (!error.node().empty()) throw;
        throw Error(error.kind(), "cpp_code: %" + node.name() + ": " + error.message(), node.name());
      }
    }
    const std::string name = internal::cpp_identifier(options_.class_name);
    std::string out = "// Weights: torch::load(net, \"file.pt\") with a std::shared_ptr<" + name + "> net.\n";
    out += "#include <torch/torch.h>\n";
    out += calls_.used_dispatcher() ? "#include <ATen/core/dispatch/Dispatcher.h>\n" : "";
    out +=
        "\n#include <limits>\n#include <map>\n#include <string>\n#include <tuple>\n"
        "#include <vector>\n\n";
    for (const std::string& header : headers_) out += "#include \"" + header + "\"\n";
    if (!headers_.empty()) out += "\n";
    out += "struct " + name + " : torch::nn::Module {\n";
    // What add_tensor finds in a module must be there.
    constructor_ = construct_modules_ + constructor_;
    if (!options_.fixed_mode.empty() && !options_.training)
      constructor_.insert(0, "    torch::nn::Module::train(false);\n");
    if (!constructor_.empty()) out += "  " + name + "() {\n" + constructor_ + "  }\n\n";
    out += "  " + returns_ + " forward(" + parameters_ + ") {\n" + body_ + "  }\n";
    if (!options_.fixed_mode.empty()) out += fixed_train(name);
    out += modules_;
    std::string functions;
    if (calls_.used_dispatcher()) functions += kCallOperator;
    if (calls_.used_floor()) functions += kFloor;
    if (calls_.used_element()) functions += kElement;
    if (calls_.used_int_pow()) functions += kIntPow;
    if (!members_.empty() || !functions.empty()) out += "\n private:";
    if (!members_.empty()) out += kOwner;
    if (!tensors_.empty()) out += kAddTensor;
    if (!construct_modules_.empty()) out += kAddModule;
    out += functions;
    if (!members_.empty()) out += "\n" + members_;
    return out + "};\n";
  }

 private:
  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }

  // Modules that it calls have been put into their modes.
  std::string fixed_train(const std::string& name) const {
    return "\n  void train(bool on = true) override {\n    TORCH_CHECK(on == is_training(), " +
           internal::cpp_string(name + ": the program does not follow: " + options_.fixed_mode) + ");\n  }\n";
  }

  void statement(const Node& node) {
    CppCalls::Value& value = calls_[node];
    switch (node.op()) {
      case Op::placeholder: return parameter(node);
      case Op::get_attr: value = {tensor_member(node.target().str()), {CppKind::tensor}}; return;
      case Op::output: return result(node);
      case Op::call_module: declare(node, module_call(node)); break;
      default: declare(node, calls_.call(node)); break;
    }
    release(node);
  }

  void declare(const Node& node, const CppCalls::Value& call) {
    if (call.type.kind == CppKind::nothing) {
      body_ += "    " + call.text + ";\n";
    } else if (!node.has_users()) {
      body_ += "    static_cast<void>(" + call.text + ");\n";
    } else {
      body_ += "    " + std::string(cpp_declared(call.type)) + " " + locals_[node] + " = " + call.text + ";\n";
      calls_[node] = {locals_[node], call.type};
    }
  }

  // What holds tensors is let go of; numbers cost nothing.
  void release(const Node& node) {
    std::string text;
    for (const Node* dead : releases_.after(node)) {
      if (dead == &node || dead->is(Op::get_attr)) continue;
      const CppCalls::Value& value = calls_[*dead];
      switch (value.type.kind) {
        case CppKind::tensor: text += " " + value.text + ".reset();"; break;
        case CppKind::tensors:
        case CppKind::stack: text += " " + value.text + ".clear();"; break;
        case CppKind::tuple: text += " " + value.text + " = {};"; break;
        default: break;
      }
    }
    if (text.empty()) return;
    body_.back() = ' ';
    body_ += text + "\n";
  }

  void parameter(const Node& node) {
    if (node.target().view().starts_with('*'))
      throw Error(ErrorKind::unsupported, "C++ has no '" + node.target().str() + "'; take a list");
    const CppType type = type_of_input(node);
    std::string text = std::string(cpp_declared(type)) + " " + locals_[node];
    if (may_be_left_out(node)) text += " = " + (node.arg(0).is_none() ? "{}" : calls_.value(node.arg(0)).text);
    parameters_ += (parameters_.empty() ? "" : ", ") + text;
    calls_[node] = {locals_[node], type};
    if (!node.has_users()) body_ += "    static_cast<void>(" + locals_[node] + ");\n";
  }

  // In C++, none has a default before one without.
  static bool may_be_left_out(const Node& placeholder) {
    if (placeholder.args().empty()) return false;
    const std::vector<Node*> all = placeholder.graph().placeholders();
    return std::all_of(std::ranges::find(all, &placeholder), all.end(),
                       [](const Node* each) { return !each->args().empty(); });
  }

  static CppType type_of_input(const Node& node) {
    const Meta* meta = node.find_meta();
    const std::string* annotation = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    if (annotation) {
      if (*annotation == "int") return {CppKind::integer};
      if (*annotation == "float") return {CppKind::floating};
      if (*annotation == "bool") return {CppKind::boolean};
      if (*annotation == "str") return {CppKind::string};
      if (annotation->find("ist[") != std::string::npos)  // List[…], list[…], typing.List[…]
        return {annotation->find("int") != std::string::npos ? CppKind::integers : CppKind::tensors};
    }
    const Argument* value = node.args().empty() ? nullptr : &node.arg(0);
    if (value && value->is_int()) return {CppKind::integer};
    if (value && value->is_float()) return {CppKind::floating};
    if (value && value->is_bool()) return {CppKind::boolean};
    if (value && value->is_string()) return {CppKind::string};
    return {CppKind::tensor};
  }

  void result(const Node& node) {
    if (node.args().empty() || node.arg(0).is_none()) return;
    const CppCalls::Value value = calls_.value(node.arg(0));
    returns_ = cpp_declared(value.type);
    body_ += "    return " + value.text + ";\n";
  }

  std::string tensor_member(const std::string& path) {
    std::string& member = tensors_[path];
    if (!member.empty()) return member;
    member = unique(internal::cpp_identifier(path) + "_");
    const auto known = known_.find(path);
    std::string tensor = "torch::empty({0})";  // takes its shape from the weights
    if (known != known_.end()) {
      const TensorInfo& info = known->second->info;
      std::string sizes;
      for (const std::int64_t size : info.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
      tensor = "torch::zeros({" + sizes + "}, " + internal::cpp_dtype(info.dtype) + ")";
    }
    const bool is_parameter = known != known_.end() && known->second->is_parameter;
    constructor_ += "    " + member + " = add_tensor(" + internal::cpp_string(internal::script_path(path)) + ", " +
                    tensor + ", " + (is_parameter ? "true" : "false") + ")" +
                    (is_parameter && known->second->is_frozen ? ".requires_grad_(false)" : "") + ";\n";
    members_ += "  torch::Tensor " + member + ";\n";
    return member;
  }

  std::string module_member(const std::string& path, const CodeModule* known) {
    std::string& member = module_members_[path];
    if (!member.empty()) return member;
    member = unique(internal::cpp_identifier(path) + "_");
    if (known) {
      if (!known->header.empty()) headers_.insert(known->header);
      construct_modules_ += "    " + member + " = add_module(" + internal::cpp_string(internal::script_path(path)) +
                            ", " + known->construction + ", /*training=*/" + (known->training ? "true" : "false") +
                            ");\n";
      for (const std::string& frozen : known->frozen)
        construct_modules_ +=
            "    " + member + "->named_parameters()[" + internal::cpp_string(frozen) + "].requires_grad_(false);\n";
      members_ += "  " + known->type + " " + member + "{nullptr};\n";
    } else {
      modules_ +=
          std::string(modules_.empty() ? "\n  // Not in the graph: to be set before the first forward.\n" : "") +
          "  torch::nn::AnyModule " + member + ";\n";
    }
    return member;
  }

  static CppType type_of_result(const CodeModule::Result& result) {
    CppType type;
    if (!result.parts.empty()) type.kind = CppKind::tuple;
    for (const CodeModule::Result& part : result.parts) type.elements.push_back(type_of_result(part));
    return type;
  }

  static std::string text_of(const CodeModule::Result& result) {
    std::string parts;
    for (const CodeModule::Result& part : result.parts) parts += (parts.empty() ? "" : ", ") + text_of(part);
    return result.parts.empty() ? "torch::Tensor" : "std::tuple<" + parts + ">";
  }

  CppCalls::Value module_call(const Node& node) {
    const std::string path = node.target().str();
    const auto found = known_modules_.find(path);
    const CodeModule* known = found == known_modules_.end() ? nullptr : found->second;
    const std::string member = module_member(path, known);
    if (!node.kwargs().empty()) {
      throw Error(ErrorKind::unsupported, "C++ modules take no keyword arguments; give '" +
                                              (*node.kwargs().begin()).name.str() + "' by position");
    }
    std::string arguments;
    for (const Argument& argument : node.args()) {
      // A parameter of C++ is a tensor or an optional.
      arguments += (arguments.empty() ? "" : ", ") + (argument.is_none() ? "{}" : calls_.value(argument).text);
    }
    if (!known) {
      const auto told = options_.results.find(path);
      if (told == options_.results.end()) return {member + ".forward(" + arguments + ")", {CppKind::tensor}};
      return {member + ".forward<" + text_of(told->second) + ">(" + arguments + ")", type_of_result(told->second)};
    }
    return {member + "->forward(" + arguments + ")", type_of_result(known->result)};
  }

  const Graph& graph_;
  const CodeOptions& options_;
  CppCalls calls_;
  Releases releases_;
  NodeMap<std::string> locals_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, const CodeTensor*> known_;
  std::unordered_map<std::string, std::string> tensors_;         // path -> member
  std::unordered_map<std::string, std::string> module_members_;  // path -> member
  std::unordered_map<std::string, const CodeModule*> known_modules_;
  std::set<std::string> headers_;  // of the modules that it makes
  std::string construct_modules_, constructor_, parameters_, body_, members_, modules_, returns_ = "void";
};

}  // namespace

std::string cpp_code(const Graph& graph, const CodeOptions& options) {
  graph.lint();
  return CppWriter(graph, options).file();
}

}  // namespace fx
