// StateMember: a member of a program that is registered nowhere, named so that a trace puts it back after each run.
//
//   fx::TraceOptions options;
//   options.state = {{"cache", &net->cache}, {"length", &net->length}};   // a tensor, a number
//   fx::symbolic_trace(net, {x}, options);
//
// Takes tensors, optional tensors, vectors of tensors, integers, floating-point numbers and bools. Tensors that are
// there before the trace become buffers of the GraphModule: of a vector by `cache.0`, `cache.1`. Cost: one function
// each. Errors: none here; symbolic_trace refuses a number that later calls read changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

namespace fx {

/// A pointer to such a member; it must live as long as the trace.
class StateMember {
 public:
  /// Of each kind; no constructor is explicit, so that `{"name", &member}` will do.
  /// @{
  StateMember(at::Tensor* member)  // NOLINT(google-explicit-constructor)
      : StateMember(member, [member] { return std::vector<at::Tensor>{*member}; }) {}
  StateMember(std::vector<at::Tensor>* member)  // NOLINT(google-explicit-constructor)
      : StateMember(member, [member] { return *member; }) {
    is_list_ = true;
  }
  template <typename Optional>
  requires requires(Optional* member) {
    { member->value() } -> std::same_as<at::Tensor&>;
  }
  StateMember(Optional* member)  // NOLINT(google-explicit-constructor)
      : StateMember(member, [member] { return std::vector<at::Tensor>{member->value_or(at::Tensor())}; }) {}
  template <typename Number>
  requires std::is_arithmetic_v<Number> StateMember(Number* member)  // NOLINT(google-explicit-constructor)
      : StateMember(member, [] { return std::vector<at::Tensor>(); }) {}
  /// @}

  /// The tensors that it holds now, undefined ones among them; none of a number.
  std::vector<at::Tensor> tensors() const { return tensors_(); }
  /// Whether it holds any number of tensors.
  bool is_list() const { return is_list_; }
  /// Remembers what it is now. Returns what puts that back.
  std::function<void()> remember() const { return remember_(); }

 private:
  template <typename Member>
  StateMember(Member* member, std::function<std::vector<at::Tensor>()> tensors)
      : tensors_(std::move(tensors)),
        remember_([member]() -> std::function<void()> { return [member, before = *member] { *member = before; }; }) {}

  std::function<std::vector<at::Tensor>()> tensors_;
  std::function<std::function<void()>()> remember_;
  bool is_list_ = false;
};

}  // namespace fx
