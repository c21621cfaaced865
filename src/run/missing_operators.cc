#include <fxgraph/run/missing_operators.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/custom_class_detail.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/run/int_pow.h>
#include <fxgraph/run/operator_sources.h>
#include <fxgraph/run/stay_loaded.h>

namespace fx {
namespace {

namespace jit = torch::jit;

// Older releases know no symbolic ints: in their schemas they are ints.
std::string schema_for_this_release(std::string schema) {
#if !__has_include(<c10/core/SymBool.h>)
  for (std::size_t at = schema.find("SymInt"); at != std::string::npos; at = schema.find("SymInt", at))
    schema.replace(at, 6, "int");
#endif
  return schema;
}

// Python's `a ** b` of two ints, which TorchScript's operators round to what a double holds.
void int_pow(const c10::OperatorHandle&, jit::Stack* stack) {
  const std::int64_t b = jit::pop(*stack).toInt(), a = jit::pop(*stack).toInt();
  stack->push_back(internal::int_pow(a, b));
}

// What sources know beside `torch`: XNNPACK's operators, and LibTorch's classes by their full names.
class Resolver : public jit::Resolver {
  std::shared_ptr<jit::SugaredValue> resolveValue(const std::string& name, jit::GraphFunction&,
                                                  const jit::SourceRange&) override {
    if (name == "torch") return std::make_shared<jit::BuiltinModule>("aten");
    return name == "prepacked" ? std::make_shared<jit::BuiltinModule>(name) : nullptr;
  }
  c10::TypePtr resolveType(const std::string& name, const jit::SourceRange&) override {
    return name.starts_with(kClasses) ? torch::getCustomClass(name) : nullptr;
  }

 public:
  static constexpr std::string_view kClasses = "__torch__.torch.classes.";
};

/// False for a schema with a class that this LibTorch was built without.
bool has_classes(std::string_view schema) {
  for (std::size_t at = 0; (at = schema.find(Resolver::kClasses, at)) != std::string_view::npos; ++at) {
    const std::string_view name = schema.substr(at, schema.find_first_of("[] ,)", at) - at);
    if (!torch::getCustomClass(std::string(name))) return false;
  }
  return true;
}

/// Where LibTorch is told that they come from: what another copy of fxgraph in the process has registered is known by
/// it.
constexpr const char* kOrigin = "fxgraph/run/missing_operators.cc";

/// The operators that are registered here.
class Registered {
 public:
  Registered() : newer_(library("aten")), quantized_(library("quantized_decomposed")), own_(library("fxgraph")) {
    internal::stay_loaded();
    for (const OperatorSource& row : newer_operators()) add(newer_, "aten", row);
    for (const OperatorSource& row : quantized_decomposed_operators()) add(quantized_, "quantized_decomposed", row);
    for (const OperatorSource& row : own_operators()) add(own_, "fxgraph", row);
    define(own_, "fxgraph", "int_pow(int a, int b) -> Scalar", torch::CppFunction::makeFromBoxedFunction<&int_pow>());
  }

  static Registered& instance() {
    static Registered& one = *new Registered;
    return one;
  }

  std::shared_ptr<jit::Graph> graph(const c10::OperatorName& name) {
    const std::lock_guard lock(mutex_);
    const auto found = bodies_.find(name);
    if (found == bodies_.end()) return nullptr;
    compile(found->second);
    return found->second.graph;
  }

 private:
  struct Body {
    std::string source;
    std::shared_ptr<jit::CompilationUnit> unit{};  // of functions that the graph calls
    std::shared_ptr<jit::Graph> graph{};
    std::optional<jit::Code> code{};
  };
  struct Less {
    bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
      return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
    }
  };

  static torch::Library library(const char* space) {
    return {torch::Library::FRAGMENT, space, c10::nullopt, kOrigin, __LINE__};
  }

  void add(torch::Library& library, const std::string& space, const OperatorSource& row) {
    if (!has_classes(row.schema)) return;
    auto kernel = torch::CppFunction::makeFromBoxedFunction<&Registered::run>();
    if (const auto name = define(library, space, schema_for_this_release(row.schema), std::move(kernel)))
      bodies_.emplace(*name, Body{std::string(row.source) + row.last});
  }

  // The operator's name, unless LibTorch has it. Another copy of fxgraph may have registered it: it runs that one's
  // kernel then, which computes the same.
  static std::optional<c10::OperatorName> define(torch::Library& library, const std::string& space,
                                                 const std::string& schema, torch::CppFunction&& kernel) {
    auto& dispatcher = c10::Dispatcher::singleton();
    const std::string name = schema.substr(0, schema.find('('));
    const std::size_t dot = name.find('.');
    const c10::OperatorName full(space + "::" + name.substr(0, dot),
                                 dot == std::string::npos ? "" : name.substr(dot + 1));
    if (!dispatcher.findSchema(full)) {
      try {
        library.def(schema.c_str());
        library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, std::move(kernel)));
      } catch (const c10::Error&) {
        if (!dispatcher.findSchema(full)) throw;  // else another copy came first, in another thread
      }
    }
    if (dispatcher.findSchema(full)->debug().find(kOrigin) == std::string::npos) return std::nullopt;
    return full;
  }

  static void compile(Body& body) {
    if (body.graph) return;
    body.unit = std::make_shared<jit::CompilationUnit>();
    body.unit->define(c10::nullopt, body.source, std::make_shared<Resolver>(), nullptr);
    body.graph = jit::toGraphFunction(body.unit->get_function("body")).graph()->copy();
    jit::Inline(*body.graph);
    body.code.emplace(body.graph, "body");
  }

  // One result per value, as operators leave them.
  static void run(const c10::OperatorHandle& op, jit::Stack* stack) {
    Registered& all = instance();
    std::optional<jit::Code> code;
    {
      const std::lock_guard lock(all.mutex_);
      Body& body = all.bodies_.at(op.operator_name());
      compile(body);
      code = body.code;
    }
    const std::size_t arguments = op.schema().arguments().size();
    jit::Stack values(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
    stack->resize(stack->size() - arguments);
    jit::InterpreterState(*code).run(values);
    if (op.schema().returns().empty()) return;
    if (op.schema().returns().size() == 1) {
      stack->push_back(std::move(values[0]));
      return;
    }
    for (const c10::IValue& value : values[0].toTupleRef().elements()) stack->push_back(value);
  }

  std::mutex mutex_;
  std::map<c10::OperatorName, Body, Less> bodies_;
  torch::Library newer_;
  torch::Library quantized_;
  torch::Library own_;
};

}  // namespace

void install_missing_operators() { Registered::instance(); }

std::shared_ptr<jit::Graph> missing_operator_body(Symbol target) {
  const std::string text = target.str();
  const std::size_t dot = text.find('.');
  return Registered::instance().graph({text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)});
}

bool is_own_operator(Symbol target) { return target.view().starts_with("fxgraph::"); }

}  // namespace fx
