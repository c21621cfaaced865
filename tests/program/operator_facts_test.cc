// What the tables of effects, aliases and randomness say, compared with what LibTorch's operators do: every operator of
// the dispatcher is called with arguments drawn by its schema, and what changed is looked at. FXGRAPH_FACTS_TRIES is
// how often each is called.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/text/print.h>
#include "tests/program/drawn_operator.h"
#include "tests/program/every_operator.h"

namespace fx::operator_facts_test {

using testing::DrawnOperator;

/// The bytes of a storage, and how often it was written to.
struct Content {
  std::vector<char> bytes;
  std::int64_t version = 0;
  std::vector<std::int64_t> sizes, strides;

  explicit Content(const at::Tensor& tensor)
      : version(tensor._version()), sizes(tensor.sizes().vec()), strides(tensor.strides().vec()) {
    const auto* data = static_cast<const char*>(tensor.storage().data());
    bytes.assign(data, data + tensor.storage().nbytes());
  }
  /// A storage that only grew was not written to.
  bool is_as(const Content& before) const {
    return version == before.version && sizes == before.sizes && strides == before.strides &&
           bytes.size() >= before.bytes.size() && std::equal(before.bytes.begin(), before.bytes.end(), bytes.begin());
  }
};

std::vector<char> generator_state() {
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  const auto* data = static_cast<const char*>(state.data_ptr());
  return {data, data + state.nbytes()};
}

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) collect(element, tensors);
  }
}

const void* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.storage().nbytes() > 0 ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

std::string compare(DrawnOperator& drawn, const std::vector<Content>& before, bool drew,
                    const torch::jit::Stack& stack) {
  const Node& node = *drawn.node();
  std::set<const Node*> known_written, known_aliased;
  for_each_written(node, [&](const Argument& argument) {
    if (const Node* input = argument.node_or_null()) known_written.insert(input);
    for (const Argument& element : argument.elements()) known_written.insert(element.node_or_null());
  });
  for_each_aliased_input(node, [&](Node& input) { known_aliased.insert(&input); });
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) collect(value, results);
  std::ostringstream wrong;
  const bool surely =
      effects_of(node).aliases && known_aliased.size() == 1 && !results.empty() && storage_of(results[0]);
  for (const Node* input : drawn.graph().placeholders()) {
    const at::Tensor& value = drawn.values()[input->id()];
    if (!Content(value).is_as(before[input->id()]) && !known_written.count(input)) wrong << "writes " << input->name();
    const bool shared = std::ranges::any_of(results, [&](const at::Tensor& result) {
      return storage_of(result) && storage_of(result) == storage_of(value);
    });
    if (surely && known_aliased.count(input) && storage_of(value) && !shared)
      wrong << "its result is no view of " << input->name();
    if (shared && !known_aliased.count(input)) wrong << "its result shares storage with " << input->name();
  }
  if (drew && !effects_of(node).random) wrong << "draws random numbers";
  return wrong.str().empty() ? "" : drawn.schema().target.str() + ": " + wrong.str() + " in " + format_node(node);
}

/// Nothing when the call cannot be made; else what the tables do not know, empty when they know all.
std::optional<std::string> try_call(const OperatorSchema& schema, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  DrawnOperator drawn(schema, seed);
  const TorchOperator* op = find_torch_operator(schema.target);
  if (!drawn.node() || !op) return {};
  std::vector<Content> before;
  for (const at::Tensor& value : drawn.values()) before.emplace_back(value);
  at::manual_seed(7);
  const std::vector<char> seeded = generator_state();
  std::optional<torch::jit::Stack> stack;
  try {
    stack = drawn.arguments(*op, drawn.values());
    if (!stack) return {};
    (*op)(*stack);
  } catch (const std::exception&) {
    return {};
  }
  return compare(drawn, before, generator_state() != seeded, *stack);
}

TEST(OperatorFacts, TablesSayWhatOperatorsDo) {
  install_schema_source();
  at::set_num_threads(1);
  const std::vector<Symbol> targets = testing::dispatcher_operators();
  const testing::Findings facts = testing::in_children(targets, targets.size(), try_call);
  std::ostringstream wrong, crashed;
  for (const std::string& line : facts.wrong) wrong << line;
  for (const std::string& name : facts.crashed) crashed << name << " ";
  std::cout << facts.ran << " of " << targets.size() << " operators ran, " << facts.wrong.size() << " wrong; "
            << facts.crashed.size() << " end the process: " << crashed.str() << "\n";
  EXPECT_TRUE(facts.wrong.empty()) << wrong.str();
  EXPECT_GT(facts.ran, targets.size() / 3);
}

}  // namespace fx::operator_facts_test
