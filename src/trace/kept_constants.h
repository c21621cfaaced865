// Tensors that a program makes once and keeps outside of what a trace can put back: in a static, a map, behind a
// pointer.
//
//   static const torch::Tensor mean = torch::tensor({0.5, 0.4, 0.3});
//   if (!masks.contains(n)) masks[n] = torch::triu(torch::ones({n, n}), 1);
//
// The first call makes them, so a trace of it leaves traced tensors there. Those that no input, parameter or chance
// decides are given the values that a call outside of a trace would have given them, wherever their handles lie.
//
// Other traced tensors that are left there get the values of a call on the examples, so that the module can still be
// used: the trace is refused, and says so.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace fx::internal {

class ProxyImpl;
class Session;

/// Those of `proxies` that belong to `session` and depend on nothing, with their values.
std::vector<std::pair<ProxyImpl*, at::Tensor>> kept_constants(const Session& session,
                                                              const std::vector<ProxyImpl*>& proxies);
/// Makes ordinary tensors of all proxies of `session`, closed, that are still alive and depend on nothing.
void settle_kept_constants(Session& session);

/// Makes ordinary tensors of all proxies of `session`, closed, whose graph is there: copies of `before(proxy)` where
/// that is defined, else values of one call (trace/known_values.h); what has neither stands for nothing. Returns
/// whether there was one.
bool settle_left_over(Session& session, const std::function<at::Tensor(const ProxyImpl&)>& before);

}  // namespace fx::internal
