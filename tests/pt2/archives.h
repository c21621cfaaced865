// The archives that tests go through, each with what Python had for inputs and outputs: those in tests/corpus/pt2, or
// others in the folder that FXGRAPH_TEST_PT2 names.
#pragma once

#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fx::testing {

/// The folder.
std::string corpus();
/// The archives' names, without ending.
std::vector<std::string> archives();
/// What the test of an archive is called.
std::string archive_test_name(const ::testing::TestParamInfo<std::string>& archive);
/// What Python had: the leaves of inputs and outputs, the parameters' gradients of the sum of all outputs, the buffers
/// and the inputs after the call; the outputs after a step of SGD by 0.01, where they were recorded.
struct Record {
  std::vector<c10::IValue> inputs, outputs;
  std::vector<std::pair<std::string, c10::IValue>> gradients, state;
  std::vector<c10::IValue> after, stepped;
};
Record recorded(const std::string& name, int call = 0);
/// True if there is a recording of that call: 0 is the call it was exported with, those from 1 on have other sizes.
bool has_recording(const std::string& name, int call);
/// The archive's name without `.core`: further calls are recorded of the program as it was exported.
std::string stem_of(const std::string& name);
/// Copies of the recorded inputs.
std::vector<c10::IValue> recorded_inputs(const std::string& name);
/// The values in tuples, lists and dicts, in order.
std::vector<c10::IValue> leaves_of(const c10::IValue& value);
/// Fails the test unless the values are equal within what a float allows.
void expect_equal(const c10::IValue& got, const c10::IValue& wanted, const std::string& what);
/// The same for all leaves of `got`.
void expect_all_equal(const c10::IValue& got, const std::vector<c10::IValue>& wanted);

}  // namespace fx::testing
