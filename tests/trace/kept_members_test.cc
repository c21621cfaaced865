// Members of every kind, changed in forward: the trace is right, or refused, and never breaks them.
#include "tests/trace/honesty.h"
#include "tests/trace/member_cases.h"

namespace fx::kept_members_test {

using Case = testing::MemberCase;
using testing::Chest;

class KeptMembers : public ::testing::TestWithParam<Case> {};

TEST_P(KeptMembers, AreFollowedOrRefused) {
  const std::vector<testing::Inputs> inputs = {{torch::rand({2, 3})}, {torch::rand({4, 3}) - 0.5}};
  testing::expect_honest(
      GetParam().want, [] { return std::make_shared<Chest>(GetParam().step); },
      [](Chest& module, testing::Inputs& in) -> c10::IValue { return module.forward(in[0].toTensor()); }, inputs);
}

INSTANTIATE_TEST_SUITE_P(Members, KeptMembers, ::testing::ValuesIn(testing::member_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::kept_members_test
