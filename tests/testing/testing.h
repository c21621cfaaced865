// GoogleMock matchers for rules.
#pragma once

#include <gmock/gmock.h>

#include <fxgraph/testing/self_test.h>

namespace fx::testing {

/// EXPECT_THAT(kMyRule, KeepsItsPromise()): see testing/self_test.h.
MATCHER(KeepsItsPromise, "keeps its promise on generated programs and tensors") {
  const SelfTestResult result = self_test(arg);
  *result_listener << "\n" << result;
  return result.passed();
}

}  // namespace fx::testing
