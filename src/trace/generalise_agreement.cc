// What changes with sizes, and whether a graph does at other sizes what the program does; and the parts of a
// Generaliser that write what was found.
#include <fxgraph/trace/generaliser.h>

#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/size_writer.h>

namespace fx::internal {

// ── What changes ──────────────────────────────────────────────────────────────────────────────────────────────────

bool Generaliser::find_changes() {
  changes_.clear();
  constants_changed_.clear();
  const auto& samples = search_.samples();
  const auto is_alive = [&](std::uint32_t call) { return !program_.log[call].node->is_erased(); };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const Probe::Change& change : samples[i]->changes()) {
      if (!is_alive(change.call)) continue;
      std::vector<Argument>& values = changes_[{change.call, change.leaf}];
      if (values.empty()) values.assign(samples.size() + 1, program_.log.leaf(change.call, change.leaf));
      values[i + 1] = change.value;
    }
    for (const Probe::ChangedConstant& constant : samples[i]->changed_constants()) {
      if (!is_alive(constant.call)) continue;
      std::vector<at::Tensor>& values = constants_changed_[constant.call];
      if (values.empty())
        values.assign(samples.size() + 1,
                      captured_at(program_.session, program_.log[constant.call].node->target())->tensor);
      values[i + 1] = constant.value;
    }
  }
  return !changes_.empty() || !constants_changed_.empty();
}

// ── Probes of another kind ───────────────────────────────────────────────────────────────────────────────────────

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

namespace {

using SizesOfRun = std::map<std::string, std::int64_t>;

// As near as explanations are: what a program computes of sizes in float is no other number.
bool is_near(const Argument& argument, const SizeExpr& size, const SizesOfRun& sizes) {
  constexpr double kRounding = 3e-7;
  if (argument.is_int()) return size.evaluate(sizes) == argument.as_int();
  const std::optional<double> number = size.evaluate_real(sizes);
  return number && std::abs(argument.as_float() - *number) <= kRounding * std::abs(*number);
}

// A tensor that is made of numbers one by one.
bool is_near(const at::Tensor& value, const at::Tensor& first,
             const std::vector<std::pair<std::size_t, SizeExpr>>& elements, const SizesOfRun& sizes) {
  if (value.sizes() != first.sizes() || value.scalar_type() != first.scalar_type()) return false;
  const at::Tensor flat = value.detach().flatten(), before = first.detach().flatten();
  auto element = elements.begin();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const at::Scalar number = flat[i].item();
    const bool is_computed = element != elements.end() && element->first == static_cast<std::size_t>(i);
    if (!is_computed && !flat[i].equal(before[i])) return false;
    if (is_computed && !is_near(number.isFloatingPoint() ? Argument(number.toDouble()) : Argument(number.toLong()),
                                (element++)->second, sizes))
      return false;
  }
  return true;
}

}  // namespace

// Whether all numbers that the graph computes are those of the program.
bool Generaliser::agrees(const Probe& sample) const {
  const auto is_alive = [&](std::uint32_t call) { return !program_.log[call].node->is_erased(); };
  SizesOfRun sizes;
  for (const auto& [symbol, place] : places_) {
    const at::IntArrayRef all = sample.sizes_of(place.first);
    const auto dim = static_cast<std::size_t>(place.second);
    sizes.emplace(symbol, dim < all.size() ? all[dim] : -1);
  }
  std::map<Place, Argument> now;
  for (const Probe::Change& change : sample.changes()) {
    if (is_alive(change.call)) now.emplace(Place(change.call, change.leaf), change.value);
  }
  for (const auto& [place, size] : explained_) {
    const auto changed = now.find(place);
    if (!is_near(changed == now.end() ? program_.log.leaf(place.first, place.second) : changed->second, size, sizes))
      return false;
    if (changed != now.end()) now.erase(changed);
  }
  if (!now.empty()) return false;
  std::map<std::uint32_t, at::Tensor> constants;
  for (const Probe::ChangedConstant& constant : sample.changed_constants()) {
    if (is_alive(constant.call)) constants.emplace(constant.call, constant.value);
  }
  for (const SizedConstant& constant : constants_) {
    const auto changed = constants.find(constant.call);
    const at::Tensor& value = changed == constants.end() ? constant.first : changed->second;
    if (!is_near(value, constant.first, constant.elements, sizes)) return false;
    if (changed != constants.end()) constants.erase(changed);
  }
  return constants.empty();
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
  SizeWriter writer(graph_, program_.session, program_.log, places_, std::move(sizes));
  for (const auto& [place, size] : explained_) writer.replace(place.first, place.second, size);
  for (SizedConstant& constant : constants_) writer.replace_constant(std::move(constant));
  writer.write();
}

std::vector<SizeExpr> Generaliser::explanation() const {
  std::vector<SizeExpr> sizes;
  for (const auto& [place, size] : explained_) sizes.push_back(size);
  for (const SizedConstant& constant : constants_) {
    for (const auto& [element, size] : constant.elements) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace fx::internal
