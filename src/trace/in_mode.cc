#include <fxgraph/trace/in_mode.h>

#include <c10/util/strides.h>

#include <algorithm>
#include <memory>

#include <fxgraph/run/value.h>

namespace fx::internal {

InMode::InMode(const SecondCallPlan& base, const RunInMode& run, bool training)
    : run_(run), training_(training), plan_(base) {
  plan_.run = [run, training](Session& session, Graph& graph) { run(session, graph, nullptr, training); };
}

bool InMode::run(bool second_call) {
  constexpr int kMostCalls = 8;  // of a program that keeps one thing after the other
  for (int i = 0; i < kMostCalls && call_once(second_call); ++i) {
  }
  return error_.empty();
}

// True when the program keeps what it has made, and is to be called again for what it does with it.
bool InMode::call_once(bool second_call) {
  plan_.state.restore();
  call_.emplace(plan_);
  log_ = TraceLog();
  call_->session->follow(&log_);
  LaterCalls later;
  try {
    call_->run();
    call_->session->follow(nullptr);
    const SecondCallPlan own{call_->graph,    call_->session,         plan_.state, plan_.run, plan_.is_free_attribute,
                             plan_.is_module, call_->graph.id_bound()};
    later = second_call ? compare_second_call(own) : end_of_only_call(own);
  } catch (const std::exception& error) {
    error_ = first_line(error);
  }
  call_->session->follow(nullptr);
  call_->end();
  plan_.state.restore();
  updates_ = std::move(later.updates);
  return later.keeps_constants;
}

void InMode::run_in(Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) const {
  plan_.state.restore();
  run_(session, graph, &stand_ins, training_);
}

}  // namespace fx::internal
