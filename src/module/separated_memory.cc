#include <fxgraph/module/separated_memory.h>

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/clone.h>

#include <algorithm>
#include <map>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

bool is_read_in_one_way(const std::vector<HeldTensor>& group) {
  return std::ranges::all_of(group, [&](const HeldTensor& held) {
    return !held.tensor.is_conj() && !held.tensor.is_neg() &&
           held.tensor.scalar_type() == group.front().tensor.scalar_type();
  });
}

void HeldTensor::note(const Node& attribute, const Effects& effects) {
  for (const Effects::Set set : effects.sets(attribute)) {
    is_written_or_returned |= !effects.writers(set).empty();
    for (const Node* value : effects.members(set)) {
      for (const Node& user : value->users()) {
        is_written_or_returned |= user.is(Op::output);
        const Call call = call_of(user);
        is_read_beyond |= call && call.schema().traits.reads_storage;
      }
    }
  }
}

std::vector<at::Tensor> separated(const std::vector<HeldTensor>& group, const std::string& form) {
  std::string names;
  for (const HeldTensor& held : group) names += (names.empty() ? "'" : ", '") + held.path + "'";
  std::vector<at::Tensor> alone;
  for (const HeldTensor& held : group) {
    if (held.is_read_beyond)
      throw Error(ErrorKind::unsupported, "the tensor '" + held.path +
                                              "' is read beyond its elements, in memory that is read as another type "
                                              "or sign, which " +
                                              form + " has no words for");
    const bool is_told = held.is_written_or_returned || held.tensor.requires_grad();
    if (is_told && at::has_internal_overlap(held.tensor) == at::MemOverlap::Yes)
      throw Error(ErrorKind::unsupported,
                  "the tensor '" + held.path +
                      "' has several elements in one place and reads it as another type or sign, "
                      "which " +
                      form + " has no words for where it is written, returned or trained");
    if (is_told && group.size() > 1) {
      throw Error(ErrorKind::unsupported, "the tensors " + names +
                                              " share memory and read it as different types, which " + form +
                                              " has no words for where one of them is written, returned or trained");
    }
    at::Tensor own = held.tensor.detach().resolve_conj().resolve_neg();
    if (own.is_alias_of(held.tensor)) own = own.clone();
    if (own.strides() != held.tensor.strides() && at::has_internal_overlap(held.tensor) != at::MemOverlap::Yes) {
      const at::Tensor lies_so = at::empty_strided(own.sizes(), held.tensor.strides(), own.options());
      const auto room = static_cast<std::int64_t>(lies_so.storage().nbytes() / lies_so.element_size());
      lies_so.as_strided({room}, {1}).zero_();  // what lies between is written to files, too
      own = lies_so.copy_(own);
    }
    alone.push_back(own.set_requires_grad(held.tensor.requires_grad()));
  }
  return alone;
}

std::unordered_map<const at::TensorImpl*, at::Tensor> separated_tensors(const GraphModule& module,
                                                                        const std::string& form) {
  std::map<const void*, std::size_t> known;  // look-up only
  std::vector<std::vector<HeldTensor>> groups;
  const auto add = [&](const std::string& path, const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized()) return;
    const auto [place, fresh] = known.try_emplace(tensor.storage().unsafeGetStorageImpl(), groups.size());
    if (fresh) groups.emplace_back();
    std::vector<HeldTensor>& group = groups[place->second];
    const bool is_there =
        std::ranges::any_of(group, [&](const HeldTensor& held) { return held.tensor.is_same(tensor); });
    if (!is_there) group.push_back({path, tensor});
  };
  for (const auto& item : module.named_parameters()) add(item.key(), item.value());
  for (const auto& item : module.named_buffers()) add(item.key(), item.value());
  std::erase_if(groups, is_read_in_one_way);
  std::unordered_map<const at::TensorImpl*, at::Tensor> result;
  if (groups.empty()) return result;
  const Effects effects(module);
  for (std::vector<HeldTensor>& group : groups) {
    for (HeldTensor& held : group) {
      for (const Node* node : module.graph().find_nodes(Op::get_attr, Symbol(held.path))) held.note(*node, effects);
    }
    const std::vector<at::Tensor> alone = separated(group, form);
    for (std::size_t i = 0; i < group.size(); ++i) result.emplace(group[i].tensor.unsafeGetTensorImpl(), alone[i]);
  }
  return result;
}

}  // namespace fx::internal
