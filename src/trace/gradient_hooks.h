// What a program asks of the gradient of a tensor beside requires_grad(): grad_fn() and is_leaf().
#pragma once

namespace fx::internal {

/// Has LibTorch ask the tracer before it answers them for a traced tensor, for which they are refused where the answer
/// may be another one in another run. Once per process; all else is answered as before. Without effect on LibTorch 2,
/// whose hooks grow from version to version.
void install_gradient_hooks();

}  // namespace fx::internal
