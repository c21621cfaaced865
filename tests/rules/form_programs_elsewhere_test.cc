// Hostile programs (testing/hostile/generator.h) as source: run by Python's torch as folders and as TorchScript, and by
// C++ as compiled modules. FXGRAPH_FORM_PYTHON and FXGRAPH_FORM_CPP say how many, FXGRAPH_FORM_SEED which.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include <fxgraph/codegen/script_name.h>
#include <fxgraph/module/code.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/testing/hostile/behaviour.h>
#include <fxgraph/testing/hostile/generator.h>
#include <fxgraph/torchscript/export.h>

#include "tests/program/quiet.h"
#include "tests/support/night.h"
#include "tests/support/python_check.h"
#include "tests/support/scratch_folder.h"

namespace fx::form_programs_elsewhere_test {

using hostile::HostileProgram;
using hostile::Tensors;
using testing::environment_number;

/// Programs that run, each with the form that `make` gives it. What a form refuses by name is left out, and counted.
template <typename Make>
void draw(std::uint64_t count, Make&& make) {
  const std::uint64_t first = environment_number("FXGRAPH_FORM_SEED", 1);
  std::map<std::string, std::size_t> refused;
  std::size_t made = 0;
  for (std::uint64_t seed = first; made < count; ++seed) {
    const HostileProgram program = hostile::draw_program(seed, {.odd_percent = 30});
    if (!hostile::runs(program)) continue;
    try {
      make(seed, program);
      ++made;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      ++refused[error.message().substr(0, 60)];
    }
  }
  std::size_t all = 0;
  for (const auto& [why, times] : refused) all += times;
  std::cout << made << " programs, " << all << " more refused\n";
}

// ── Python ───────────────────────────────────────────────────────────────────────────────────────────────────────────

c10::IValue copies(const Tensors& tensors) {
  std::vector<c10::IValue> all;
  for (const at::Tensor& tensor : tensors) all.emplace_back(hostile::copy_of(tensor).resolve_conj().resolve_neg());
  return c10::ivalue::Tuple::create(std::move(all));
}

void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) visit(value.toTensor());
  if (value.isTuple())
    for (const c10::IValue& each : value.toTupleRef().elements()) each_tensor(each, visit);
  if (value.isList())
    for (const c10::IValue& each : value.toListRef()) each_tensor(each, visit);
  if (value.isGenericDict())
    for (const auto& item : value.toGenericDict()) each_tensor(item.value(), visit);
}

/// What a value is now; IValue::deepcopy() takes views of one memory for one tensor.
c10::IValue copied(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined())
    return value.toTensor().detach().resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& each : value.toTupleRef().elements()) elements.push_back(copied(each));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isList()) {
    c10::List<c10::IValue> list(c10::AnyType::get());
    for (const c10::IValue& each : value.toListRef()) list.push_back(copied(each));
    return list;
  }
  if (!value.isGenericDict()) return value;
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  for (const auto& item : value.toGenericDict()) dict.insert(item.key(), copied(item.value()));
  return dict;
}

/// What the program gives in two calls, between which the caller writes to what it got: (inputs, results, inputs left).
c10::IValue recorded(const HostileProgram& program) {
  const at::NoGradGuard no_grad;
  const auto module = program.build();
  std::vector<c10::IValue> calls;
  for (std::uint64_t call = 0; call < 2; ++call) {
    const c10::IValue given = copies(program.inputs[call % program.inputs.size()]);
    const c10::IValue inputs = copies(program.inputs[call % program.inputs.size()]);
    at::manual_seed(call);
    c10::IValue result;
    try {
      result = module->run(inputs.toTupleRef().elements().vec());
    } catch (const Error& error) {  // what the caller wrote to it made the next call fail
      throw Error(ErrorKind::unsupported, "another call fails: " + error.message());
    }
    calls.push_back(c10::ivalue::Tuple::create({given, copied(result), copied(inputs)}));
    double number = 3;
    each_tensor(result, [&](const at::Tensor& tensor) {
      try {
        if (tensor.defined()) tensor.fill_(number++);
      } catch (const std::exception&) {  // of one place for several elements
      }
    });
  }
  return c10::ivalue::Tuple::create(
      {c10::ivalue::Tuple::create(std::move(calls)), hostile::tolerance_of(program.narrowest).relative});
}

constexpr const char* kCheck = R"py(
import copy, importlib.util, os, sys, torch
folder = sys.argv[1]

def tensors(value):
    if isinstance(value, torch.Tensor): yield value
    elif isinstance(value, dict):
        for each in value.values(): yield from tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value: yield from tensors(each)

def differ(a, b, tolerance):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor): return f'{type(b)} for a tensor'
        if a.dtype != b.dtype or a.shape != b.shape: return f'{b.dtype}{list(b.shape)}, was {a.dtype}{list(a.shape)}'
        a, b = a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg()
        if not a.is_floating_point() and not a.is_complex(): return None if torch.equal(a, b) else f'{b}, was {a}'
        wide = torch.complex128 if a.is_complex() else torch.float64
        same = torch.allclose(a.to(wide), b.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True)
        return None if same else f'{b}, was {a}'
    if isinstance(a, (list, tuple)):
        if type(a) != type(b) or len(a) != len(b): return f'{type(b)}, was {type(a)}'
        return next((d for d in (differ(x, y, tolerance) for x, y in zip(a, b)) if d), None)
    if isinstance(a, dict):
        if list(a) != list(b): return f'keys {list(b)}'
        return next((d for d in (differ(a[k], b[k], tolerance) for k in a) if d), None)
    same = type(a) == type(b) and (a == b or a != a)
    return None if same else f'{b!r}, was {a!r}'

def load(path, form):
    if form == 'a.pt': return torch.jit.load(path + '/a.pt')
    spec = importlib.util.spec_from_file_location('module_' + os.path.basename(path), path + '/module.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Net()

wrong = tried = 0
for name in sorted(os.listdir(folder)):
    path = folder + '/' + name
    if not os.path.isdir(path): continue
    calls, tolerance = torch.load(path + '/calls.pt')
    for form in ('module.py', 'a.pt'):
        if not os.path.exists(path + '/' + form): continue
        tried += 1
        try:
            net = load(path, form)
            with torch.no_grad():
                for i, (given, result, left) in enumerate(calls):
                    torch.manual_seed(i)
                    given = [copy.deepcopy(g) for g in given]
                    found = net(*given)
                    why = differ(result, found, tolerance) or differ(list(left), given, tolerance)
                    if why: raise AssertionError(f'call {i}: {why}')
                    number = 3
                    for each in tensors(found):
                        try: each.fill_(number)
                        except RuntimeError: pass
                        number += 1
        except Exception as error:
            # Functions and methods that fxgraph takes and Python has not got, and what its modules refuse.
            if any(text in str(error) for text in ("module 'torch' has no attribute", "'Tensor' object has no attribute",
                                                   "'Parameter' object has no attribute",
                                                   "has no attribute 'functional", "'module' object is not callable",
                                                   'Expected more than 1')):
                continue
            wrong += 1
            print(f'{name} {form}: {type(error).__name__}: {str(error)[:600]}')
print(f'{tried} forms in Python, {wrong} wrong')
sys.exit(wrong > 0)
)py";

TEST(FormProgramsInPythonNight, FoldersAndTorchScriptDoTheSame) {
  const auto python = testing::python_with_torch();
  if (!python) GTEST_SKIP() << "Python's torch is not installed";
  const testing::Quiet quiet;
  const testing::ScratchFolder folder;
  draw(environment_number("FXGRAPH_FORM_PYTHON", 200), [&](std::uint64_t seed, const HostileProgram& program) {
    const std::vector<char> bytes = pickled(recorded(program));
    const auto module = program.build();
    const std::string path = folder / std::to_string(seed);
    to_folder(*module, path, "Net");
    try {
      save(*module, path + "/a.pt");
    } catch (const Error&) {  // the form beside is tried all the same
    }
    std::ofstream(path + "/calls.pt", std::ios::binary).write(bytes.data(), std::ssize(bytes));
  });
  EXPECT_TRUE(testing::passes_in_python(*python, folder.path(), kCheck, {}));
}

// ── C++ ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Compiled {
  std::uint64_t seed;
  HostileProgram program;
  std::string name;
};

std::string source_of(const Compiled& each) {
  const auto module = each.program.build();
  module->set_class_name(each.name);
  std::string arguments;
  for (std::size_t i = 0; i < each.program.inputs[0].size(); ++i)
    arguments += (i ? ", inputs[" : "inputs[") + std::to_string(i) + "].toTensor()";
  return code(*module, Language::cpp) + "\nstatic std::shared_ptr<" + each.name + "> net_" + each.name +
         ";\nextern \"C\" torch::nn::Module* load_" + each.name + "(const std::string& weights) {\n  net_" + each.name +
         " = std::make_shared<" + each.name + ">();\n  if (!weights.empty()) torch::load(net_" + each.name +
         ", weights);\n  return net_" + each.name + ".get();\n}\nextern \"C\" void run_" + each.name +
         "(const std::vector<c10::IValue>& inputs, c10::IValue& result) {\n  result = net_" + each.name + "->forward(" +
         arguments + ");\n}\n\n";
}

using Load = torch::nn::Module* (*)(const std::string&);
using Run = void (*)(const std::vector<c10::IValue>&, c10::IValue&);

/// C++ has no None beside tensors but the tensor that is none.
c10::IValue with_none(const c10::IValue& value) {
  if (value.isTensor() && !value.toTensor().defined()) return {};
  if (value.isList()) {
    c10::List<c10::IValue> list(c10::AnyType::get());
    for (const c10::IValue& each : value.toListRef()) list.push_back(with_none(each));
    return list;
  }
  if (!value.isTuple()) return value;
  std::vector<c10::IValue> elements;
  for (const c10::IValue& each : value.toTupleRef().elements()) elements.push_back(with_none(each));
  return c10::ivalue::Tuple::create(std::move(elements));
}

std::string why_other(void* library, const Compiled& each, const std::string& weights) {
  const auto before = each.program.build();
  if (!before->parameters().empty() || !before->buffers().empty()) save(*before, weights);
  const auto load = reinterpret_cast<Load>(dlsym(library, ("load_" + each.name).c_str()));
  const auto run = reinterpret_cast<Run>(dlsym(library, ("run_" + each.name).c_str()));
  torch::nn::Module* net = load(std::filesystem::exists(weights) ? weights : std::string());
  hostile::Callable compiled{[run](std::vector<c10::IValue> inputs) {
                               c10::IValue result;
                               run(inputs, result);
                               return with_none(result);
                             },
                             {}};
  const auto state = hostile::state_of(*net);
  const std::map<std::string, at::Tensor> found(state.begin(), state.end());
  for (const auto& [path, tensor] : hostile::state_of(*before)) {
    const auto at = found.find(internal::script_path(path));
    if (at != found.end()) compiled.state.emplace_back(path, at->second);
  }
  const hostile::Tolerance tolerance = hostile::tolerance_of(each.program.narrowest);
  const auto wrong = hostile::difference(hostile::callable(*before), compiled, each.program.inputs, tolerance);
  return wrong && !hostile::is_ill_conditioned(each.program, tolerance) ? *wrong : std::string();
}

TEST(FormProgramsInCppNight, CompiledModulesDoTheSame) {
  constexpr std::size_t kInAUnit = 40;
  const testing::Quiet quiet;
  std::vector<Compiled> unit;
  std::string source;
  const auto finish = [&] {
    const testing::ScratchFolder folder;
    std::ofstream(folder / "unit.cc") << source;
    const std::string command = std::string(std::getenv("FXGRAPH_TEST_COMPILE")) + " " + (folder / "unit.cc").string() +
                                " " + (folder / "unit.so").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    void* library = dlopen((folder / "unit.so").c_str(), RTLD_NOW);  // stays loaded: tensors may have deleters in it
    ASSERT_TRUE(library) << dlerror();
    for (const Compiled& each : unit) {
      const std::string wrong = why_other(library, each, folder / (each.name + ".pt"));
      EXPECT_EQ(wrong, "") << "seed " << each.seed << "\n" << each.program.str() << source_of(each);
    }
    unit.clear();
    source.clear();
  };
  draw(environment_number("FXGRAPH_FORM_CPP", 200), [&](std::uint64_t seed, const HostileProgram& program) {
    Compiled each{seed, program.clone(), "P" + std::to_string(seed)};
    const std::string text = source_of(each);
    to_torchscript(*program.build());  // what keeps its weights; refused where it has no words for the program
    source += text;
    unit.push_back(std::move(each));
    if (unit.size() == kInAUnit) finish();
  });
  if (!unit.empty()) finish();
}

}  // namespace fx::form_programs_elsewhere_test
