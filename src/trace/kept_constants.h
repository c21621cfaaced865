// Tensors that a program makes once and keeps outside of what a trace can put back: in a static, a map, behind a
// pointer.
//
//   static const torch::Tensor mean = torch::tensor({0.5, 0.4, 0.3});
//   if (!masks.contains(n)) masks[n] = torch::triu(torch::ones({n, n}), 1);
//
// The first call makes them, so a trace of it leaves traced tensors there. Those that no input, parameter or chance
// decides are given the values that a call outside of a trace would have given them, wherever their handles lie.
#pragma once

#include <vector>

namespace fx::internal {

class ProxyImpl;
class Session;

/// Makes ordinary tensors of those of `proxies` that belong to `session`, closed, and that depend on nothing. Returns
/// whether there was one: the program must be traced again, for it will not make it again.
bool settle_kept_constants(const Session& session, const std::vector<ProxyImpl*>& proxies);
/// The same for all proxies of a session that are still alive.
void settle_kept_constants(Session& session);

}  // namespace fx::internal
