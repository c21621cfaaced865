// Members of every kind, changed in forward: a trace puts them back, or leaves them alone, and never breaks them.
#include <fxgraph/trace/member_state.h>

#include "tests/trace/chest_module.h"
#include "tests/trace/honesty.h"

namespace fx {
namespace {

using testing::Chest;
using torch::Tensor;

struct Case {
  const char* name;
  const char* want;  ///< how the verdict begins; empty: right or refused
  Chest::Step step;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class MemberStates : public ::testing::TestWithParam<Case> {};

TEST_P(MemberStates, AreRightOrRefused) {
  const Case& c = GetParam();
  const std::vector<testing::Inputs> inputs = {{torch::rand({2, 3})}, {torch::rand({4, 3}) - 0.5}};
  const auto make = [&] { return std::make_shared<Chest>(c.step); };
  const auto call = [](Chest& module, testing::Inputs& in) -> c10::IValue { return module.forward(in[0].toTensor()); };
  if (std::string(c.want) != "kept" && std::string(c.want) != "refused")
    return testing::expect_honest(c.want, make, call, inputs);
  // What cannot be put back, always ("kept") or as the heap lies, is refused, and what is left of it is refused by us.
  const auto fine = [](const std::string& v) { return v.starts_with("refused: ") || v.find("; refused: ") != v.npos; };
  const std::string verdict = testing::verdict_of([&] { return testing::honesty(make, call, inputs); }, fine);
  EXPECT_TRUE(fine(verdict)) << verdict;
}

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      // ── Optionals and variants
      {"optional_is_emptied", "kept",
       [](Chest& m, Tensor x) {
         if (m.full_optional) x = x * *m.full_optional;
         m.full_optional.reset();
         return x;
       }},
      {"optional_of_c10_is_emptied", "kept",
       [](Chest& m, Tensor x) {
         if (m.other_optional) x = x * *m.other_optional;
         m.other_optional = c10::nullopt;
         return x;
       }},
      {"optional_is_replaced", "refused",
       [](Chest& m, Tensor x) {
         x = x * *m.full_optional;
         m.full_optional = x.sum(0);
         return x;
       }},
      {"optional_is_replaced_and_emptied", "kept",
       [](Chest& m, Tensor x) {
         m.full_optional = x.sum(0);
         m.by_name["a"] = *m.full_optional;
         m.full_optional.reset();
         return x * 2;
       }},
      {"optional_of_c10_is_filled", "refused",
       [](Chest& m, Tensor x) {
         if (m.empty_optional) x = x + *m.empty_optional;
         m.empty_optional = x.sum(0);
         return x;
       }},
      {"optional_is_filled_and_emptied", "right",
       [](Chest& m, Tensor x) {
         m.empty_optional = x * 2;
         x = x + *m.empty_optional;
         m.empty_optional.reset();
         return x;
       }},
      {"variant_goes_to_a_number", "kept",
       [](Chest& m, Tensor x) {
         if (const Tensor* held = std::get_if<Tensor>(&m.variant)) x = x * *held;
         m.variant = std::int64_t{7};
         return x;
       }},
      {"variant_goes_to_nothing", "kept",
       [](Chest& m, Tensor x) {
         if (const Tensor* held = std::get_if<Tensor>(&m.variant)) x = x * *held;
         m.variant = std::monostate();
         return x;
       }},
      {"variant_is_replaced", "refused",
       [](Chest& m, Tensor x) {
         x = x * std::get<Tensor>(m.variant);
         m.variant = x.sum(0);
         return x;
       }},
      // ── Lists
      {"small_vector_grows", "kept",
       [](Chest& m, Tensor x) {
         m.small.push_back(x * 2);
         return x * static_cast<double>(m.small.size());
       }},
      {"small_vector_shrinks", "kept",
       [](Chest& m, Tensor x) {
         if (m.small.empty()) return x * 1;
         x = x * m.small.back();
         m.small.pop_back();
         return x;
       }},
      {"small_vector_grows_and_shrinks", "right",
       [](Chest& m, Tensor x) {
         m.empty_small.push_back(x * 2);
         x = x + m.empty_small.back();
         m.empty_small.pop_back();
         return x;
       }},
      {"vector_grows_far", "",
       [](Chest& m, Tensor x) {
         for (int i = 0; i < 200; ++i) m.tensors.push_back(x);
         return x * 2;
       }},
      {"vector_loses_its_first", "refused",
       [](Chest& m, Tensor x) {
         x = x * m.tensors.front();
         m.tensors.erase(m.tensors.begin());
         m.tensors.push_back(x.sum(0));
         return x;
       }},
      {"vector_is_cleared", "refused",
       [](Chest& m, Tensor x) {
         if (!m.tensors.empty()) x = x * m.tensors.front();
         m.tensors.clear();
         return x;
       }},
      {"vector_is_another", "refused",
       [](Chest& m, Tensor x) {
         x = x * m.tensors.front();
         m.tensors = {x.sum(0)};
         return x;
       }},
      {"vector_of_pairs", "refused",
       [](Chest& m, Tensor x) {
         x = x + m.pairs[0].second;
         m.pairs[0].second = x.sum(0);
         return x;
       }},
      {"vector_of_pairs_grows", "",
       [](Chest& m, Tensor x) {
         m.pairs.emplace_back(x * 2, x * 3);
         return x * 2;
       }},
      {"optional_vector_is_emptied", "kept",
       [](Chest& m, Tensor x) {
         if (m.tensors_or_none) x = x * m.tensors_or_none->front();
         m.tensors_or_none.reset();
         return x;
       }},
      {"optional_vector_grows", "",
       [](Chest& m, Tensor x) {
         m.tensors_or_none->push_back(x);
         return x * 2;
       }},
      {"deque_moves_on", "kept",
       [](Chest& m, Tensor x) {
         m.deque.push_back(x.sum(0));
         m.deque.pop_front();
         return x * m.deque.front();
       }},
      {"list_grows", "kept",
       [](Chest& m, Tensor x) {
         m.list.push_back(x.sum(0));
         return x * m.list.front();
       }},
      {"inline_slots", "refused",
       [](Chest& m, Tensor x) {
         m.slots[m.used++ % 4] = x.sum(0);
         for (const Tensor& slot : m.slots) x = slot.defined() ? x + slot : x;
         return x;
       }},
      {"address_of_a_live_tensor_in_an_array", "right",
       [](Chest& m, Tensor x) {
         m.addresses[0] = reinterpret_cast<std::uintptr_t>(m.w.unsafeGetTensorImpl());  // NOLINT
         m.addresses[1] = reinterpret_cast<std::uintptr_t>(&m.w);                       // NOLINT
         return x.matmul(m.w);
       }},
      {"address_of_a_traced_tensor_in_an_array", "",
       [](Chest& m, Tensor x) {
         const Tensor y = x * 2;
         m.addresses[0] = reinterpret_cast<std::uintptr_t>(y.unsafeGetTensorImpl());  // NOLINT
         return y;
       }},
      {"address_of_a_kept_tensor_in_an_array", "kept",
       [](Chest& m, Tensor x) {
         const Tensor y = x * 2;
         m.addresses[0] = reinterpret_cast<std::uintptr_t>(y.unsafeGetTensorImpl());  // NOLINT
         m.by_name["a"] = y;
         return y;
       }},
      {"borrowed_pointers_move", "right",
       [](Chest& m, Tensor x) {
         m.borrowed = &m.w;
         m.impl = m.w.unsafeGetTensorImpl();
         return x.matmul(*m.borrowed);
       }},
      // ── Counts of containers
      {"counts_in_a_hash_table", "kept",
       [](Chest& m, Tensor x) {
         ++m.counts[static_cast<std::int64_t>(m.counts.size()) * 100];
         return x * static_cast<double>(m.counts.size());
       }},
      {"entry_in_the_middle_of_a_set", "kept",
       [](Chest& m, Tensor x) {
         m.seen.insert(500 + static_cast<std::int64_t>(m.seen.size()));
         EXPECT_EQ(static_cast<std::ptrdiff_t>(m.seen.size()), std::distance(m.seen.begin(), m.seen.end()));
         return x * static_cast<double>(m.seen.size());
       }},
      {"entry_in_the_middle_of_a_map", "kept",
       [](Chest& m, Tensor x) {
         m.by_name["k"] = x * 2;
         EXPECT_EQ(static_cast<std::ptrdiff_t>(m.by_name.size()), std::distance(m.by_name.begin(), m.by_name.end()));
         return x * 3;
       }},
      {"text_changes", "kept",
       [](Chest& m, Tensor x) {
         m.text += "b";
         m.long_text.resize(m.long_text.size() / 2);
         EXPECT_EQ(m.long_text, std::string(m.long_text.size(), 'a'));
         return x * static_cast<double>(m.text.size());
       }},
      {"table_inside", "refused",
       [](Chest& m, Tensor x) {
         m.table[17] += 1;
         return x * m.table[17];
       }},
      // ── Constants that are kept elsewhere
      {"mask_in_a_map", "",
       [](Chest& m, Tensor x) {
         Tensor& mask = m.by_number[x.size(1)];
         if (!mask.defined()) mask = torch::triu(torch::ones({x.size(1), x.size(1)}), 1);
         return x.matmul(mask);
       }},
      {"table_by_batch_in_a_map", "",
       [](Chest& m, Tensor x) {
         Tensor& table = m.by_number[x.size(0)];
         if (!table.defined()) table = torch::arange(x.size(0), torch::kFloat).unsqueeze(1);
         return x + table;
       }},
      {"mean_in_a_static", "right",
       [](Chest&, Tensor x) {
         static const Tensor mean = torch::tensor({0.5F, 0.4F, 0.3F});
         return x - mean;
       }},
      {"mean_in_a_static_that_was_computed", "right",
       [](Chest&, Tensor x) {
         static const Tensor mean = torch::arange(3, torch::kFloat) * 2;
         return x - mean;
       }},
      {"static_and_failure", "refused",
       [](Chest&, Tensor x) {
         static const Tensor mean = torch::arange(3, torch::kFloat) * 2;
         return x - mean * x.sum().item<float>();
       }},
      {"static_in_one_mode", "",
       [](Chest& m, Tensor x) {
         if (!m.is_training()) return x * 2;
         static const Tensor mean = torch::arange(3, torch::kFloat) * 2;
         return x - mean;
       }},
      {"mask_behind_a_pointer", "right",
       [](Chest& m, Tensor x) {
         if (m.first) *m.shared = torch::arange(3, torch::kFloat);
         m.first = false;
         return x - *m.shared;
       }},
      {"weights_in_a_map", "kept",
       [](Chest& m, Tensor x) {
         if (m.by_number.empty()) m.by_number[0] = m.w.t();
         return x.matmul(m.by_number[0]);
       }},
      {"state_behind_a_pointer", "kept",
       [](Chest& m, Tensor x) {
         *m.shared = *m.shared + x.sum(0);
         return x + *m.shared;
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Members, MemberStates, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Modules that lie elsewhere
// ─────────────────────────────────────────────────────────────────────────────────────────

struct Keeper : torch::nn::Module {
  Tensor cache;
  std::int64_t count = 0;
  Tensor forward(Tensor x) {
    ++count;
    cache = cache.defined() ? torch::cat({cache, x}) : x * 1;
    return cache.sum(0);
  }
};

struct Other {
  virtual ~Other() = default;
  Tensor kept = torch::ones({3});
  std::int64_t number = 3;
};
struct Virtual : Other, virtual torch::nn::Module {
  Tensor cache;
  Tensor forward(Tensor x) {
    number += 1;
    kept = kept + x.sum(0);
    cache = x * 2;
    return x + kept;
  }
};

struct TwoParents : torch::nn::Module {
  explicit TwoParents(const std::shared_ptr<Keeper>& shared) : child(register_module("child", shared)) {}
  std::shared_ptr<Keeper> child;
  Tensor forward(Tensor x) { return child->forward(x); }
};
struct Grandparent : torch::nn::Module {
  std::shared_ptr<Keeper> keeper = std::make_shared<Keeper>();
  std::shared_ptr<TwoParents> a = register_module("a", std::make_shared<TwoParents>(keeper));
  std::shared_ptr<TwoParents> b = register_module("b", std::make_shared<TwoParents>(keeper));
  Tensor forward(Tensor x) { return a->forward(x) + b->forward(x); }
};

const std::vector<c10::IValue>& examples() {
  static const auto& values = *new std::vector<c10::IValue>{torch::rand({2, 3})};
  return values;
}

TEST(MemberStateOf, AModuleOnTheStack) {
  Keeper keeper;
  EXPECT_FX_ERROR(symbolic_trace(keeper, examples()), trace, ::testing::HasSubstr("second call"));
  EXPECT_FALSE(keeper.cache.defined());
  EXPECT_EQ(keeper.count, 0);
}

TEST(MemberStateOf, AModuleWithVirtualBases) {
  const auto net = std::make_shared<Virtual>();
  const Tensor kept = net->kept;
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("symbolic_trace"));
  EXPECT_FALSE(net->cache.defined());
  EXPECT_TRUE(net->kept.is_same(kept));
  EXPECT_EQ(net->number, 3);
}

TEST(MemberStateOf, AModuleMadeByNew) {
  const std::shared_ptr<Virtual> net(new Virtual);
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("symbolic_trace"));
  EXPECT_FALSE(net->cache.defined());
  EXPECT_EQ(net->number, 3);
}

TEST(MemberStateOf, AModuleInsideOfAnother) {
  struct Owner {
    std::array<std::int64_t, 4> before = {1, 2, 3, 4};
    Keeper keeper;
    std::array<std::int64_t, 4> behind = {5, 6, 7, 8};
  };
  const std::shared_ptr<Owner> made = std::make_shared<Owner>(), owned(new Owner);
  for (const std::shared_ptr<Owner>& owner : {made, owned}) {
    const std::shared_ptr<Keeper> net(owner, &owner->keeper);
    EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("second call"));
    EXPECT_EQ(owner->before, (std::array<std::int64_t, 4>{1, 2, 3, 4}));
    EXPECT_EQ(owner->behind, (std::array<std::int64_t, 4>{5, 6, 7, 8}));
  }
  EXPECT_FALSE(made->keeper.cache.defined());
  EXPECT_EQ(made->keeper.count, 0);
}

TEST(MemberStateOf, AModuleOfTwoParents) {
  const auto net = std::make_shared<Grandparent>();
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("second call"));
  EXPECT_FALSE(net->keeper->cache.defined());
  EXPECT_EQ(net->keeper->count, 0);
  EXPECT_EQ(net->forward(torch::ones({2, 3})).sum().item<float>(), 18);
}

// What an earlier call of the program left is there after the trace.
TEST(MemberStateOf, AModuleThatHasRun) {
  struct Looks : torch::nn::Module {
    Tensor last;
    Tensor forward(Tensor x) { return last = torch::softmax(x, 1); }
  };
  const auto net = std::make_shared<Looks>();
  net->forward(torch::rand({2, 3}));
  const Tensor last = net->last;
  const auto gm = symbolic_trace(net, examples());
  EXPECT_TRUE(net->last.is_same(last));
  EXPECT_EQ(last.use_count(), 2);
}

}  // namespace
}  // namespace fx
