
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/trace/leaf_matcher.h>
#include <fxgraph/trace/same_calls.h>

namespace fx::internal {
namespace {

constexpr int kWindow = 64;  // how far from the others an operator without arguments may stand

}  // namespace

bool LeafMatcher::fits(const Node& wanted, const Node& candidate, const LeafMatch& match) const {
  return !taken_.contains(&candidate) && same_call(wanted, candidate, [&](const Node& pattern, const Node& found) {
    return match.image[pattern] == &found;
  });
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
