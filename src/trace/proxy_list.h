// ProxyList: the proxies of a session that are alive.
//
// They are linked with each other, so that one costs no memory; any thread may destroy one.
#pragma once

#include <atomic>

namespace fx::internal {

class ProxyImpl;

class ProxyList {
 public:
  void add(ProxyImpl& proxy);
  void remove(ProxyImpl& proxy);
  bool is_empty() const {
    const Lock lock(busy_);
    return !newest_;
  }
  /// `visit` must not make or destroy proxies.
  template <typename Visit>
  void for_each(Visit&& visit);

  /// A proxy's place in the list.
  struct Links {
    ProxyImpl* older = nullptr;
    ProxyImpl* newer = nullptr;
  };

 private:
  struct Lock {
    explicit Lock(std::atomic_flag& flag) : busy(flag) {
      while (busy.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { busy.clear(std::memory_order_release); }
    std::atomic_flag& busy;
  };

  mutable std::atomic_flag busy_;
  ProxyImpl* newest_ = nullptr;
};

}  // namespace fx::internal
