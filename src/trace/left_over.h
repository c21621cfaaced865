// LeftOver: which traced tensors outlive the traces of a program.
//
// Proxies hold their session: a session that is alive after everybody has let go of it is held by a proxy that the
// program has kept. Cost: a few words per session. Thread-safety: one each for a thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include <fxgraph/trace/session.h>

namespace fx::internal {

class LeftOver {
 public:
  LeftOver() : outer_(current()) { current() = this; }
  ~LeftOver() { current() = outer_; }
  LeftOver(const LeftOver&) = delete;
  LeftOver& operator=(const LeftOver&) = delete;

  /// Tells the trace that this thread is in of a session.
  static void watch(const std::shared_ptr<Session>& session) {
    if (current()) current()->sessions_.push_back(session);
  }
  /// The sessions that are alive.
  std::vector<std::shared_ptr<Session>> sessions() const {
    std::vector<std::shared_ptr<Session>> alive;
    for (const std::weak_ptr<Session>& known : sessions_) {
      if (std::shared_ptr<Session> session = known.lock()) alive.push_back(std::move(session));
    }
    return alive;
  }
  /// How many references to the sessions there are; to those that were not abandoned.
  long count() const {
    long count = 0;
    for (const std::weak_ptr<Session>& known : sessions_) {
      const std::shared_ptr<Session> session = known.lock();
      if (session && !session->is_abandoned()) count += session.use_count() - 1;
    }
    return count;
  }
  /// How many handles the sessions have captured, by tensor.
  static std::unordered_map<const c10::TensorImpl*, std::size_t> captured() {
    std::unordered_map<const c10::TensorImpl*, std::size_t> counts;
    for (std::size_t i = 0; current() && i < current()->sessions_.size(); ++i) {
      const std::shared_ptr<Session> session = current()->sessions_[i].lock();
      if (!session) continue;
      for (const CapturedTensor& each : session->captured()) ++counts[each.tensor.unsafeGetTensorImpl()];
    }
    return counts;
  }
  /// The proxies that are alive of the trace that this thread is in. Whoever asks must be alone with them.
  static std::vector<ProxyImpl*> proxies() {
    std::vector<ProxyImpl*> found;
    if (!current()) return found;
    for (const std::weak_ptr<Session>& known : current()->sessions_) {
      if (const std::shared_ptr<Session> session = known.lock())
        session->proxies().for_each([&](ProxyImpl& proxy) { found.push_back(&proxy); });
    }
    return found;
  }

 private:
  static LeftOver*& current() {
    static thread_local LeftOver* innermost = nullptr;
    return innermost;
  }

  LeftOver* outer_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

}  // namespace fx::internal
