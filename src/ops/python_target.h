// What the tables say of one function or method of Python.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <fxgraph/ops/python_rows.h>
#include <fxgraph/ops/records/python_names.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

/// Looked up once for each spelling.
struct PythonTarget {
  /// Of module `operator`: the row, and the overloads that it names; of others null and none.
  const OperatorRow* op = nullptr;
  Overloads of_tensors, of_numbers, of_mirrored;
  std::span<const PythonRow> rows;
  std::vector<Overloads> of_rows;       ///< of each, those that a call may be, where the row names no overload
  Symbol packet;                        ///< the operator that has its name, where the function is that; else empty
  Overloads of_packet;                  ///< those that a call may be
  const KnownEffect* effect = nullptr;  ///< of functions that are no operator
  std::vector<Symbol> packets;          ///< the operators that a call may end in
  Overloads candidates;                 ///< what candidate_overloads says
  const SchemaType* result = nullptr;   ///< what all of these return; null where they differ
};

/// O(1) after the first question; lives as long as the process.
const PythonTarget& python_target(Op op, Symbol target);

}  // namespace fx::internal
