// How ranks find each other: the store of rank 0, and who came. Internal to rewriter/partition/process_group.cc.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fxgraph/rewriter/partition/process_group.h>

namespace fx {

/// In the store: why the first rank that gave up did, and, with its number, that a rank has read it.
inline constexpr const char* kFault = "fault";
inline constexpr const char* kInformed = "informed/";

/// Runs `action` on a thread of its own, which is left behind when it takes longer: nothing then. Throws what it
/// throws.
template <typename Action>
auto within(std::chrono::milliseconds limit, Action action) -> std::optional<decltype(action())> {
  using Result = decltype(action());
  auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> future = promise->get_future();
  std::thread([promise, action = std::move(action)]() mutable {
    try {
      promise->set_value(action());
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (future.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return future.get();
}

/// The message of an error of c10d's or gloo's, without the place in their sources.
std::string plain_message(const std::exception& error);

/// Makes or finds the store and waits until every rank is there. Throws std::runtime_error with a sentence: the port is
/// taken, nobody answers, who did not come.
c10::intrusive_ptr<c10d::Store> meet(const WorkerAddress& address);

/// Waits until every rank is connected to all others: of one that went on and left before that they would see a broken
/// connection, and not hear why. Throws std::runtime_error.
void wait_for_connections(c10d::Store& store, const WorkerAddress& address);

}  // namespace fx
