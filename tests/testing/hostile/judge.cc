#include <fxgraph/testing/hostile/judge.h>

#include <algorithm>

#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>

namespace fx::hostile {

namespace {

HostileProgram on_doubles(const HostileProgram& program) {
  HostileProgram wide = program.clone();
  const auto widened = [](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.is_floating_point()) return tensor.to(at::kDouble);
    return tensor.defined() && tensor.is_complex() ? tensor.to(at::kComplexDouble) : tensor;
  };
  for (Tensors& set : wide.inputs) std::ranges::transform(set, set.begin(), widened);
  for (Weight& weight : wide.weights) weight.value = widened(weight.value);
  for (Submodule& submodule : wide.submodules) {
    submodule.prototype = submodule.prototype->clone();
    for (const auto& [path, tensor] : state_of(*submodule.prototype)) tensor.set_data(widened(tensor));
  }
  return wide;
}

/// Rounding that moving the inputs does not show: a kernel's own (the mean of equal numbers less each of them), or of
/// what an earlier call left. Results may be a fifth apart then, if the same program and rewrite agree on doubles.
/// Where one is NaN, rounding has changed the sign of a number next to 0, and nothing tells how far apart they are.
bool is_rounding_within(const HostileProgram& program, const Rewrite& rewrite, const Tolerance& tolerance,
                        bool is_of_nan) {
  if (program.narrowest == at::kDouble) return false;
  const auto agrees = [&](const HostileProgram& subject, const Tolerance& allowed) {
    const auto before = subject.build(), after = subject.build();
    const Rewritten done = rewrite(*after, subject);
    return done.changed &&
           !difference(callable(*before), done.instead.value_or(callable(*after)), subject.inputs, allowed);
  };
  return (is_of_nan || agrees(program, {0.2, tolerance.least_scale})) &&
         agrees(on_doubles(program), {1e-6, tolerance.least_scale});
}

Node& node_at(Graph& graph, std::size_t index) {
  auto at = graph.nodes().begin();
  while (index-- > 0) ++at;
  return *at;
}

/// The inputs that no placeholder takes any more, and the weights and modules that nothing names, go.
void drop_unread(HostileProgram& program) {
  const std::vector<Node*> placeholders = program.graph.placeholders();
  for (std::size_t i = placeholders.size(); i-- > 0;) {
    if (placeholders[i]->has_users()) continue;
    program.graph.erase_node(*placeholders[i]);
    for (Tensors& set : program.inputs) {  // those that are not given have defaults and come last
      if (i < set.size()) set.erase(set.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  const auto is_named = [&](const std::string& path) {
    for (const Node& node : program.graph.nodes()) {
      if ((node.is(Op::get_attr) || node.is(Op::call_module)) && node.target().view().starts_with(path)) return true;
    }
    for (const Weight& weight : program.weights) {
      if (weight.same_as == path) return true;
    }
    for (const Submodule& submodule : program.submodules) {
      if (submodule.same_as == path) return true;
      if (std::ranges::any_of(submodule.tied, [&](const auto& tie) { return tie.second == path; })) return true;
    }
    return false;
  };
  std::erase_if(program.weights, [&](const Weight& weight) { return !is_named(weight.path); });
  std::erase_if(program.submodules, [&](const Submodule& submodule) { return !is_named(submodule.path); });
}

class Reducer {
 public:
  Reducer(const HostileProgram& program, const Rewrite& rewrite) : best_(program.clone()), rewrite_(rewrite) {}

  HostileProgram reduce() {
    bool smaller = true;
    while (smaller && checks_ < 400) {
      smaller = fewer_results();
      smaller |= fewer_nodes();
      smaller |= fewer_inputs();
    }
    return std::move(best_);
  }

 private:
  bool try_instead(HostileProgram candidate) {
    ++checks_;
    try {
      candidate.graph.lint();
      if (judge(candidate, rewrite_).wrong.empty()) return false;
    } catch (const std::exception&) {
      return false;
    }
    best_ = std::move(candidate);
    return true;
  }

  bool fewer_results() {
    bool done = false;
    for (std::size_t i = 0;; ++i) {
      const Argument result = best_.graph.output_node()->arg(0);
      if (!result.is_sequence() || i >= result.elements().size()) return done;
      std::vector<Argument> rest(result.elements().begin(), result.elements().end());
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      HostileProgram candidate = best_.clone();
      std::vector<Argument> mapped;
      for (const Argument& element : rest) {
        if (const Node* node = element.node_or_null()) {
          mapped.emplace_back(candidate.graph.find(node->name()));
        } else if (!element.is_sequence()) {
          mapped.push_back(element);
        }
      }
      candidate.graph.erase_node(*candidate.graph.output_node());
      candidate.graph.output(mapped.size() == 1 ? mapped[0] : Argument::tuple(mapped));
      if (try_instead(std::move(candidate))) {
        done = true;
        --i;
      }
    }
  }

  bool fewer_nodes() {
    bool done = false;
    for (std::size_t i = best_.graph.size(); i-- > 0 && checks_ < 400;) {
      if (i >= best_.graph.size()) continue;
      const Node& node = node_at(best_.graph, i);
      if (node.is(Op::output) || (node.is(Op::placeholder) && node.has_users())) continue;
      done |= without(i);
    }
    return done;
  }

  bool without(std::size_t i) {
    const std::size_t inputs =
        node_at(best_.graph, i).has_users() ? node_at(best_.graph, i).all_input_nodes().size() : 1;
    for (std::size_t k = 0; k < inputs; ++k) {
      HostileProgram candidate = best_.clone();
      Node& node = node_at(candidate.graph, i);
      if (node.has_users()) node.replace_all_uses_with(*node.all_input_nodes()[k]);
      if (!node.is(Op::placeholder)) candidate.graph.erase_node(node);
      drop_unread(candidate);
      if (try_instead(std::move(candidate))) return true;
    }
    return false;
  }

  bool fewer_inputs() {
    if (best_.inputs.size() < 2) return false;
    HostileProgram candidate = best_.clone();
    candidate.inputs.resize(1);
    return try_instead(std::move(candidate));
  }

  HostileProgram best_;
  const Rewrite& rewrite_;
  std::size_t checks_ = 0;
};

}  // namespace

Verdict judge(const HostileProgram& program, const Rewrite& rewrite) {
  Verdict verdict;
  std::shared_ptr<GraphModule> after;
  Rewritten done;
  try {
    after = program.build();
  } catch (const std::exception&) {
    return verdict;
  }
  try {
    done = rewrite(*after, program);
  } catch (const std::exception& error) {
    verdict.ran = runs(program);
    if (!verdict.ran) return verdict;
    verdict.changed = true;
    verdict.wrong = "the rewrite throws: " + first_line(error);
    return verdict;
  }
  if (!done.changed) return verdict;
  const auto before = program.build();
  const Tolerance tolerance =
      done.is_exact ? Tolerance() : tolerance_of(done.rounds ? at::kBFloat16 : program.narrowest);
  const Callable does = done.instead.value_or(callable(*after));
  const std::optional<std::string> wrong = difference(callable(*before), does, program.inputs, tolerance);
  verdict.ran = verdict.changed = true;
  if (!wrong) return verdict;
  const auto is_of = [&](std::string_view kind) { return wrong->find(kind) != std::string::npos; };
  if (done.needs_finite && (is_of("not finite") || (is_of("other numbers") && meets_nonfinite(program)))) {
    if (program.numbers == Numbers::tame) return verdict;
    return judge(program.with_tame_numbers(), rewrite);
  }
  if (!done.is_exact && is_of("other numbers") &&
      (is_ill_conditioned(program, tolerance) || is_rounding_within(program, rewrite, tolerance, is_of("NaN"))))
    return verdict;
  verdict.wrong = *wrong;
  verdict.after = does.text;
  return verdict;
}

HostileProgram reduce(const HostileProgram& program, const Rewrite& rewrite) {
  return Reducer(program, rewrite).reduce();
}

}  // namespace fx::hostile
