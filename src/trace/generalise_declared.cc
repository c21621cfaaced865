// The entry of generalising: what the caller has declared of sizes, and what an earlier attempt has found.
#include <algorithm>

#include <fxgraph/contract/arithmetic.h>
#include <fxgraph/run/keep_random_state.h>
#include <fxgraph/shapes/fake_input.h>
#include <fxgraph/support/error.h>
#include <fxgraph/symbolic/size_text.h>
#include <fxgraph/trace/generaliser.h>
#include <fxgraph/trace/type_dependence.h>

namespace fx::internal {
namespace {

void bound_by(SizeGroups& groups, const std::vector<std::vector<std::int64_t>>& largest) {
  for (std::uint32_t i = 0; i < groups.dimensions.size() && !largest.empty(); ++i) {
    const SizeDimension& dimension = groups.dimensions[i];
    const std::int64_t most = largest[dimension.input][static_cast<std::size_t>(dimension.dim)];
    groups.groups[dimension.group].stay_below(std::max(most, dimension.size) + 1,
                                              "the program keeps what it has made for the sizes that were tried", {});
  }
}

/// `mask[1] = x[1] + cache[1]`
struct DeclaredTie {
  std::string dimension;
  SizeExpr size;
};

DeclaredTie parse_tie(std::string_view text, const std::vector<std::string>& names) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::invalid_argument,
                "Sizes::tied(\"" + std::string(text) + "\"): " + why + "; write it as \"mask[1] = x[1] + cache[1]\"");
  };
  // The longest that fits: `x[1]` and `x[12]`, `xs[0].size(1)`.
  const auto name = [&](std::string_view rest) -> std::optional<NameInText> {
    std::string_view found;
    for (const std::string& each : names) {
      if (each.size() > found.size() && rest.starts_with(each)) found = each;
    }
    if (found.empty()) return std::nullopt;
    return NameInText{found.size(), SizeExpr::symbol(std::string(found))};
  };
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::optional<NameInText> first = name(text.substr(begin));
  if (!first) fail("the name of a dimension is missing at column " + std::to_string(begin + 1));
  const std::size_t equals = std::min(text.find_first_not_of(' ', begin + first->length), text.size());
  if (!text.substr(equals).starts_with('=')) fail("'=' is missing at column " + std::to_string(equals + 1));
  DeclaredTie tie{first->size.name(), {}};
  try {
    tie.size = read_size(text, name, equals + 1);
  } catch (const Error& error) {
    fail(error.what());
  }
  if (is_condition(tie.size)) fail("a condition stands where a size is wanted");
  return tie;
}

void tie_declared(SizeGroups& groups, const std::vector<BoundTensor>& inputs, const Sizes& sizes) {
  std::vector<std::string> names;
  for (const SizeDimension& dimension : groups.dimensions)
    names.push_back(dimension_name(inputs[dimension.input], dimension.dim));
  for (const std::string& text : sizes.ties()) {
    DeclaredTie declared = parse_tie(text, names);
    const std::uint32_t group = groups.group_of(declared.dimension);
    const std::int64_t is = groups.groups[group].size, wanted = groups.value(declared.size, groups.examples());
    if (is != wanted) {
      throw Error(ErrorKind::invalid_argument, "Sizes::tied(\"" + text + "\"): of the examples the one is " +
                                                   std::to_string(is) + ", the other " + std::to_string(wanted));
    }
    groups.groups[group].why = "it is declared";
    groups.follow(group, std::move(declared.size));
  }
}

/// The tensors inside of a value, and the numbers and strings.
struct Leaves {
  std::vector<at::Tensor> tensors;
  std::vector<c10::IValue> others;

  explicit Leaves(const c10::IValue& value) {
    value.visit([this](const c10::IValue& part) {
      if (part.isTensor()) {
        if (part.toTensor().defined()) tensors.push_back(part.toTensor());
      } else if (!part.isList() && !part.isTuple() && !part.isGenericDict()) {
        others.push_back(part);
      }
      return false;
    });
  }
  bool is_like(const Leaves& example) const {
    return tensors.size() == example.tensors.size() && others == example.others;
  }
};

}  // namespace

MoreExamples tensors_of(const std::vector<std::vector<c10::IValue>>& more, const std::vector<c10::IValue>& examples,
                        const std::vector<BoundTensor>& inputs) {
  MoreExamples result;
  for (std::size_t nth = 0; nth < more.size(); ++nth) {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorKind::invalid_argument, "more_examples[" + std::to_string(nth) + "]: " + why);
    };
    if (more[nth].size() != examples.size()) {
      refuse("it has " + std::to_string(more[nth].size()) + " values, the examples have " +
             std::to_string(examples.size()));
    }
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const Leaves leaves(more[nth][i]);
      if (!leaves.is_like(Leaves(examples[i])))
        refuse("value " + std::to_string(i) + " is not like that of the examples; only sizes of tensors may differ");
      tensors.insert(tensors.end(), leaves.tensors.begin(), leaves.tensors.end());
    }
    if (tensors.size() != inputs.size()) refuse("it has not the tensors that the program was given");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor& example = inputs[i].example;
      if (tensors[i].dim() != example.dim() || tensors[i].scalar_type() != example.scalar_type())
        refuse(inputs[i].name + " has another type or number of dimensions; trace the program for each");
    }
    result.push_back(std::move(tensors));
  }
  return result;
}

bool generalise(Graph& graph, const ProbedProgram& program, Session& session, const std::vector<BoundTensor>& inputs,
                const Sizes& sizes, const MoreExamples& more, Retrace& retrace, const AtFoundSizes& at_found_sizes) {
  SizeGroups groups(inputs, what_varies(inputs, sizes));
  bound_by(groups, retrace.largest);
  tie_declared(groups, inputs, sizes);
  const KeepRandomState keep;
  Generaliser generaliser(graph, program, inputs, groups, retrace);
  for (std::size_t nth = 0; nth < more.size(); ++nth) generaliser.take_example(nth, more[nth]);
  if (!generaliser.run(at_found_sizes)) return false;
  for (std::size_t nth = 0; nth < more.size(); ++nth) generaliser.check_example(nth, more[nth]);
  check_named(inputs, groups, sizes);
  assert_types(graph, program, inputs, groups.stand_ins(groups.examples()));
  if (!generaliser.is_same_at_examples()) return false;
  generaliser.take_values(session);
  return true;
}

}  // namespace fx::internal
