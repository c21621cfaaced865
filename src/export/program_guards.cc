// What a program asks of its inputs' sizes: ranges, and guards whose texts name the inputs as Python's caller does.
#include <algorithm>
#include <set>
#include <utility>

#include <fxgraph/export/program_reader.h>

namespace fx::pt2 {

// The value of the call that `L['d']['a'][0]` is: of the argument d, of all positional ones (`args`), or of all values.
std::optional<std::size_t> ProgramReader::leaf_of(const std::vector<GuardStep>& path) const {
  if (path.empty()) return std::nullopt;
  const TreeSpec& positional = in_spec_.children[0];
  const TreeSpec& keywords = in_spec_.children[1];
  if (path[0].key == "flat_args" && path.size() == 2)
    return path[1].index < static_cast<std::int64_t>(inputs_.size()) ? std::optional(path[1].index) : std::nullopt;
  const TreeSpec* at = nullptr;
  std::size_t leaf = 0, next = 1;
  const auto enter = [&](const TreeSpec& whole, std::size_t child) {
    for (std::size_t i = 0; i < child; ++i) leaf += whole.children[i].num_leaves();
    at = &whole.children[child];
  };
  const auto child_of = [](const TreeSpec& whole, const GuardStep& step) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < whole.children.size(); ++i) {
      const bool fits = whole.kind != TreeSpec::Kind::dict
                            ? step.key.empty() && step.index == static_cast<std::int64_t>(i)
                            : whole.keys[i] == (step.key.empty() ? Argument(step.index) : Argument(step.key));
      if (fits) return i;
    }
    return std::nullopt;
  };
  const auto name = std::ranges::find(argument_names_, path[0].key);
  const auto place = static_cast<std::size_t>(name - argument_names_.begin());
  if (named_ && name != argument_names_.end() && place < positional.children.size()) {
    enter(positional, place);
  } else if (const auto keyword = child_of(keywords, path[0])) {
    leaf = positional.num_leaves();
    enter(keywords, *keyword);
  } else if (path[0].key == "args" && !named_) {
    at = &positional;
  } else {
    return std::nullopt;
  }
  for (; next < path.size(); ++next) {
    const auto child = child_of(*at, path[next]);
    if (!child) return std::nullopt;
    enter(*at, *child);
  }
  return at->is_leaf() ? std::optional(leaf) : std::nullopt;
}

// Those that say something else than is read here say nothing that a run would not find out.
std::vector<StatedGuard> ProgramReader::read_guards() {
  std::vector<StatedGuard> guards;
  const Json* texts = find_member(program_, "guards_code");
  if (!texts) return guards;
  std::set<std::string> seen;
  for (const Json& each : array_of(*texts)) {
    const std::string& text = string_of(each);
    if (!seen.insert(text).second) continue;
    if (auto guard = parse_guard(text, [this](const auto& path) { return leaf_of(path); }))
      guards.push_back({std::move(*guard), "the inputs must satisfy " + text});
  }
  return guards;
}

// Of the same conditions in fxgraph's words, which Python passes over.
std::vector<StatedGuard> ProgramReader::read_reasons() {
  const Json* notes = find_member(module_json_, "metadata");
  const Json* note = notes ? find_member(*notes, kReasonsNote) : nullptr;
  if (!note) return {};
  const Json all = Json::parse(string_of(*note), nullptr, /*allow_exceptions=*/false);
  if (all.is_discarded()) malformed("the reasons of its conditions are no JSON");
  std::vector<StatedGuard> reasons;
  for (const Json& each : array_of(all)) {
    const Json::array_t& pair = array_of(each);
    if (pair.size() != 2) malformed("a reason of a condition has no condition");
    if (auto guard = parse_guard(string_of(pair[0]), [this](const auto& path) { return leaf_of(path); }))
      reasons.push_back({std::move(*guard), string_of(pair[1])});
  }
  return reasons;
}

// Before anything is taken out of the arguments: a list may be too short.
void ProgramReader::add_guards() {
  if (checked_.empty()) return;
  std::vector<Argument> args;
  for (const CheckedInput& input : checked_) {
    if (input.node->is(Op::placeholder)) args.push_back(*input.node);
  }
  std::vector<StatedGuard> guards, reasons;
  if (options_.check_sizes) {
    guards = read_guards();
    reasons = read_reasons();
  }
  std::vector<SizeExpr> noted;
  for (const StatedGuard& each : guards) noted.push_back(each.guard);
  const std::vector<Node*> placeholders = module_->graph().placeholders();
  if (!noted.empty()) placeholders.front()->meta().set(kGuardsNote, std::move(noted));
  const std::shared_ptr<GraphModule> checks = make_guards(checked_, ranges_, reasons, guards, options_.check_sizes);
  if (!checks) return;
  module_->add_submodule(kGuards, checks);
  const auto at = module_->graph().inserting_after(*placeholders.back());
  module_->graph().call_module(kGuards, args);
}

}  // namespace fx::pt2
