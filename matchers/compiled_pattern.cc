#include <fxgraph/matchers/compiled_pattern.h>

namespace fx::internal {

CompiledPattern::CompiledPattern(const Pattern& pattern, std::shared_ptr<const PatternFacts> facts,
                                 const FindOptions& options)
    : pattern_(PatternAccess::shared(pattern)),
      facts_(std::move(facts)),
      hot_(facts_->hot.data()),
      fixed_plans_(facts_->fixed_plans.data()),
      options_(options) {
  facts_->check(options);
}

Fit CompiledPattern::fit(std::uint32_t call, const Node& node) {
  std::uint8_t& known =
      fits_[(std::uint64_t{call} << 40) | (static_cast<std::uint64_t>(node.op()) << 32) | node.target().id()];
  if (known == 0) {
    Fit fit = facts_->fit(call, node.op(), node.target());
    if (fit != Fit::no && !accepts_type(this->node(call).types, node.target())) fit = Fit::no;
    known = static_cast<std::uint8_t>(fit);
  }
  return static_cast<Fit>(known);
}

bool CompiledPattern::accepts_slowly(std::uint32_t call, const Node& node) {
  if (node.op() != hot_[call].op && !(hot_[call].op == Op::call_function && node.op() == Op::call_method)) return false;
  const Fit fit = this->fit(call, node);
  if (fit != Fit::asked) return fit == Fit::written;
  const Call& found = called(node);
  // What is no call that is known is what it is written as.
  return found ? facts_->means(call, found)
               : node.op() == hot_[call].op && (this->node(call).targets.contains(node.target()) ||
                                                this->node(call).targets.is_spelt(node.target()));
}

const Call& CompiledPattern::called(const Node& node) const {
  if (options_.calls) {
    if (const Call* known = options_.calls->translated(node)) return *known;
  }
  if (const std::uint64_t revision = node.graph().revision(); !calls_ || revision != calls_revision_) {
    calls_of_ = {};
    calls_ = std::make_unique<ChunkedVector<Call>>();
    calls_revision_ = revision;
  }
  std::uint32_t& position = calls_of_[node.id()];
  if (position == 0) {
    calls_->emplace_back(call_of(node));
    position = static_cast<std::uint32_t>(calls_->size());
  }
  return (*calls_)[position - 1];
}

/// `torch.nn.modules.conv.Conv2d` is also a `Conv2d`.
bool CompiledPattern::accepts_type(const TargetSet& types, Symbol path) const {
  if (types.accepts_all()) return true;
  const std::string type = options_.modules.type_of(path.view());
  const std::size_t last = type.find_last_of(".:");
  return !type.empty() &&
         (types.contains(Symbol(type)) || (last != std::string::npos && types.contains(Symbol(type.substr(last + 1)))));
}

bool CompiledPattern::may_be(std::uint32_t index, const Node& node) {
  const PatternNode& pattern = this->node(index);
  if (pattern.kind == PatternKind::call) return accepts(index, node);
  for (const std::uint32_t alternative : pattern.args) {
    if (may_be(alternative, node)) return true;
  }
  return false;
}

GivenOperands CompiledPattern::other_operands(std::uint32_t call, const Node& node) {
  GivenOperands found{fixed_plans_[call], node.args(), node.kwargs()};
  const bool by_meaning = hot_[call].op == Op::call_function &&
                          (fit(call, node) == Fit::asked || this->node(call).targets.is_spelt(node.target()));
  const Call meant = by_meaning ? called(node) : is_spelt_as_operator(node) ? call_of(node) : Call();
  const OperatorSchema* schema = meant ? &meant.schema() : nullptr;
  if (schema) {
    found.args = meant.args();
    found.kwargs = meant.kwargs();
  }
  const std::uint64_t id = (std::uint64_t{call} << 32) | (schema ? schema->target : node.target()).id();
  auto known = other_plans_.find(id);
  if (known == other_plans_.end()) known = other_plans_.emplace(id, facts_->make_plan(call, schema)).first;
  return {known->second, found.args, found.kwargs};
}

}  // namespace fx::internal
