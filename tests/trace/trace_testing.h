// What the trace tests share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"

namespace fx::testing {

/// The calls of a graph in order, as `aten::add.Tensor(x, mul, alpha=2)`.
inline std::vector<std::string> calls(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    std::string text = node.target().str() + "(";
    const char* comma = "";
    for (const Argument& argument : node.args()) {
      text += comma + to_string(argument, NodeStyle::plain);
      comma = ", ";
    }
    for (const auto& [name, value] : node.kwargs()) {
      text += comma + name.str() + "=" + to_string(value, NodeStyle::plain);
      comma = ", ";
    }
    result.push_back(text + ")");
  }
  return result;
}

/// What the graph calls, in order, without arguments.
inline std::vector<std::string> targets(const Graph& graph) {
  std::vector<std::string> result;
  for (const std::string& call : calls(graph)) result.push_back(call.substr(0, call.find('(')));
  return result;
}

template <typename Program>
std::vector<std::string> traced_calls(Program&& program, std::vector<c10::IValue> examples = {}) {
  Tracer tracer({.sizes = Sizes::fixed});
  const Trace trace = tracer.trace(std::forward<Program>(program), std::move(examples));
  trace.graph.lint();
  return calls(trace.graph);
}

inline std::string output_text(const Graph& graph) { return to_string(graph.output_node()->arg(0), NodeStyle::plain); }

/// Exactly: every number is the same, its sign, too (0 and -0); a NaN where the other has one.
inline bool same_numbers(const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor x = a.detach(), y = b.detach(), nan = x.isnan();
  if (!torch::equal(nan, y.isnan())) return false;
  const torch::Tensor numbers = x.masked_fill(nan, 0), others = y.masked_fill(nan, 0);
  if (!torch::equal(numbers, others)) return false;
  return !x.is_floating_point() || torch::equal(numbers.signbit(), others.signbit());
}

/// Compares tensors, and lists, tuples and dicts of tensors, exactly or nearly.
inline ::testing::AssertionResult same_value(const c10::IValue& a, const c10::IValue& b, double tolerance = 0) {
  if (a.isTensor() && b.isTensor()) {
    const torch::Tensor x = a.toTensor(), y = b.toTensor();
    if (x.defined() != y.defined()) return ::testing::AssertionFailure() << "one tensor is undefined";
    if (!x.defined()) return ::testing::AssertionSuccess();
    if (x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type()) {
      return ::testing::AssertionFailure()
             << x.sizes() << " " << x.scalar_type() << " and " << y.sizes() << " " << y.scalar_type();
    }
    const bool equal =
        tolerance == 0 ? same_numbers(x, y) : torch::allclose(x.detach(), y.detach(), tolerance, tolerance, true);
    if (equal) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "values differ by " << (x - y).abs().max();
  }
  if ((a.isTuple() && b.isTuple()) || (a.isList() && b.isList())) {
    const std::vector<c10::IValue> xs =
        a.isTuple() ? std::vector<c10::IValue>(a.toTupleRef().elements()) : a.toListRef().vec();
    const std::vector<c10::IValue> ys =
        b.isTuple() ? std::vector<c10::IValue>(b.toTupleRef().elements()) : b.toListRef().vec();
    if (xs.size() != ys.size())
      return ::testing::AssertionFailure() << xs.size() << " and " << ys.size() << " elements";
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (auto result = same_value(xs[i], ys[i], tolerance); !result) return result << " (element " << i << ")";
    }
    return ::testing::AssertionSuccess();
  }
  if (a.isGenericDict() && b.isGenericDict()) {
    const auto xs = a.toGenericDict(), ys = b.toGenericDict();
    if (xs.size() != ys.size()) return ::testing::AssertionFailure() << xs.size() << " and " << ys.size() << " entries";
    for (const auto& entry : xs) {
      if (!ys.contains(entry.key())) return ::testing::AssertionFailure() << entry.key() << " is in one of two dicts";
      if (auto result = same_value(entry.value(), ys.at(entry.key()), tolerance); !result)
        return result << " (entry " << entry.key() << ")";
    }
    return ::testing::AssertionSuccess();
  }
  if (a.isNone() != b.isNone()) {
    const c10::IValue& other = a.isNone() ? b : a;
    if (other.isTensor() && !other.toTensor().defined()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << a.tagKind() << " and " << b.tagKind();
  }
  const bool both_nan = a.isDouble() && b.isDouble() && std::isnan(a.toDouble()) && std::isnan(b.toDouble());
  return a == b || both_nan ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << a << " and " << b;
}

#define EXPECT_FX_ERROR(statement, wanted_kind, ...)                                                         \
  do {                                                                                                       \
    const ::fx::Error error = ::fx::testing::error_thrown_by([&] { statement; });                            \
    EXPECT_EQ(::fx::to_string(error.kind()), ::fx::to_string(::fx::ErrorKind::wanted_kind)) << error.what(); \
    EXPECT_THAT(std::string(error.what()), ::testing::AllOf(__VA_ARGS__));                                   \
  } while (false)

}  // namespace fx::testing
