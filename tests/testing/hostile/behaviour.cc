#include <fxgraph/testing/hostile/behaviour.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fxgraph/module/interpreter.h>
#include <fxgraph/run/value.h>

namespace fx::hostile {

namespace {

constexpr std::size_t kFresh = ~std::size_t{0};

const void* storage_of(const at::Tensor& tensor) {
  // Of a tensor without elements nobody can tell.
  return tensor.defined() && tensor.has_storage() && tensor.numel() > 0 ? tensor.storage().unsafeGetStorageImpl()
                                                                        : nullptr;
}

/// The tensors of a result, and what stands around them as a text.
void take_apart(const c10::IValue& value, Tensors& tensors, std::string& structure) {
  if (value.isTensor()) {
    structure += "t";
    tensors.push_back(value.toTensor());
  } else if (value.isTuple() || value.isList()) {
    structure += "(";
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) take_apart(element, tensors, structure);
    } else {
      for (const c10::IValue& element : value.toListRef()) take_apart(element, tensors, structure);
    }
    structure += ")";
  } else if (value.isGenericDict()) {
    structure += "{";
    for (const auto& entry : value.toGenericDict()) {
      take_apart(entry.key(), tensors, structure);
      take_apart(entry.value(), tensors, structure);
    }
    structure += "}";
  } else if (value.isDouble()) {
    structure += "f";
    tensors.push_back(at::scalar_tensor(value.toDouble(), at::kDouble));
  } else if (value.isInt()) {
    structure += "i" + std::to_string(value.toInt());
  } else if (value.isBool()) {
    structure += value.toBool() ? "T" : "F";
  } else if (value.isString()) {
    structure += value.toStringRef();
  } else {
    structure += value.tagKind();
  }
}

std::optional<std::string> tensors_differ(const at::Tensor& a, const at::Tensor& b, const Tolerance& tolerance) {
  if (a.defined() != b.defined()) return "one is None";
  if (!a.defined()) return {};
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return "other type or sizes";
  const std::vector<double> x = elements_of(a), y = elements_of(b);
  double scale = tolerance.least_scale, worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
      if (x[i] != y[i])
        return std::isinf(x[i]) || std::isinf(y[i]) ? "other numbers that are not finite"
                                                    : "other numbers that are not finite: NaN";
      continue;
    }
    scale = std::max(scale, std::abs(x[i]));
    worst = std::max(worst, std::abs(x[i] - y[i]));
  }
  if (worst > tolerance.relative * scale) return "other numbers";
  return {};
}

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

/// One of the two modules, with all that it did so far.
class Subject {
 public:
  explicit Subject(GraphModule& module, std::optional<Shaking> shaking = {}) : module_(module), shaking_(shaking) {
    for (auto& [path, tensor] : state_of(module)) state_.push_back({path, tensor, copy_of(tensor)});
  }

  struct State {
    std::string path;
    at::Tensor tensor;
    at::Tensor initial;
  };
  struct Call {
    std::string error;
    Tensors results, inputs;
    std::string structure;
    std::vector<std::size_t> shares;  // for each result, the first of inputs and results with the same storage
    std::vector<bool> shares_state;
  };

  /// Puts the state back to what it was at first.
  void reset() {
    for (State& state : state_) {
      if (state.tensor.storage().nbytes() != state.initial.storage().nbytes()) continue;
      if (state.initial.storage().nbytes() > 0)
        std::memcpy(state.tensor.storage().data_ptr().get(), state.initial.storage().data(),
                    state.initial.storage().nbytes());
      state.tensor.unsafeGetTensorImpl()->set_storage_offset(state.initial.storage_offset());
      state.tensor.unsafeGetTensorImpl()->set_sizes_and_strides(state.initial.sizes(), state.initial.strides());
      if (!state.tensor.is_inference()) state.tensor.unsafeGetTensorImpl()->bump_version();
    }
  }

  Call call(const Tensors& inputs, std::uint64_t seed) {
    Call done;
    std::vector<c10::IValue> values;
    for (const at::Tensor& input : inputs) values.emplace_back(done.inputs.emplace_back(copy_of(input)));
    at::manual_seed(seed);
    try {
      const c10::IValue made =
          shaking_ ? Shaken(module_, *shaking_).run(std::move(values)) : module_.run(std::move(values));
      take_apart(made, done.results, done.structure);
    } catch (const std::exception& error) {
      done.error = first_line(error);
      return done;
    }
    note_sharing(done);
    return done;
  }

  const std::vector<State>& state() const { return state_; }
  const State* find(const std::string& path) const {
    for (const State& state : state_) {
      if (state.path == path) return &state;
    }
    return nullptr;
  }

 private:
  void note_sharing(Call& done) const {
    std::map<const void*, std::size_t> first;
    for (std::size_t i = 0; i < done.inputs.size(); ++i) first.emplace(storage_of(done.inputs[i]), i);
    for (std::size_t i = 0; i < done.results.size(); ++i) {
      const void* storage = storage_of(done.results[i]);
      done.shares.push_back(storage ? first.emplace(storage, done.inputs.size() + i).first->second : kFresh);
      bool with_state = false;
      for (const State& state : state_) with_state |= storage && storage_of(state.tensor) == storage;
      done.shares_state.push_back(with_state);
    }
  }

  GraphModule& module_;
  std::optional<Shaking> shaking_;
  std::vector<State> state_;
};

std::string ordinal(const char* what, std::size_t i) { return std::string(what) + " " + std::to_string(i); }

/// Compares two subjects call by call.
class Comparison {
 public:
  Comparison(GraphModule& before, GraphModule& after, const Tolerance& tolerance)
      : before_(before), after_(after), tolerance_(tolerance) {}

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

std::optional<std::string> difference(GraphModule& before, GraphModule& after, const std::vector<Tensors>& inputs,
                                      const Tolerance& tolerance) {
  const at::NoGradGuard no_grad;
  return Comparison(before, after, tolerance).run(inputs);
}

bool runs(const HostileProgram& program) {
  const at::NoGradGuard no_grad;
  try {
    const auto module = program.build();
    return Subject(*module).call(program.inputs[0], 0).error.empty();
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
    Subject before(*a), after(*b, inside ? std::optional(Shaking{random, step_inside}) : std::nullopt);
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
