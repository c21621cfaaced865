// AutocastScope: autocast for one kind of device, switched while it lives. LibTorch has renamed the switches: this is
// the one place that knows.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <optional>

#include <fxgraph/support/error.h>

namespace fx {

class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, std::optional<at::ScalarType> type, bool enabled, bool cache)
      : device_(device),
        was_enabled_(is_enabled(device)),
        had_cache_(at::autocast::is_autocast_cache_enabled()),
        had_type_(type_of(device)) {
    at::autocast::increment_nesting();
    set(enabled, type.value_or(had_type_), cache);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set(was_enabled_, had_type_, had_cache_);
  }

  /// Whether autocast is on for devices of the kind, and switching it for good.
  /// @{
  static bool is_enabled(c10::DeviceType device);
  static void set_enabled(c10::DeviceType device, bool enabled);
  /// @}

 private:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  static at::ScalarType type_of(c10::DeviceType device) { return at::autocast::get_autocast_dtype(device); }
  void set(bool enabled, at::ScalarType type, bool cache) {
    set_enabled(device_, enabled);
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::set_autocast_cache_enabled(cache);
  }
#else
  static bool is_cpu(c10::DeviceType device) {
    if (device == c10::DeviceType::CPU) return true;
    if (device == c10::DeviceType::CUDA) return false;
    throw Error(ErrorKind::unsupported, "autocast is known for the CPU and for CUDA");
  }
  static at::ScalarType type_of(c10::DeviceType device) {
    return is_cpu(device) ? at::autocast::get_autocast_cpu_dtype() : at::autocast::get_autocast_gpu_dtype();
  }
  void set(bool enabled, at::ScalarType type, bool cache) {
    set_enabled(device_, enabled);
    if (is_cpu(device_)) {
      at::autocast::set_autocast_cpu_dtype(type);
    } else {
      at::autocast::set_autocast_gpu_dtype(type);
    }
    at::autocast::set_autocast_cache_enabled(cache);
  }
#endif

  c10::DeviceType device_;
  bool was_enabled_;
  bool had_cache_;
  at::ScalarType had_type_;
};

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
inline bool AutocastScope::is_enabled(c10::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
inline void AutocastScope::set_enabled(c10::DeviceType device, bool enabled) {
  at::autocast::set_autocast_enabled(device, enabled);
}
#else
inline bool AutocastScope::is_enabled(c10::DeviceType device) {
  return is_cpu(device) ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
inline void AutocastScope::set_enabled(c10::DeviceType device, bool enabled) {
  is_cpu(device) ? at::autocast::set_cpu_enabled(enabled) : at::autocast::set_enabled(enabled);
}
#endif

}  // namespace fx
