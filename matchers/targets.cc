#include <fxgraph/matchers/targets.h>

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/python_names.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/support/error.h>

namespace fx {

std::string_view to_string(Tag tag) {
  static constexpr std::array<std::string_view, 5> kNames = {"pointwise", "view", "reduction", "random", "mutating"};
  return kNames[static_cast<std::size_t>(tag)];
}

namespace {

bool has_tag(const OperatorTraits& traits, Tag tag) {
  switch (tag) {
    case Tag::pointwise: return traits.pointwise;
    case Tag::view: return traits.view;
    case Tag::reduction: return traits.reduction;
    case Tag::random: return traits.random;
    case Tag::mutating: return traits.writes;
  }
  return false;
}

template <typename T>
void append_new(std::vector<T>& to, const std::vector<T>& from) {
  for (const T& value : from) {
    if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
  }
}

/// Of functions that are no operators.
bool has_tag(internal::KnownEffect effect, Tag tag) {
  using enum internal::KnownEffect;
  if (tag == Tag::random) return effect == random;
  const bool writes = effect == writes_first || effect == keeps || effect == writes_any || effect == writes_out;
  return tag == Tag::mutating && writes;
}

}  // namespace

TargetSet::TargetSet(std::initializer_list<TargetSet> sets) : TargetSet(std::vector<TargetSet>(sets)) {}

TargetSet::TargetSet(const std::vector<TargetSet>& sets) {
  for (const TargetSet& set : sets) {
    append_new(names_, set.names_);
    append_new(spelt_, set.spelt_);
    append_new(expressions_, set.expressions_);
    append_new(tags_, set.tags_);
  }
}

TargetSet TargetSet::matching(std::string_view expression) {
  const re2::StringPiece text(expression.data(), expression.size());
  auto compiled = std::make_shared<const re2::RE2>(text, re2::RE2::Quiet);
  if (compiled->error_code() == re2::RE2::ErrorBadUTF8) {  // a target may be any bytes
    re2::RE2::Options bytes(re2::RE2::Quiet);
    bytes.set_encoding(re2::RE2::Options::EncodingLatin1);
    compiled = std::make_shared<const re2::RE2>(text, bytes);
  }
  if (!compiled->ok()) {
    throw Error(ErrorKind::syntax, "bad regular expression '" + std::string(expression) + "': " + compiled->error());
  }
  TargetSet set;
  set.expressions_.push_back(std::move(compiled));
  return set;
}

TargetSet TargetSet::spelt(std::string_view name) {
  TargetSet set;
  set.spelt_ = {canonical_target(Symbol(name))};
  return set;
}

bool TargetSet::is_spelt(Symbol target) const { return std::ranges::find(spelt_, target) != spelt_.end(); }

bool TargetSet::contains(Symbol target) const {
  if (accepts_all()) return true;
  for (const Symbol name : names_) {
    if (name == target) return true;
  }
  if (!tags_.empty()) {
    if (const OperatorSchema* schema = find_overload(target)) {
      for (const Tag tag : tags_) {
        if (has_tag(schema->traits, tag)) return true;
      }
    } else if (const internal::KnownEffect* effect = internal::known_effect(target.view())) {
      for (const Tag tag : tags_) {
        if (has_tag(*effect, tag)) return true;
      }
    }
  }
  const std::string_view text = target.view();
  for (const auto& expression : expressions_) {
    if (re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *expression)) return true;
  }
  return false;
}

std::vector<std::string> TargetSet::expressions() const {
  std::vector<std::string> texts;
  for (const auto& expression : expressions_) texts.push_back(expression->pattern());
  return texts;
}

bool operator==(const TargetSet& a, const TargetSet& b) {
  return a.names_ == b.names_ && a.spelt_ == b.spelt_ && a.tags_ == b.tags_ && a.expressions() == b.expressions();
}

}  // namespace fx
