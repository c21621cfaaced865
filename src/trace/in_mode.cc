#include <fxgraph/trace/in_mode.h>

#include <c10/util/strides.h>

#include <algorithm>
#include <memory>

#include <fxgraph/run/value.h>
#include <fxgraph/trace/disguise.h>

namespace fx::internal {

InMode::InMode(const SecondCallPlan& base, const RunInMode& run, std::optional<bool> training,
               const std::vector<at::Tensor>* stand_ins)
    : run_(run), training_(training), plan_(base) {
  plan_.run = [run, training, stand_ins](Session& session, Graph& graph) { run(session, graph, stand_ins, training); };
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

bool is_about_statistics(std::string_view error) {
  return error.find("Expected more than 1 ") != std::string_view::npos;
}

std::vector<std::vector<at::Tensor>> larger_inputs(const std::vector<BoundTensor>& inputs) {
  constexpr std::int64_t kMostDims = 5;
  using IsLarger = std::function<bool(std::int64_t dim, std::int64_t size)>;
  std::vector<IsLarger> ways = {
      [](std::int64_t dim, std::int64_t size) { return dim == 0 && size == 1; },
      [](std::int64_t, std::int64_t size) { return size == 1; },
      [](std::int64_t dim, std::int64_t) { return dim >= 2; },
      [](std::int64_t dim, std::int64_t) { return dim != 1; },
  };
  for (std::int64_t larger = 0; larger < kMostDims; ++larger)
    ways.push_back([larger](std::int64_t dim, std::int64_t) { return dim == larger; });
  std::vector<std::vector<at::Tensor>> result;
  for (const IsLarger& is_larger : ways) {
    std::vector<at::Tensor> some;
    bool any = false;
    for (const BoundTensor& input : inputs) {
      const at::Tensor& example = input.example;
      some.push_back(example);
      if (example.layout() != at::kStrided) continue;
      std::vector<std::int64_t> sizes = example.sizes().vec();
      for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        if (is_larger(static_cast<std::int64_t>(dim), sizes[dim])) sizes[dim] *= 2;
      }
      if (example.sizes() == sizes) continue;
      some.back() = without_contents(example, sizes, c10::contiguous_strides(sizes), example.options());
      any = true;
    }
    if (any) result.push_back(std::move(some));
  }
  return result;
}

}  // namespace fx::internal
