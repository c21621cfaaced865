#include <fxgraph/trace/odd_inputs.h>

#include <algorithm>

#include <fxgraph/trace/disguise.h>
#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {
namespace {

using Outcome = ChildTrial::Outcome;

// What LibTorch says of a dimension that is not there: the graph asks for it, too.
bool is_about_a_missing_dimension(const ChildTrial& trial) {
  return trial.why.find("Dimension out of range") != std::string::npos ||
         trial.why.find("imension specified as") != std::string::npos;
}

bool goes_another_way(const ChildTrial& trial) {
  return trial.outcome == Outcome::differs || trial.outcome == Outcome::ended ||
         (trial.outcome == Outcome::threw && !is_about_a_missing_dimension(trial));
}

}  // namespace

// ── Size zero ────────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::add_empty() {
  const auto add = [&](const std::vector<std::uint32_t>& some) {
    GroupSizes sizes = groups_.examples();
    for (const std::uint32_t group : some) sizes[group] = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (groups_.groups[i].one_or) sizes[i] = sizes[*groups_.groups[i].one_or];
    }
    trials_.push_back({.stand_ins = groups_.stand_ins(sizes)});
    return trials_.size() - 1;
  };
  std::vector<std::uint32_t> open;
  for (const std::uint32_t group : groups_.free()) {
    if (!groups_.groups[group].one_or && groups_.groups[group].below == 0) open.push_back(group);
  }
  if (open.empty()) return;
  const std::size_t all = add(open);  // an operator that refuses all at once hides what comes behind
  for (const std::uint32_t group : open) {
    empty_.push_back({add({group}), group});
    trials_.back().unless = all;
  }
}

void OddInputs::forbid_empty(std::uint32_t index, const std::string& why, const std::string& where) {
  SizeGroup& group = groups_.groups[index];
  group.below_said = false;
  group.lowest = 1;
  const std::string of_zero = "at size 0: " + why;
  group.why += group.why.empty() ? of_zero : "; " + of_zero;
  if (group.where.empty()) group.where = where;
}

// ── Other ranks ──────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::add_rank(bool more, const std::vector<std::uint32_t>& some) {
  constexpr std::int64_t kMany = 2;
  std::vector<at::Tensor> inputs = groups_.stand_ins(groups_.examples());
  for (const std::uint32_t i : some) {
    const at::Tensor& example = inputs_[i].example;
    std::vector<std::int64_t> sizes = example.sizes().vec();
    if (more) {
      sizes.insert(sizes.begin(), kMany);
    } else {
      sizes.erase(sizes.begin());
    }
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t next = 1;
    for (std::size_t dim = sizes.size(); dim-- > 0; next *= std::max<std::int64_t>(sizes[dim], 1)) strides[dim] = next;
    inputs[i] = without_contents(example, sizes, strides, example.options());
  }
  ranks_.push_back({trials_.size(), some});
  trials_.push_back({.stand_ins = std::move(inputs)});
}

void OddInputs::add_ranks() {
  constexpr std::size_t kMostAlone = 4;
  for (const bool more : {true, false}) {
    std::vector<std::uint32_t> some;
    for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
      const at::Tensor& example = inputs_[i].example;
      if (example.layout() == at::kStrided && (more || example.dim() > 0)) some.push_back(i);
    }
    for (std::size_t i = 0; some.size() > 1 && i < some.size() && some.size() <= kMostAlone; ++i)
      add_rank(more, {some[i]});
    if (!some.empty()) add_rank(more, some);
  }
}

// What is against another rank of the input: of it alone, or of all where nothing is against one of them alone.
const ChildTrial* OddInputs::against(std::uint32_t input) const {
  bool is_alone = false;  // one of those before the next all
  for (const auto& [number, inputs] : ranks_) {
    const bool is_against = goes_another_way(trials_[number]);
    const bool is_of_one = inputs.size() == 1, has = std::find(inputs.begin(), inputs.end(), input) != inputs.end();
    if (is_against && has && (is_of_one || !is_alone)) return &trials_[number];
    is_alone = is_of_one && (is_alone || is_against);
  }
  return nullptr;
}

void OddInputs::write(Graph& graph) const {
  static const Symbol kDim("aten::dim");
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    const BoundTensor& input = inputs_[i];
    const ChildTrial* trial = against(i);
    if (!trial) continue;
    const std::int64_t rank = input.example.dim();
    std::string why = input.name + " must be of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                      ", as in the example; with " + (trial->stand_ins[i].dim() > rank ? "one more: " : "one less: ") +
                      trial->why;
    if (!trial->where.empty()) why += " (" + trial->where + ")";
    assert_of_input(graph, input, kDim, rank, why);
  }
}

// ── Trying them ──────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::run(const std::function<bool(const Sample&)>& agrees) {
  try_in_children(program_, trials_, agrees);
  for (const auto& [number, group] : empty_) {
    const ChildTrial& trial = trials_[number];
    const bool is_needless = trial.unless && trials_[*trial.unless].outcome == Outcome::agrees;
    if (trial.outcome == Outcome::untried && !is_needless) {
      forbid_empty(group, "whether the program takes it could not be tried", "");
    } else if (goes_another_way(trial) || trial.outcome == Outcome::threw) {
      forbid_empty(group, trial.why, trial.where);
    }
  }
}

}  // namespace fx::internal
