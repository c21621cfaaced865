// The entry of generalising: what the caller has declared of sizes, and what an earlier attempt has found.
#include <algorithm>

#include <fxgraph/shapes/stand_in.h>
#include <fxgraph/support/error.h>
#include <fxgraph/trace/generaliser.h>
#include <fxgraph/trace/size_tie.h>
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

void tie_declared(SizeGroups& groups, const std::vector<BoundTensor>& inputs, const Sizes& sizes) {
  std::vector<std::string> names;
  for (const SizeDimension& dimension : groups.dimensions)
    names.push_back(dimension_name(inputs[dimension.input], dimension.dim));
  for (const std::string& text : sizes.ties()) {
    DeclaredTie declared = parse_tie(text, names);
    const std::int64_t is = groups.groups[declared.group].size, wanted = declared.tie.value(groups.examples());
    if (is != wanted) {
      throw Error(ErrorKind::invalid_argument, "Sizes::tied(\"" + text + "\"): of the examples the one is " +
                                                   std::to_string(is) + ", the other " + std::to_string(wanted));
    }
    groups.groups[declared.group].why = "it is declared";
    groups.follow(declared.group, std::move(declared.tie));
  }
}

}  // namespace

bool generalise(Graph& graph, const SampledProgram& program, Session& session, const std::vector<BoundTensor>& inputs,
                const Sizes& sizes, Retrace& retrace, const AtFoundSizes& at_found_sizes) {
  SizeGroups groups(inputs, what_varies(inputs, sizes));
  bound_by(groups, retrace.largest);
  tie_declared(groups, inputs, sizes);
  const KeepRandomState keep;
  Generaliser generaliser(graph, program, inputs, groups, retrace);
  if (!generaliser.run(at_found_sizes)) return false;
  check_named(inputs, groups, sizes);
  assert_types(graph, program, inputs, groups.stand_ins(groups.examples()),
               generaliser.has_seen_types() && !program.session.asks_layout());
  if (!generaliser.is_same_at_examples()) return false;
  generaliser.take_values(session);
  return true;
}

}  // namespace fx::internal
