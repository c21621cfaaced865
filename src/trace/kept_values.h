// What becomes of traced tensors that a program keeps when a run of it is over: in members, in a static, a map.
//
//   if (!mask.defined()) mask = torch::triu(torch::ones({n, n}), 1);     // depends on nothing
//   running = running * 0.9 + x.mean(0);                                 // takes the place of a buffer
//   attention = torch::softmax(scores, -1);                              // is there to be looked at
//
// Their handles may lie anywhere. Nobody looks for them: each becomes an ordinary tensor where it lies.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace fx {
class Node;
}

namespace fx::internal {

class ProxyImpl;
class Session;

/// A value that a run puts in the place of a tensor of the root.
struct KeptUpdate {
  const Node* value;
  at::Tensor buffer;
};

/// The proxies of `session` that are alive. Whoever asks must be alone with them.
std::vector<ProxyImpl*> alive_proxies(Session& session);
/// Makes another handle on the buffer of each proxy of `session`, closed, that stands for what takes its place: the
/// next run finds there what this one found.
void become_buffers(Session& session, const std::vector<KeptUpdate>& updates);
/// Gives proxies of `session`, closed, that depend on nothing the values that a call outside of a trace would have
/// given them. True when there was one.
bool become_constants(Session& session);
/// Gives all proxies of `session`, closed, the values of one call on the examples (trace/known_values.h). What cannot
/// be told stands for nothing from now on; of that the first is returned, null where there is none. To be called while
/// the graph is there.
const Node* become_values(Session& session);

}  // namespace fx::internal
