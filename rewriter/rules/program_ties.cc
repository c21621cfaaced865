// What ties tensors that a change took away to those that stayed, and the change of a copy of the program.
#include <ATen/ATen.h>

#include <fxgraph/rewriter/rules/program_image.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

const c10::StorageImpl* storage_of(const LeafImage& leaf) {
  const auto* tensor = std::get_if<torch::Tensor>(&leaf.object);
  const bool has = tensor && tensor->defined() && tensor->layout() == at::kStrided && tensor->has_storage();
  return has ? tensor->storage().unsafeGetStorageImpl() : nullptr;
}

/// A view of the copy's tensor as `original` is one of the tensor that it is tied to.
torch::Tensor tied_view(const std::string& path, const torch::Tensor& original, const torch::Tensor& copy,
                        const Tie& tie) {
  const at::NoGradGuard guard;
  const std::int64_t first = copy.storage_offset() + tie.offset;
  std::int64_t last = first;
  for (std::int64_t dim = 0; dim < original.dim(); ++dim) last += (original.size(dim) - 1) * original.stride(dim);
  const std::int64_t there = static_cast<std::int64_t>(copy.storage().nbytes() / copy.element_size());
  if (original.numel() > 0 && (first < 0 || last >= there)) {
    throw Error(ErrorKind::unsupported, "the tensor '" + path +
                                            "' cannot come back in a copy of the program: it shares " +
                                            "storage with '" + tie.path + "', of which the copy has that part alone; " +
                                            "take the transformation back first, and copy then");
  }
  return copy.detach()
      .as_strided(original.sizes(), original.strides(), first)
      .set_requires_grad(original.requires_grad());
}

}  // namespace

std::map<std::string, Tie> ties_of(const std::vector<LeafImage>& before, const std::map<std::string, LeafImage>& went) {
  std::map<const void*, const LeafImage*> same, storages;  // looked up alone
  for (const LeafImage& leaf : before) {
    if (went.contains(leaf.path)) continue;
    same.emplace(leaf.identity(), &leaf);
    if (storage_of(leaf)) storages.emplace(storage_of(leaf), &leaf);
  }
  std::map<std::string, Tie> ties;
  for (const auto& [path, leaf] : went) {
    const auto it = same.find(leaf.identity());
    const auto shares = storage_of(leaf) ? storages.find(storage_of(leaf)) : storages.end();
    if (it != same.end()) {
      ties[path] = {it->second->path, true, 0};
    } else if (shares != storages.end()) {
      const auto &went_away = std::get<torch::Tensor>(leaf.object),
                 &stayed = std::get<torch::Tensor>(shares->second->object);
      if (went_away.scalar_type() == stayed.scalar_type())
        ties[path] = {shares->second->path, false, went_away.storage_offset() - stayed.storage_offset()};
    }
  }
  return ties;
}

ProgramChange ProgramChange::for_copy(const ProgramImage& now) const {
  std::map<std::string, const LeafImage*> present;
  for (const LeafImage& leaf : now.leaves) present[leaf.path] = &leaf;
  // A program of them alone: its clone keeps what ties them to each other.
  GraphModule all;
  std::map<std::string, std::string> place;
  for (const auto& [path, leaf] : leaves_before) {
    const std::string at = "p" + std::to_string(place.size());
    place[path] = at;
    if (const auto* child = std::get_if<std::shared_ptr<torch::nn::Module>>(&leaf.object)) {
      all.add_submodule(at, *child);
    } else if (leaf.is_parameter) {
      all.set_parameter(at, std::get<torch::Tensor>(leaf.object));
    } else {
      all.set_buffer(at, std::get<torch::Tensor>(leaf.object));
    }
  }
  const auto copies = all.clone_graph_module();
  ProgramChange change = *this;
  for (auto& [path, leaf] : change.leaves_before) {
    const auto* original = std::get_if<torch::Tensor>(&leaves_before.at(path).object);
    const auto tie = ties.find(path);
    const auto tied = tie == ties.end() ? present.end() : present.find(tie->second.path);
    if (tied != present.end() && tied->second->object.index() == leaf.object.index()) {
      leaf.object = tied->second->object;
      if (original && !tie->second.is_it)
        leaf.object = tied_view(path, *original, std::get<torch::Tensor>(leaf.object), tie->second);
    } else if (original) {
      leaf.object = copies->attribute(place.at(path));
    } else {
      leaf.object = copies->submodule(place.at(path));
    }
  }
  return change;
}

}  // namespace fx
