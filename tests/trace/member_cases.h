// The table of members that a program changes: what becomes of each when the module is traced.
#pragma once

#include <ostream>
#include <vector>

#include "tests/trace/chest_module.h"
#include "tests/trace/honesty.h"

namespace fx::testing {

using torch::Tensor;

struct MemberCase {
  const char* name;
  const char* want;  ///< how the verdict begins; empty: right or refused
  Chest::Step step;
};

inline std::ostream& operator<<(std::ostream& out, const MemberCase& c) { return out << c.name; }

inline const std::vector<MemberCase>& member_cases() {
  static const auto& table = *new std::vector<MemberCase>{
      // ── Optionals and variants
      {"optional_is_emptied", "refused",
       [](Chest& m, Tensor x) {
         if (m.full_optional) x = x * *m.full_optional;
         m.full_optional.reset();
         return x;
       }},
      {"optional_of_c10_is_emptied", "refused",
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
      {"optional_is_replaced_and_emptied", "right",
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
      {"variant_goes_to_a_number", "",
       [](Chest& m, Tensor x) {
         if (const Tensor* held = std::get_if<Tensor>(&m.variant)) x = x * *held;
         m.variant = std::int64_t{7};
         return x;
       }},
      {"variant_goes_to_nothing", "",
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
      {"pair_in_an_optional_is_filled", "refused",
       [](Chest& m, Tensor x) {
         if (m.state) x = x + m.state->first * m.state->second;
         m.state = {x.sum(0), x.mean(0)};
         return x * 2;
       }},
      {"pair_in_an_optional_is_replaced", "refused",
       [](Chest& m, Tensor x) {
         x = x + m.full_state->first * m.full_state->second;
         m.full_state = {x.sum(0), m.full_state->first};
         return x * 2;
       }},
      {"pair_in_an_optional_is_emptied", "refused",
       [](Chest& m, Tensor x) {
         if (m.full_state) x = x + m.full_state->first * m.full_state->second;
         m.full_state.reset();
         return x * 2;
       }},
      // ── Tensors
      {"two_are_swapped", "refused",
       [](Chest& m, Tensor x) {
         std::swap(m.online, m.target);
         return x * m.online;
       }},
      {"one_is_moved_on", "refused",
       [](Chest& m, Tensor x) {
         m.target = m.online;
         m.online = x.sum(0);
         return x + m.target;
       }},
      {"one_is_taken", "refused",
       [](Chest& m, Tensor x) {
         if (m.online.defined()) return x * std::exchange(m.online, Tensor());
         return x * 2;
       }},
      // ── Lists
      {"small_vector_grows", "",
       [](Chest& m, Tensor x) {
         m.small.push_back(x * 2);
         return x * static_cast<double>(m.small.size());
       }},
      {"small_vector_shrinks", "",
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
      {"optional_vector_is_emptied", "",
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
      {"deque_moves_on", "",
       [](Chest& m, Tensor x) {
         m.deque.push_back(x.sum(0));
         m.deque.pop_front();
         return x * m.deque.front();
       }},
      {"list_grows", "",
       [](Chest& m, Tensor x) {
         m.list.push_back(x.sum(0));
         return x * m.list.front();
       }},
      {"vector_rotates", "refused",
       [](Chest& m, Tensor x) {
         std::rotate(m.tensors.begin(), m.tensors.begin() + 1, m.tensors.end());
         return x * m.tensors.front();
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
      {"address_of_a_kept_tensor_in_an_array", "right",
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
      {"counts_in_a_hash_table", "",
       [](Chest& m, Tensor x) {
         ++m.counts[static_cast<std::int64_t>(m.counts.size()) * 100];
         return x * static_cast<double>(m.counts.size());
       }},
      {"entry_in_the_middle_of_a_set", "",
       [](Chest& m, Tensor x) {
         m.seen.insert(500 + static_cast<std::int64_t>(m.seen.size()));
         EXPECT_EQ(static_cast<std::ptrdiff_t>(m.seen.size()), std::distance(m.seen.begin(), m.seen.end()));
         return x * static_cast<double>(m.seen.size());
       }},
      {"entry_in_the_middle_of_a_map", "",
       [](Chest& m, Tensor x) {
         m.by_name["k"] = x * 2;
         EXPECT_EQ(static_cast<std::ptrdiff_t>(m.by_name.size()), std::distance(m.by_name.begin(), m.by_name.end()));
         return x * 3;
       }},
      {"text_changes", "",
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
      {"weights_in_a_map", "",
       [](Chest& m, Tensor x) {
         if (m.by_number.empty()) m.by_number[0] = m.w.t();
         return x.matmul(m.by_number[0]);
       }},
      {"state_behind_a_pointer", "refused",
       [](Chest& m, Tensor x) {
         *m.shared = *m.shared + x.sum(0);
         return x + *m.shared;
       }},
  };
  return table;
}

}  // namespace fx::testing
