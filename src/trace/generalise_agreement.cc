// Whether a graph does at other sizes what the program does; and the parts of a Generaliser that write what was found.
#include <fxgraph/trace/generaliser.h>

#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/size_writer.h>

namespace fx::internal {

// ── Samples of another kind ───────────────────────────────────────────────────────────────────────────────────────

// A program that never asks for a size that varies cannot treat zero on its own. What is computed may have one size in
// all samples, and another where they do not come: of `avg_pool1d(x, 8)` all from 8 to 15 make one.
bool Generaliser::asks_for_sizes() const {
  if (search_.samples().empty()) return false;
  const TraceLog& log = program_.log;
  const auto& questions = log.questions();
  return log.meets_errors() || !explained_.empty() || !constants_.empty() || (log.asks_rank() && squeezes()) ||
         std::any_of(questions.begin(), questions.end(), [&](const TraceLog::Question& question) {
           const Node& node = *log[question.of].node;
           const at::Tensor value = program_.session.value_of(node);
           if (!value.defined() || value.sizes() != search_.samples().front()->sizes_of(question.of)) return true;
           const bool is_given = node.is(Op::placeholder) || node.is(Op::get_attr);
           return !is_given && value.dim() > 0 && !log.is_inside_leaf(question.of);
         });
}

// How many dimensions there are is then a question for sizes, too.
bool Generaliser::squeezes() const {
  static const Symbol kSqueeze("aten::squeeze"), kInPlace("aten::squeeze_");
  for (std::uint32_t call = 0; call < program_.log.size(); ++call) {
    const Symbol target = program_.log[call].target;
    if (target == kSqueeze || target == kInPlace) return true;
  }
  return false;
}

// As near as explanations are: what a program computes of sizes in float is no other number.
bool is_near(const Argument& argument, const SizeTerms::Number& number) {
  constexpr double kRounding = 3e-7;
  if (!number.is_known) return false;
  if (argument.is_int()) return argument.as_int() == number.whole;
  return std::abs(argument.as_float() - number.real) <= kRounding * std::abs(number.real);
}

// Whether all numbers that the graph computes are those of the program.
bool Generaliser::agrees(const Sample& sample) const {
  const auto is_alive = [&](std::uint32_t call) { return !program_.log[call].node->is_erased(); };
  const auto values = terms_.evaluate([&](std::uint32_t call, std::int64_t dim) {
    const at::IntArrayRef sizes = sample.sizes_of(call);
    return dim < static_cast<std::int64_t>(sizes.size()) ? sizes[static_cast<std::size_t>(dim)] : -1;
  });
  std::map<Place, Argument> now;
  for (const Sample::Change& change : sample.changes()) {
    if (is_alive(change.call)) now.emplace(Place(change.call, change.leaf), change.value);
  }
  for (const auto& [place, term] : explained_) {
    const auto changed = now.find(place);
    if (!is_near(changed == now.end() ? program_.log.leaf(place.first, place.second) : changed->second, values[term]))
      return false;
    if (changed != now.end()) now.erase(changed);
  }
  if (!now.empty()) return false;
  std::map<std::uint32_t, at::Tensor> constants;
  for (const Sample::ChangedConstant& constant : sample.changed_constants()) {
    if (is_alive(constant.call)) constants.emplace(constant.call, constant.value);
  }
  for (const Constant& constant : constants_) {
    const auto changed = constants.find(constant.call);
    if (!agrees(constant, changed == constants.end() ? constant.first : changed->second, values)) return false;
    if (changed != constants.end()) constants.erase(changed);
  }
  return constants.empty();
}

bool Generaliser::agrees(const Constant& constant, const at::Tensor& value,
                         const std::vector<SizeTerms::Number>& terms) const {
  if (value.sizes() != constant.first.sizes() || value.scalar_type() != constant.first.scalar_type()) return false;
  const at::Tensor flat = value.detach().flatten(), before = constant.first.detach().flatten();
  auto element = constant.elements.begin();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const at::Scalar number = flat[i].item();
    const bool is_computed = element != constant.elements.end() && element->first == static_cast<std::size_t>(i);
    if (!is_computed && !flat[i].equal(before[i])) return false;
    if (is_computed && !is_near(number.isFloatingPoint() ? Argument(number.toDouble()) : Argument(number.toLong()),
                                terms[(element++)->second]))
      return false;
  }
  return true;
}

// Inputs of another number of dimensions may be another program: of all that what was asked for comes from.
void Generaliser::write_ranks() {
  static const Symbol kDim("aten::dim");
  const TraceLog& log = program_.log;
  std::vector<bool> matters(log.size(), false);
  for (const TraceLog::Question& question : log.rank_questions()) matters[question.of] = true;
  for (std::uint32_t call = log.size(); call-- > 0;) {
    if (!matters[call]) continue;
    for (const Argument& argument : log.arguments(call))
      for_each_node(argument, [&](const Node& node) { matters[log.index_of(node)] = true; });
  }
  for (const BoundTensor& input : inputs_) {
    if (!matters[log.index_of(*input.node)] && !log.meets_errors()) continue;
    const std::int64_t rank = input.example.dim();
    assert_of_input(graph_, input, kDim, rank,
                    input.name + " must be of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                        ", as in the example: the program asks how many there are");
  }
}

// `chunk` makes fewer parts of little than it is asked for, `split` more of much: where sizes vary that are taken
// apart, the graph says how many parts it takes.
void Generaliser::write_lengths() {
  static const std::set<Symbol> kCounted = {Symbol("aten::chunk"), Symbol("aten::unsafe_chunk"),
                                            Symbol("aten::split.Tensor"), Symbol("aten::unsafe_split.Tensor")};
  for (std::uint32_t call = 0; call < program_.log.size(); ++call) {
    const TraceLog::Call& each = program_.log[call];
    if (!kCounted.contains(each.target) || each.list_length == 0 || each.node->is_erased()) continue;
    const ArgumentSpan arguments = program_.log.arguments(call);
    const std::uint32_t of = program_.log.index_of(arguments[0].node());
    const at::IntArrayRef before = program_.session.value_of(*program_.log[of].node).sizes();
    const auto dim =
        static_cast<std::size_t>(c10::maybe_wrap_dim(arguments[2].as_int(), static_cast<std::int64_t>(before.size())));
    const bool varies = std::any_of(search_.samples().begin(), search_.samples().end(), [&](const auto& sample) {
      return sample->sizes_of(of).size() > dim && sample->sizes_of(of)[dim] != before[dim];
    });
    if (!varies) continue;
    const auto at = graph_.inserting_after(*each.node);
    const auto count = static_cast<std::int64_t>(each.list_length);
    Node& length = graph_.call_function(python::kLength, {Argument(each.node)});
    AssertionWriter(graph_).add(
        SizeRelation::equal, length, count,
        "%" + each.node->name() + " must be of " + std::to_string(count) + " parts, as for the example");
  }
}

// ── Writing it ────────────────────────────────────────────────────────────────────────────────────────────────────

void Generaliser::write() {
  if (!asks_for_sizes()) groups_.forget_probed();
  SizeNodes sizes = write_size_assertions(graph_, inputs_, groups_);
  write_ranks();
  write_lengths();
  if (changes_.empty() && constants_changed_.empty()) return;
  SizeWriter writer(graph_, program_.session, program_.log, terms_, std::move(sizes));
  for (const auto& [place, term] : explained_) writer.replace(place.first, place.second, term);
  for (Constant& constant : constants_)
    writer.replace_constant(constant.call, constant.first, std::move(constant.elements));
  writer.write();
}

std::vector<SizeTerms::Id> Generaliser::terms_in_use() const {
  std::vector<SizeTerms::Id> terms;
  for (const auto& [place, term] : explained_) terms.push_back(term);
  for (const Constant& constant : constants_) {
    for (const auto& [element, term] : constant.elements) terms.push_back(term);
  }
  return terms;
}

std::string Generaliser::explanation() const {
  std::string text;
  for (const SizeTerms::Id term : terms_in_use()) text += terms_.str(term) + ";";
  return text;
}

}  // namespace fx::internal
