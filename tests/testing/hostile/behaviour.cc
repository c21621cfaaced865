#include <fxgraph/testing/hostile/behaviour.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/testing/hostile/subject.h>
#include <fxgraph/text/print.h>

namespace fx::hostile {

namespace {

/// By how much numbers are moved.
struct Shaking {
  Random& random;
  double step;
};

/// Moves every number that an operator computes by some of its roundings, as another order of summation might.
class Shaken : public Interpreter {
 public:
  Shaken(GraphModule& module, Shaking shaking) : Interpreter(module), shaking_(shaking) {}

  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return shaken(Interpreter::call_function(target, args, kwargs), args, kwargs);
  }
  Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
    return shaken(Interpreter::call_method(target, args, kwargs), args, kwargs);
  }

 private:
  Value shaken(Value made, const Args& args, const Kwargs& kwargs) {
    Tensors given, results;
    std::string structure;
    for (const Value& arg : args) take_apart(arg, given, structure);
    for (const auto& [name, arg] : kwargs) take_apart(arg, given, structure);
    take_apart(made, results, structure);
    for (const at::Tensor& result : results) {
      const auto is_view = [&](const at::Tensor& one) { return storage_of(one) == storage_of(result); };
      if (!storage_of(result) || !result.is_floating_point() || std::ranges::any_of(given, is_view)) continue;
      result.copy_(nudged(shaking_.random, result, shaking_.step));
    }
    return made;
  }

  Shaking shaking_;
};

/// Whether a NaN or an infinity comes up on the way.
class NumberWatch : public Interpreter {
 public:
  using Interpreter::Interpreter;

  Value run_node(const Node& node) override {
    Value value = Interpreter::run_node(node);
    Tensors tensors;
    std::string structure;
    take_apart(value, tensors, structure);
    for (const at::Tensor& tensor : tensors) {
      met_ |= tensor.defined() && !tensor.isfinite().all().item<bool>();
    }
    return value;
  }
  bool met_nonfinite() const { return met_; }

 private:
  bool met_ = false;
};

std::string ordinal(const char* what, std::size_t i) { return std::string(what) + " " + std::to_string(i); }

/// Compares two subjects call by call.
class Comparison {
 public:
  Comparison(Callable before, Callable after, const Tolerance& tolerance)
      : before_(std::move(before)), after_(std::move(after)), tolerance_(tolerance) {}

  std::optional<std::string> run(const std::vector<Tensors>& inputs) {
    for (std::size_t set = 0; set < inputs.size() && !found_; ++set) {
      before_.reset();
      after_.reset();
      std::vector<std::pair<Subject::Call, Subject::Call>> calls;
      for (std::size_t turn = 0; turn < 2 && !found_; ++turn) {
        const Tensors& values = inputs[(set + turn) % inputs.size()];
        calls.emplace_back(before_.call(values, set * 2 + turn), after_.call(values, set * 2 + turn));
        if (!calls.back().first.error.empty()) break;
        compare(calls.back().first, calls.back().second);
        when_ = turn == 0 ? " in the second call" : "";
        if (found_) break;
        // What the caller does with what it was given; then nobody else's may have changed otherwise than before.
        scribble(calls.back().first);
        scribble(calls.back().second);
        compare_state();
        for (const auto& [a, b] : calls) compare_tensors(a, b, " after the caller wrote to the results");
      }
      when_.clear();
    }
    return found_;
  }

 private:
  void note(std::string what) {
    if (!found_) found_ = std::move(what) + when_;
  }

  static void scribble(const Subject::Call& call) {
    double number = 11;
    for (const at::Tensor& result : call.results) fill(result, number++);
    for (const at::Tensor& input : call.inputs) fill(input, number++);
  }

  void compare(const Subject::Call& a, const Subject::Call& b) {
    if (!b.error.empty()) return note("fails: " + b.error);
    if (a.structure != b.structure) return note("returns something else: " + a.structure + ", now " + b.structure);
    compare_tensors(a, b, "");
    for (std::size_t i = 0; i < a.results.size() && !found_; ++i) {
      if (a.shares[i] != b.shares[i]) note(sharing(a, b, i));
      if (a.shares_state[i] != b.shares_state[i])
        note(ordinal("result", i) + (b.shares_state[i] ? " now" : " no longer") + " shares storage with the module");
    }
    if (!found_) compare_state();
  }

  static std::string sharing(const Subject::Call& a, const Subject::Call& b, std::size_t i) {
    const std::size_t own = a.inputs.size() + i;
    const auto with = [&](std::size_t other) {
      if (other == own || other == kFresh) return std::string("nothing before it");
      return other < a.inputs.size() ? ordinal("input", other) : ordinal("result", other - a.inputs.size());
    };
    return ordinal("result", i) + " shares storage with " + with(b.shares[i]) + ", before with " + with(a.shares[i]);
  }

  void compare_tensors(const Subject::Call& a, const Subject::Call& b, const char* when) {
    for (std::size_t i = 0; i < a.results.size() && !found_; ++i) {
      if (const auto why = tensors_differ(a.results[i], b.results[i], tolerance_))
        note(ordinal("result", i) + ": " + *why + ": " + describe(a.results[i]) + ", now " + describe(b.results[i]) +
             when);
    }
    for (std::size_t i = 0; i < a.inputs.size() && !found_; ++i) {
      if (const auto why = tensors_differ(a.inputs[i], b.inputs[i], tolerance_))
        note(ordinal("input", i) + " is left otherwise: " + *why + ": " + describe(a.inputs[i]) + ", now " +
             describe(b.inputs[i]) + when);
    }
  }

  bool is_kept_under_another_name(const Subject::State& gone) const {
    for (const Subject::State& other : before_.state()) {
      if (storage_of(other.tensor) == storage_of(gone.tensor) && after_.find(other.path)) return true;
    }
    return false;
  }

  // Folding changes what a path holds; what a path is changed by must stay.
  void compare_state() {
    for (const Subject::State& a : before_.state()) {
      const Subject::State* b = after_.find(a.path);
      const bool written = tensors_differ(a.tensor, a.initial, {}).has_value();
      if (!written && b && tensors_differ(b->tensor, b->initial, {})) return note(a.path + " is written to");
      if (written && !b && !is_kept_under_another_name(a)) return note(a.path + " is written to, and gone");
      if (!b) continue;
      if (!written) continue;
      if (const auto why = tensors_differ(a.tensor, b->tensor, tolerance_))
        return note(a.path + " is left otherwise: " + *why + ": " + describe(a.tensor) + ", now " +
                    describe(b->tensor));
    }
  }

  Subject before_, after_;
  Tolerance tolerance_;
  std::optional<std::string> found_;
  std::string when_;
};

}  // namespace

Tolerance tolerance_of(at::ScalarType narrowest) {
  switch (narrowest) {
    case at::kHalf: return {1e-2};
    case at::kBFloat16: return {5e-2};
    case at::kDouble: return {1e-9};
    default: return {1e-4};
  }
}

Callable callable(GraphModule& module) {
  return {[&module](std::vector<c10::IValue> inputs) { return module.run(std::move(inputs)); }, state_of(module),
          print_graph(module.graph())};
}

std::optional<std::string> difference(const Callable& before, const Callable& after, const std::vector<Tensors>& inputs,
                                      const Tolerance& tolerance) {
  const at::NoGradGuard no_grad;
  return Comparison(before, after, tolerance).run(inputs);
}
std::optional<std::string> difference(GraphModule& before, GraphModule& after, const std::vector<Tensors>& inputs,
                                      const Tolerance& tolerance) {
  return difference(callable(before), callable(after), inputs, tolerance);
}

bool runs(const HostileProgram& program) {
  const at::NoGradGuard no_grad;
  try {
    const auto module = program.build();
    return Subject(callable(*module)).call(program.inputs[0], 0).error.empty();
  } catch (const std::exception&) {
    return false;
  }
}

bool meets_nonfinite(const HostileProgram& program) {
  const auto module = program.build();
  NumberWatch watch(*module);
  const at::NoGradGuard no_grad;
  for (const Tensors& set : program.inputs) {
    for (int call = 0; call < 2; ++call) {  // what the first leaves in the state is what the second reads
      std::vector<c10::IValue> values;
      for (const at::Tensor& input : set) values.emplace_back(copy_of(input));
      try {
        watch.run(std::move(values));
      } catch (const std::exception&) {
        break;  // this set does not fit; what was seen so far counts
      }
    }
  }
  return watch.met_nonfinite();
}

bool is_ill_conditioned(const HostileProgram& program, const Tolerance& tolerance) {
  Random random(0);
  for (int turn = 0; turn < 6; ++turn) {
    const bool inside = turn >= 3;
    const double step_outside = inside ? 0 : tolerance.relative / 8, step_inside = tolerance.relative / 64;
    HostileProgram moved = program.clone();
    for (Tensors& set : moved.inputs) {
      for (at::Tensor& input : set) input = nudged(random, input, step_outside);
    }
    for (Weight& weight : moved.weights) {
      if (weight.same_as.empty()) weight.value = nudged(random, weight.value, step_outside);
    }
    const auto a = program.build(), b = moved.build();
    // The inputs themselves differ by less than this.
    Tolerance half{tolerance.relative / 2, tolerance.least_scale};
    const at::NoGradGuard no_grad;
    Callable shaken = callable(*b);
    if (inside) {
      shaken.run = [&](std::vector<c10::IValue> values) {
        return Shaken(*b, {random, step_inside}).run(std::move(values));
      };
    }
    Subject before(callable(*a)), after(std::move(shaken));
    for (std::size_t set = 0; set < program.inputs.size(); ++set) {
      const Subject::Call x = before.call(program.inputs[set], set), y = after.call(moved.inputs[set], set);
      if (inside && !y.error.empty()) return false;  // it is not the numbers that it minds
      if (x.error.empty() != y.error.empty() || x.results.size() != y.results.size()) return true;
      for (std::size_t i = 0; i < x.results.size(); ++i) {
        if (tensors_differ(x.results[i], y.results[i], half)) return true;
      }
      for (std::size_t i = 0; i < x.inputs.size(); ++i) {
        if (tensors_differ(x.inputs[i], y.inputs[i], half)) return true;
      }
      for (const Subject::State& state : before.state()) {
        const Subject::State* other = after.find(state.path);
        if (other && tensors_differ(state.tensor, other->tensor, half)) return true;
      }
    }
  }
  return false;
}

}  // namespace fx::hostile
