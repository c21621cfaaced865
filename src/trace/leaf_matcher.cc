
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/leaf_matcher.h>

namespace fx::internal {
namespace {

constexpr int kWindow = 64;  // how far from the others an operator without arguments may stand

}  // namespace

bool LeafMatcher::equal(const Argument& wanted, const Argument& found, const LeafMatch& match) const {
  if (const Node* node = wanted.node_or_null()) return found.node_or_null() == match.image[*node];
  if (!wanted.is_container()) return wanted == found;
  const ArgumentSpan a = wanted.elements();
  const ArgumentSpan b = found.elements();
  if (wanted.kind() != found.kind() || a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i], match)) return false;
  }
  return true;
}

bool LeafMatcher::fits(const Node& wanted, Node& candidate, const LeafMatch& match) const {
  if (candidate.op() != wanted.op() || candidate.target() != wanted.target() || taken_.contains(&candidate))
    return false;
  if (candidate.args().size() != wanted.args().size() || candidate.kwargs().size() != wanted.kwargs().size())
    return false;
  for (std::size_t i = 0; i < wanted.args().size(); ++i) {
    if (!equal(wanted.args()[i], candidate.args()[i], match)) return false;
  }
  for (std::size_t i = 0; i < wanted.kwargs().size(); ++i) {
    if (wanted.kwargs().name(i) != candidate.kwargs().name(i)) return false;
    if (!equal(wanted.kwargs().value(i), candidate.kwargs().value(i), match)) return false;
  }
  return true;
}

// A result that the program does not take leaves no getitem.
bool LeafMatcher::may_be_absent(const Node& wanted) {
  return wanted.target() == python::kGetItem && wanted.num_users() == 1 && (*wanted.users().begin()).is(Op::output);
}

Node* LeafMatcher::find_call(const Node& wanted, LeafMatch& match) {
  const Node* rarest = nullptr;
  wanted.for_each_input([&](Node& input) {
    const Node* image = match.image[input];
    if (!image) return;
    if (!rarest || image->num_users() < rarest->num_users()) rarest = image;
  });
  Node* found = nullptr;
  if (rarest) {
    for (Node& user : rarest->users()) {
      if (fits(wanted, user, match)) {
        found = &user;
        break;
      }
    }
  } else {
    Node* start = &near_;
    for (int i = 0; i < kWindow && start->previous(); ++i) start = start->previous();
    for (int i = 0; i < 2 * kWindow && start && !found; ++i, start = start->next()) {
      if (fits(wanted, *start, match)) found = start;
    }
  }
  if (found) {
    taken_.insert(found);
    match.claimed.push_back(found);
  }
  return found;
}

}  // namespace fx::internal
