// TraceFollower: someone who watches a trace while it runs.
//
// The first trace of a program is logged (trace/trace_log.h); the same program at other sizes is compared with the log,
// call by call (trace/probe.h).
#pragma once

#include <exception>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/node.h>
#include <fxgraph/shapes/op_record.h>

namespace fx::internal {

/// A node that is about to be made.
struct TracedCall {
  Op op;
  Symbol target;
  /// What is known of the operator; null for other nodes.
  const OpRecord* record;
  /// All arguments of an operator in the order of its schema, with those that the node leaves out; else the node's own,
  /// positional before named.
  ArgumentSpan arguments;
};

class TraceFollower {
 public:
  virtual ~TraceFollower() = default;
  /// May throw, which ends the trace.
  virtual void making(const TracedCall& call) = 0;
  virtual void made(Node& node) = 0;
  /// The latest call returns a list of `length` tensors. May throw, which ends the trace.
  virtual void returns_list(std::size_t length) = 0;
  /// The program asks for the shape of what `node` stands for.
  virtual void asked(const Node& node) = 0;
  /// The program asks how many dimensions what `node` stands for has, or may learn it.
  virtual void note_rank_query(const Node&) {}
  /// An operator cannot run on these shapes: the trace is about to end with an error.
  virtual void refused(const std::exception& why) = 0;
};

}  // namespace fx::internal
