#include <fxgraph/rewriter/partition/submodule_inputs.h>

#include <ATen/core/grad_mode.h>

#include <utility>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

/// Notes a copy of what is given, as it is before the call.
class Listening : public Interpreter {
 public:
  Listening(GraphModule& module, SubmoduleInputs& heard) : Interpreter(module), heard_(heard) {}
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override {
    const auto wanted = heard_.find(target.str());
    if (wanted != heard_.end() && calls_[target.str()]++ == 0) {
      for (const Value& value : args) wanted->second.push_back(copy_of(value));
      for (const auto& [name, value] : kwargs) wanted->second.push_back(copy_of(value));
    }
    return Interpreter::call_module(target, args, kwargs);
  }

 private:
  SubmoduleInputs& heard_;
  std::map<std::string, int> calls_;
};

}  // namespace

SubmoduleInputs inputs_of_submodules(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                                     const std::vector<std::string>& paths) {
  SubmoduleInputs heard;
  for (const Node* call : module.graph().find_nodes(Op::call_module)) {
    if (paths.empty()) heard[call->target().str()];
  }
  for (const std::string& path : paths) {
    if (module.graph().find_nodes(Op::call_module, path).empty()) {
      throw Error(ErrorKind::not_found,
                  "inputs_of_submodules: the program does not call '" + path + "'; name a module that it calls");
    }
    heard[path];
  }
  const at::NoGradGuard inference;
  const auto copy = module.clone_graph_module();  // running may write to buffers
  Listening(*copy, heard).run(copies_of(inputs));
  return heard;
}

}  // namespace fx
