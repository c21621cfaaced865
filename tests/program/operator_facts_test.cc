// What the tables of effects, aliases and randomness say, compared with what LibTorch's operators do: every operator of
// the dispatcher is called with arguments drawn by its schema, and what changed is looked at. FXGRAPH_FACTS_TRIES is
// how often each is called.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Logging.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include <fxgraph/ops/effects.h>
#include <fxgraph/rewriter/program/hostile/arguments.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>

namespace fx {
namespace {

using hostile::Random;

// Of each operator; most arguments do not go together.
int tries() {
  const char* wanted = std::getenv("FXGRAPH_FACTS_TRIES");
  return wanted ? std::atoi(wanted) : 8;
}

std::vector<Symbol> dispatcher_operators() {
  std::vector<Symbol> targets;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    // LibTorch's own tests of its dispatcher are left out.
    if (!name.name.starts_with("aten::") || name.name.starts_with("aten::_test_") || name.name == "aten::_foobar")
      continue;
    targets.emplace_back(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  std::sort(targets.begin(), targets.end());
  return targets;
}

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

/// One operator and one draw of arguments.
class Trial {
 public:
  Trial(const OperatorSchema& schema, std::uint64_t seed) : random_(seed), schema_(schema) {
    constexpr std::array<std::int64_t, 4> kSizes = {2, 3, 3, 1};
    constexpr std::array kTypes = {at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kLong, at::kBool, at::kInt};
    n_ = random_.pick(kSizes);
    rank_ = random_.below(5);
    type_ = random_.pick(kTypes);
  }

  /// Nothing when the call cannot be made; else what the tables do not know, empty when they know all.
  std::optional<std::string> run() {
    const hostile::ValueSource source{
        .tensor = [&](const SchemaArgument& parameter, const at::Tensor&) { return &tensor(parameter.name.view()); },
        .value_of = [&](const Node& node) { return values_[node.id()]; }};
    const auto call = hostile::draw_call(random_, schema_, source, {.optional_percent = 35});
    if (!call) return {};
    Node& node = graph_.call_function(schema_.target, call->args, call->kwargs);
    const TorchOperator* op = find_torch_operator(schema_.target);
    if (!op) return {};
    std::vector<Content> before;
    for (const at::Tensor& value : values_) before.emplace_back(value);
    at::manual_seed(7);
    const std::vector<char> seeded = generator_state();
    torch::jit::Stack stack;
    try {
      CallValues values;
      const auto look_up = [&](Node& input) -> c10::IValue { return values_[input.id()]; };
      for (const Argument& argument : node.args()) values.args.push_back(to_ivalue(argument, nullptr, look_up));
      for (const auto& [name, argument] : node.kwargs())
        values.kwargs.emplace_back(name, to_ivalue(argument, nullptr, look_up));
      if (!bind_values(*op->schema, values, &stack)) return {};
      (*op)(stack);
    } catch (const std::exception&) {
      return {};
    }
    return compare(node, before, generator_state() != seeded, stack);
  }

 private:
  Node& tensor(std::string_view name) {
    hostile::TensorForm form{std::vector<std::int64_t>(rank_, n_), type_};
    if (random_.chance(15)) form.sizes.assign(random_.below(5), n_);
    const bool vector = name == "bias" || name == "weight" || name.starts_with("running_") || name == "mean";
    if (vector && random_.chance(70)) form.sizes = {n_};
    if (name == "mask" || name == "condition") form.type = at::kBool;
    if ((name == "index" || name == "indices") && random_.chance(80)) form.type = at::kLong;
    Node& node = graph_.placeholder("t");
    values_.push_back(draw_tensor(random_, form, hostile::Numbers::tame));
    // Indices are in range.
    if (name == "index" || name == "indices" || name == "offsets") hostile::fill(values_.back(), 0);
    return node;
  }

  std::string compare(const Node& node, const std::vector<Content>& before, bool drew, const torch::jit::Stack& stack) {
    std::set<const Node*> known_written, known_aliased;
    for_each_written(node, [&](const Argument& argument) {
      if (const Node* input = argument.node_or_null()) known_written.insert(input);
      for (const Argument& element : argument.elements()) known_written.insert(element.node_or_null());
    });
    for_each_aliased_input(node, [&](Node& input) { known_aliased.insert(&input); });
    std::vector<at::Tensor> results;
    for (const c10::IValue& value : stack) collect(value, results);
    std::ostringstream wrong;
    for (const Node* input : graph_.placeholders()) {
      const at::Tensor& value = values_[input->id()];
      if (!Content(value).is_as(before[input->id()]) && !known_written.count(input))
        wrong << "writes " << input->name();
      const bool shared = std::ranges::any_of(results, [&](const at::Tensor& result) {
        return storage_of(result) && storage_of(result) == storage_of(value);
      });
      if (shared && !known_aliased.count(input)) wrong << "its result shares storage with " << input->name();
    }
    if (drew && !effects_of(node).random) wrong << "draws random numbers";
    return wrong.str().empty() ? "" : schema_.target.str() + ": " + wrong.str() + " in " + format_node(node);
  }

  Random random_;
  const OperatorSchema& schema_;
  std::int64_t n_ = 2;
  std::size_t rank_ = 2;
  at::ScalarType type_ = at::kFloat;
  Graph graph_;
  std::vector<at::Tensor> values_;  // of the placeholders, which come first
};

/// Lines for the parent: the operator that is tried, `+` when it ran, `!` with what is wrong.
void try_operators(const std::vector<Symbol>& targets, std::size_t from, std::FILE* out) {
  const at::NoGradGuard no_grad;
  c10::SetStackTraceFetcher([] { return std::string(); });
  for (std::size_t i = from; i < targets.size(); ++i) {
    std::fprintf(out, "@%zu\n", i);
    std::fflush(out);  // the next may be the last that is heard
    alarm(5);          // some do not end
    const OperatorSchema* schema = find_schema(targets[i]);
    if (!schema) continue;
    bool ran = false;
    std::string wrong;
    for (int attempt = 0; attempt < tries() && wrong.empty(); ++attempt) {
      const auto outcome = Trial(*schema, std::hash<std::string>()(targets[i].str()) + attempt).run();
      ran |= outcome.has_value();
      if (outcome) wrong = *outcome;
    }
    if (ran) std::fprintf(out, "+%zu\n", i);
    std::replace(wrong.begin(), wrong.end(), '\n', ' ');
    if (!wrong.empty()) std::fprintf(out, "!%s\n", wrong.c_str());
  }
}

struct Facts {
  std::size_t ran = 0;
  std::vector<std::string> wrong, crashed;
};

/// Operators with unchecked arguments end the process, hence another one; what comes after them has a new one.
Facts find_facts(const std::vector<Symbol>& targets) {
  Facts facts;
  for (std::size_t from = 0; from < targets.size();) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      std::FILE* out = fdopen(ends[1], "w");
      if (!std::freopen("/dev/null", "w", stderr)) _exit(2);
      try_operators(targets, from, out);
      std::fflush(out);
      _exit(0);
    }
    close(ends[1]);
    std::FILE* in = fdopen(ends[0], "r");
    std::array<char, 4096> line;
    std::size_t last = from;
    while (std::fgets(line.data(), line.size(), in)) {
      if (line[0] == '@') last = std::strtoull(line.data() + 1, nullptr, 10);
      if (line[0] == '+') ++facts.ran;
      if (line[0] == '!') facts.wrong.emplace_back(line.data() + 1);
    }
    std::fclose(in);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    facts.crashed.push_back(targets[last].str());
    from = last + 1;
  }
  return facts;
}

TEST(OperatorFactsSlow, TablesSayWhatOperatorsDo) {
  install_schema_source();
  at::set_num_threads(1);
  const std::vector<Symbol> targets = dispatcher_operators();
  const Facts facts = find_facts(targets);
  std::ostringstream wrong, crashed;
  for (const std::string& line : facts.wrong) wrong << line;
  for (const std::string& name : facts.crashed) crashed << name << " ";
  std::cout << facts.ran << " of " << targets.size() << " operators ran, " << facts.wrong.size() << " wrong; "
            << facts.crashed.size() << " end the process: " << crashed.str() << "\n";
  EXPECT_TRUE(facts.wrong.empty()) << wrong.str();
  EXPECT_GT(facts.ran, targets.size() / 3);
}

}  // namespace
}  // namespace fx
