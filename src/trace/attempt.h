// Tracer::Attempt: one attempt at a trace, from the first call of the program to the graph that is handed out.
//
// The steps are those of run(), in this order: the program is called; called again, to see that it does the same
// (trace/second_call.h), and in its other mode (trace/mode_switch.h); calls of leaf modules are put in the place of
// their operators (trace/leaf_modules.h); numbers that follow from sizes become expressions of them
// (trace/generalise.h). Some of these find that the program must be recorded in another way: then the attempt is given
// up, and `Repeats` says what the next one does otherwise.
//
// Whatever happens, what is registered is afterwards as it was, nothing that the program keeps is traced, and the
// session is closed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/module/fixed_runs.h>
#include <fxgraph/trace/callable.h>
#include <fxgraph/trace/generalise.h>
#include <fxgraph/trace/mode_switch.h>
#include <fxgraph/trace/module_state.h>
#include <fxgraph/trace/placeholder_inputs.h>
#include <fxgraph/trace/probe.h>
#include <fxgraph/trace/raised_calls.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_log.h>
#include <fxgraph/trace/tracer.h>

namespace fx {

/// What attempts have found out for those that follow.
struct Tracer::Repeats {
  int constants = 0;          ///< how often it kept one where the trace cannot put anything back
  bool takes_layout = false;  ///< it asks for layouts, not just for contiguous()
  internal::Retrace sizes{};  ///< at those of the examples it leaves slices out
};

class Tracer::Attempt {
 public:
  Attempt(Tracer& tracer, const internal::Callable& callable, const std::vector<c10::IValue>& examples,
          internal::PlaceholderInputs::Literals literals, Repeats& repeats);
  ~Attempt() = default;
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// Nothing when the program has to be traced again; `repeats` then says how.
  std::optional<Trace> run();

 private:
  using Session = internal::Session;
  using Tensors = std::vector<torch::Tensor>;

  // Closes the session however the trace ends; what the program keeps of it becomes ordinary.
  class OpenSession {
   public:
    explicit OpenSession(std::shared_ptr<Session> session);
    ~OpenSession();
    Session& operator*() const { return *session_; }
    Session* operator->() const { return session_.get(); }
    const std::shared_ptr<Session>& shared() const { return session_; }

   private:
    std::shared_ptr<Session> session_;
  };

  // The tracer makes the nodes of this graph, as long as the attempt lives.
  class Running {
   public:
    Running(Tracer& tracer, Graph& graph, const std::shared_ptr<torch::nn::Module>& root);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Tracer& tracer_;
  };

  struct Inputs {
    std::vector<internal::BoundTensor> tensors;
    std::vector<Node*> given;  // placeholders of what may be left out, and was given
  };

  // The steps; those that return false have found that the program has to be traced again.
  bool call_first();
  bool call_again();
  void raise_leaves();
  void follow_mode();
  bool generalise();
  Trace finish();

  Inputs run_program(Session& session, Graph& graph, const Tensors* stand_ins = nullptr,
                     std::optional<bool> training = {});
  void run_probe(Session& session, Graph& graph, const Tensors& stand_ins);
  void leave(Session& session, const Tensors& stand_ins);
  bool are_examples(const Tensors& stand_ins) const;
  bool answers_wrongly() const { return session_->records_contiguous() && session_->takes_layout(); }
  void trace_by_layout();
  void refuse_registrations() const;
  const std::shared_ptr<torch::nn::Module>& root() const { return callable_.root; }

  Tracer& tracer_;
  const internal::Callable& callable_;
  const std::vector<c10::IValue>& examples_;
  const internal::PlaceholderInputs::Literals literals_;
  Repeats& repeats_;
  const bool has_examples_, may_vary_;

  // In the order of what uses what: a session makes the nodes of the graph, and what puts the module back uses both.
  Trace trace_;
  internal::TraceLog log_;
  OpenSession session_;
  const Running running_;
  std::vector<std::pair<std::string, torch::Tensor>> attributes_;  // of the root
  std::optional<internal::ModuleState> state_;                     // none while a pattern is traced
  const internal::FixedRuns fixed_runs_;
  std::optional<internal::SecondCallPlan> call_plan_;
  std::optional<internal::ModeSwitch> mode_switch_;
  Inputs inputs_;
  std::vector<internal::BufferUpdate> updates_;  // that the graph makes at its end
  std::vector<internal::RaisedCall> calls_;      // of leaf modules
  bool keeps_others_ = false;                    // the program, constants of the sizes of the latest run
  bool keeps_constants_ = false;                 // it did so once
};

}  // namespace fx
