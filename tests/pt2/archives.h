// The archives that tests go through, each with what Python had for inputs and outputs: those in tests/corpus/pt2, or
// others in the folder that FXGRAPH_TEST_PT2 names.
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace fx::testing {

/// The folder.
std::string corpus();
/// The archives' names, without ending.
std::vector<std::string> archives();
/// What was recorded with the archive: `inputs`, `outputs`, and of some `grads`, `state` and `after`.
c10::Dict<c10::IValue, c10::IValue> recorded(const std::string& name);
/// Copies of the recorded inputs.
std::vector<c10::IValue> recorded_inputs(const std::string& name);
/// The values in tuples, lists and dicts, in order.
std::vector<c10::IValue> leaves_of(const c10::IValue& value);
/// Fails the test unless the values are equal within what a float allows.
void expect_equal(const c10::IValue& got, const c10::IValue& wanted, const std::string& what);
/// The same for all leaves.
void expect_all_equal(const c10::IValue& got, const c10::IValue& wanted);

}  // namespace fx::testing
