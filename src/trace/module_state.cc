#include <fxgraph/trace/module_state.h>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/run/autocast_scope.h>
#include <fxgraph/trace/dispatch_keys.h>

namespace fx::internal {

using torch::nn::Module;

// ── The thread and the process
// ──────────────────────────────────────────────────────────────────────────────────────────

struct ModuleState::Globals {
  bool grad = at::GradMode::is_enabled();
  bool autocast = AutocastScope::is_enabled(c10::DeviceType::CUDA);
  bool autocast_cpu = AutocastScope::is_enabled(c10::DeviceType::CPU);
  caffe2::TypeMeta dtype = c10::get_default_dtype();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::uint64_t seed = 0;
  at::Tensor random;

  Globals() {
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    seed = generator.current_seed();
    random = generator.get_state();
  }
  // All threads draw from this generator: that it has gone on says nothing. That it begins anew does.
  bool is_seeded_anew() {
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    if (generator.current_seed() != seed) return true;
    const at::Tensor now = generator.get_state();
    if (same(now, random)) return false;
    return same(now, at::detail::createCPUGenerator(seed).get_state());
  }
  static bool same(const at::Tensor& a, const at::Tensor& b) {
    return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
  }
  void restore() {
    at::GradMode::set_enabled(grad);
    AutocastScope::set_enabled(c10::DeviceType::CUDA, autocast);
    AutocastScope::set_enabled(c10::DeviceType::CPU, autocast_cpu);
    if (c10::get_default_dtype() != dtype) c10::set_default_dtype(dtype);
    if (!is_seeded_anew()) return;
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(random);
  }
};

// ── Remembering
// ────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

std::string named(const std::string& path, const Module& module) {
  return (path.empty() ? "the module" : path) + " (" + module.name() + ")";
}

std::string path_in(const std::string& name, const StateMember& member, std::size_t i) {
  return member.is_list() ? name + "." + std::to_string(i) : name;
}

at::Tensor other_handle(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

}  // namespace

ModuleState::ModuleState(const std::shared_ptr<Module>& root) : globals_(std::make_unique<Globals>()) {
  if (!root) return;
  c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> found = {{"", root}};
  std::unordered_set<const Module*> known{root.get()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [path, module] = found[i];
    for (const auto& child : module->named_children()) {
      if (child.value() && known.insert(child.value().get()).second)
        found.emplace_back(join_path(path, child.key()), child.value());
    }
    visit(path, module);
  }
}

void ModuleState::visit(const std::string& path, const std::shared_ptr<Module>& module) {
  const auto add = [&](const std::string& name, const at::Tensor& tensor, bool is_parameter) {
    if (!tensor.defined() || tensor.key_set().has(kProxyKey)) return;
    registered_.push_back(
        {join_path(path, name), tensor, other_handle(tensor), tensor.requires_grad(), tensor.grad(), is_parameter});
  };
  for (const auto& item : module->named_parameters(/*recurse=*/false)) add(item.key(), item.value(), true);
  for (const auto& item : module->named_buffers(/*recurse=*/false)) add(item.key(), item.value(), false);
  modules_.push_back({path, module, module->is_training(), module->is_training()});
  registrations_.add(module, named(path, *module));
}

// ── Comparing and putting back
// ──────────────────────────────────────────────────────────────────────────────────────────

bool ModuleState::has_other_contents(const Registered& registered) {
  const c10::TensorImpl& now = *registered.tensor.unsafeGetTensorImpl();
  const c10::TensorImpl& before = *registered.contents.unsafeGetTensorImpl();
  if (now.key_set().has(kProxyKey) || now.dtype() != before.dtype()) return true;
  if (now.has_storage() != before.has_storage()) return true;
  return now.layout() == at::kStrided &&
         (now.sizes() != before.sizes() || now.strides() != before.strides() ||
          (now.has_storage() && now.storage().unsafeGetStorageImpl() != before.storage().unsafeGetStorageImpl()));
}

ModuleState::TensorsByPath ModuleState::watch(const std::string& name, const StateMember& member) {
  TensorsByPath tensors;
  std::vector<at::Tensor> before = member.tensors();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].defined()) tensors.emplace_back(path_in(name, member, i), before[i]);
  }
  watched_.push_back({name, member, std::move(before), member.remember()});
  return tensors;
}

std::string ModuleState::change() const {
  for (const Visited& visited : modules_) {
    if (visited.module->is_training() != visited.expected)
      return "changes its train() or eval() mode of " + named(visited.path, *visited.module);
  }
  for (const Registered& registered : registered_) {
    if (has_other_contents(registered)) return "changes its memory, by set_data() or to() of " + registered.path;
    if (registered.tensor.requires_grad() != registered.requires_grad)
      return "changes its requires_grad of " + registered.path;
    if (!registered.tensor.grad().is_same(registered.gradient)) return "changes its gradient of " + registered.path;
  }
  return globals_->is_seeded_anew() ? "seeds the random generator, or draws from it without an operator" : "";
}

std::vector<ModuleState::Replaced> ModuleState::replaced() const {
  std::vector<Replaced> result;
  for (const Watched& watched : watched_) {
    const std::vector<at::Tensor> now = watched.member.tensors();
    for (std::size_t i = 0; i < std::min(now.size(), watched.before.size()); ++i) {
      if (watched.before[i].defined() && now[i].defined() && !now[i].is_same(watched.before[i]))
        result.push_back({path_in(watched.name, watched.member, i), now[i]});
    }
  }
  return result;
}

bool ModuleState::is_buffer(const std::string& path) const {
  return std::any_of(registered_.begin(), registered_.end(),
                     [&](const Registered& registered) { return !registered.is_parameter && registered.path == path; });
}

void ModuleState::switch_mode(Module& root, bool training) {
  if (switched_ == training) return;
  root.train(training);
  switched_ = training;
  for (Visited& visited : modules_) visited.expected = visited.module->is_training();
}

void ModuleState::restore() {
  c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  globals_->restore();
  for (const Watched& watched : watched_) watched.put_back();
  for (Visited& visited : modules_) {
    if (visited.module->is_training() != visited.training) set_own_mode(*visited.module, visited.training);
    visited.expected = visited.training;
  }
  switched_.reset();
  for (const Registered& registered : registered_) {
    c10::TensorImpl& impl = *registered.tensor.unsafeGetTensorImpl();
    if (has_other_contents(registered)) impl.shallow_copy_from(registered.contents.getIntrusivePtr());
    if (registered.tensor.requires_grad() != registered.requires_grad) impl.set_requires_grad(registered.requires_grad);
    if (!registered.tensor.grad().is_same(registered.gradient)) impl.mutable_grad() = registered.gradient;
  }
}

ModuleState::~ModuleState() { restore(); }

}  // namespace fx::internal
