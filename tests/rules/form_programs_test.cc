// Hostile programs (testing/hostile/generator.h) through every form in which a program is saved, and back: results,
// what is left in inputs and state, and later calls stay as they were to the bit, or the form refuses by name.
//
// FXGRAPH_FORM_PROGRAMS and FXGRAPH_FORM_SEED ask for more, and others.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>

#include <fxgraph/codegen/script_name.h>
#include <fxgraph/export/load.h>
#include <fxgraph/export/save.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/testing/hostile/generator.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/hostile_run.h"
#include "tests/support/scratch_folder.h"

namespace fx::form_programs_test {

using hostile::Callable;
using hostile::HostileProgram;
using hostile::Rewritten;
using testing::HostileRun;
using testing::Trial;

using Module = std::shared_ptr<GraphModule>;

/// Runs whatever owns it lives as long as the function.
Callable kept(const Module& module) {
  Callable made = hostile::callable(*module);
  made.run = [module](std::vector<c10::IValue> inputs) { return module->run(std::move(inputs)); };
  return made;
}

/// Under the paths of the program, where those of the form are what `written` says.
Callable renamed(Callable form, GraphModule& module, const std::function<std::string(const std::string&)>& written) {
  std::map<std::string, at::Tensor> found(form.state.begin(), form.state.end());
  form.state.clear();
  for (const auto& [path, tensor] : hostile::state_of(module)) {
    const auto at = found.find(written(path));
    if (at != found.end()) form.state.emplace_back(path, at->second);
  }
  return form;
}

struct Form {
  const char* name;
  std::function<Callable(GraphModule&, const HostileProgram&, const testing::ScratchFolder&)> through;
};

Module exported(GraphModule& module, const HostileProgram& program, const std::string& path) {
  std::vector<c10::IValue> inputs;
  for (const at::Tensor& input : program.inputs[0]) inputs.emplace_back(hostile::copy_of(input));
  save_exported(module, path, {.inputs = std::move(inputs)});
  return load(path);
}

const Form kForms[] = {
    {"clone",
     [](GraphModule& module, const HostileProgram&, const auto&) { return kept(module.clone_graph_module()); }},
    {"text",
     [](GraphModule& module, const HostileProgram& program, const auto&) {
       HostileProgram again = program.clone();
       const std::string text = print_graph(module.graph());
       again.graph = parse_graph(text);
       if (print_graph(again.graph) != text) throw std::logic_error("another text: " + print_graph(again.graph));
       return kept(again.build());
     }},
    {"TorchScript",
     [](GraphModule& module, const HostileProgram&, const testing::ScratchFolder& folder) {
       module.save(folder / "a.pt");
       return renamed(kept(load(folder / "a.pt")), module, internal::script_path);
     }},
    {"TorchScript in LibTorch",
     [](GraphModule& module, const HostileProgram&, const testing::ScratchFolder& folder) {
       module.save(folder / "a.pt");
       torch::jit::Module script = stored_module(folder / "a.pt");  // LibTorch's own cannot give tensors another size
       Callable made;
       made.run = [script](std::vector<c10::IValue> inputs) mutable { return script.forward(std::move(inputs)); };
       for (const auto& parameter : script.named_parameters()) made.state.emplace_back(parameter.name, parameter.value);
       for (const auto& buffer : script.named_buffers()) made.state.emplace_back(buffer.name, buffer.value);
       made.text = script.get_method("forward").graph()->toString();
       return renamed(std::move(made), module, internal::script_path);
     }},
    {"exported",
     [](GraphModule& module, const HostileProgram& program, const testing::ScratchFolder& folder) {
       return kept(exported(module, program, folder / "a.pt2"));
     }},
    {"TorchScript of exported",
     [](GraphModule& module, const HostileProgram& program, const testing::ScratchFolder& folder) {
       const Module between = exported(module, program, folder / "a.pt2");
       between->save(folder / "b.pt");
       return renamed(kept(load(folder / "b.pt")), module, internal::script_path);
     }},
    {"exported of TorchScript",
     [](GraphModule& module, const HostileProgram& program, const testing::ScratchFolder& folder) {
       module.save(folder / "a.pt");
       const Module between = load(folder / "a.pt");
       return renamed(kept(exported(*between, program, folder / "b.pt2")), module, internal::script_path);
     }},
};

/// Whether it does on inputs that have no memory but that of their elements: archives hold no other.
bool runs_on_elements_alone(const HostileProgram& program) {
  std::vector<c10::IValue> inputs;
  for (const at::Tensor& input : program.inputs[0])
    inputs.emplace_back(at::empty_strided(input.sizes(), input.strides(), input.options()).copy_(input));
  try {
    program.build()->run(std::move(inputs));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What no node reads is there all the same; how it lies in memory is nobody's business.
void expect_all_state(GraphModule& module, const Callable& form) {
  const std::map<std::string, at::Tensor> found(form.state.begin(), form.state.end());
  const auto described = [](const at::Tensor& tensor) { return hostile::describe(tensor.contiguous()); };
  for (const auto& [path, tensor] : hostile::state_of(module)) {
    const auto at = found.find(path);
    if (at == found.end() && path.starts_with("_tensor_constant")) continue;  // a trace's, which nobody knows by name
    if (at == found.end()) throw std::logic_error("'" + path + "' is lost");
    if (described(at->second) != described(tensor))
      throw std::logic_error("'" + path + "' is " + described(at->second) + ", was " + described(tensor));
  }
}

std::string kind_of(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text.substr(0, 110);
}

TEST(FormPrograms, DoTheSameInEveryForm) {
  HostileRun run(3000, "FXGRAPH_FORM");
  const testing::ScratchFolder folder;
  std::map<std::string, std::size_t> tried, refused, why;
  run.run([&](std::uint64_t seed) {
    const Form& form = kForms[seed % std::size(kForms)];
    Trial trial{hostile::draw_program(seed / std::size(kForms), {.odd_percent = 30}), {}, form.name};
    trial.rewrite = [&](GraphModule& module, const HostileProgram& program) -> Rewritten {
      ++tried[form.name];
      try {
        Rewritten done{.changed = true, .instead = form.through(module, program, folder)};
        expect_all_state(*program.build(), hostile::callable(module));  // who saves leaves no trace
        // Kernels may add up in another order where tensors lie otherwise in memory, or go another way (a batch norm by
        // its factors), which differs by more where numbers are not finite. And -(a + 0i) has other zeros than -a made
        // complex: what forms keep is the number.
        const auto& state = hostile::state_of(module);
        done.is_exact = std::ranges::all_of(state, [](const auto& each) {
          return each.second.is_non_overlapping_and_dense() && !each.second.is_neg() && !each.second.is_conj();
        });
        done.needs_finite = !done.is_exact;
        expect_all_state(module, *done.instead);
        return done;
      } catch (const Error& error) {
        // Archives hold both branches of a cond, and say which call of the one that is not taken fails.
        const bool is_branch = error.message().find("higher_order") != std::string::npos;
        if (error.kind() != ErrorKind::unsupported && !is_branch && runs_on_elements_alone(program)) throw;
        ++refused[form.name];
        ++why[std::string(form.name) + ": " + kind_of(error.message())];
        return {};
      }
    };
    return trial;
  });
  for (const auto& [name, count] : tried)
    std::cout << name << ": " << count << " tried, " << refused[name] << " refused\n";
  if (std::getenv("FXGRAPH_FORM_REFUSALS")) {
    for (const auto& [text, count] : why) std::cout << count << " × " << text << "\n";
  }
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 2);
}

}  // namespace fx::form_programs_test
