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
#include <fxgraph/trace/kept_constants.h>
#include <fxgraph/trace/member_state.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/session.h>

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
  MemberState members;  // of the modules, in their order

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

at::Tensor other_handle(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

}  // namespace

ModuleState::ModuleState(const std::shared_ptr<Module>& root) : globals_(std::make_unique<Globals>()) {
  if (!root) return;
  c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  struct Found {
    std::string path;
    std::shared_ptr<Module> module;
  };
  std::vector<Found> below;
  std::unordered_set<const Module*> known{root.get()};
  const auto find_below = [&](const std::string& path, const Module& module) {
    for (const auto& child : module.named_children()) {
      if (child.value() && known.insert(child.value().get()).second)
        below.push_back({join_path(path, child.key()), child.value()});
    }
  };
  find_below("", *root);
  for (std::size_t i = 0; i < below.size(); ++i) {
    const Found found = below[i];
    find_below(found.path, *found.module);
  }
  visit("", root);
  globals_->members.add(root);
  for (const Found& found : below) {
    visit(found.path, found.module);
    globals_->members.add(found.module);
  }
  globals_->members.begin();
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

bool ModuleState::had(const at::Tensor& tensor) const { return globals_->members.had(tensor); }

std::vector<StateChange> ModuleState::changes() const {
  using Kind = StateChange::Kind;
  std::vector<StateChange> result;
  const auto name_of = [](const Visited& visited) { return named(visited.path, *visited.module); };
  for (const Visited& visited : modules_) {
    if (visited.module->is_training() != visited.expected)
      result.push_back({Kind::registered, name_of(visited), "its train() or eval() mode", {}, {}});
  }
  for (const Registered& registered : registered_) {
    if (has_other_contents(registered))
      result.push_back({Kind::registered, registered.path, "its memory, by set_data() or to()", {}, {}});
    else if (registered.tensor.requires_grad() != registered.requires_grad)
      result.push_back({Kind::registered, registered.path, "its requires_grad", {}, {}});
    else if (!registered.tensor.grad().is_same(registered.gradient))
      result.push_back({Kind::registered, registered.path, "its gradient", {}, {}});
  }
  for (const MemberState::Change& change : globals_->members.changes())
    result.push_back({Kind::tensor, name_of(modules_[change.object]), "a tensor", change.before, change.now,
                      is_parameter(change.before)});
  for (const std::size_t object : globals_->members.counting())
    result.push_back({Kind::registered, name_of(modules_[object]), "a number or flag in each call", {}, {}});
  for (const Watched& watched : watched_) {
    if (!watched.tensor->is_same(watched.before))
      result.push_back({Kind::tensor, watched.name, "a tensor", watched.before, *watched.tensor});
  }
  if (globals_->is_seeded_anew()) result.push_back({Kind::random, "the process", "its random generator", {}, {}});
  return result;
}

bool ModuleState::is_parameter(const at::Tensor& tensor) const {
  return tensor.defined() && std::any_of(registered_.begin(), registered_.end(), [&](const Registered& registered) {
           return registered.is_parameter && registered.tensor.is_same(tensor);
         });
}

bool ModuleState::has_other_members() const {
  return globals_->members.has_changed() || std::any_of(watched_.begin(), watched_.end(), [](const Watched& watched) {
           return !watched.tensor->is_same(watched.before);
         });
}

void ModuleState::switch_mode(Module& root, bool training) {
  if (switched_ == training) return;
  root.train(training);
  switched_ = training;
  for (Visited& visited : modules_) visited.expected = visited.module->is_training();
}

std::vector<ProxyImpl*> ModuleState::proxies_elsewhere() const {
  std::vector<ProxyImpl*> found = globals_->members.proxies_elsewhere();
  const auto is_watched = [&](const ProxyImpl* proxy) {
    return std::any_of(watched_.begin(), watched_.end(),
                       [&](const Watched& watched) { return watched.tensor->unsafeGetTensorImpl() == proxy; });
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_watched), found.end());
  return found;
}

void ModuleState::restore() {
  c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  globals_->restore();
  for (const Watched& watched : watched_) *watched.tensor = watched.before;
  // The mode first: a flag beside a member may be that of an optional.
  for (Visited& visited : modules_) {
    if (visited.module->is_training() != visited.training) set_own_mode(*visited.module, visited.training);
    visited.expected = visited.training;
  }
  switched_.reset();
  std::vector<std::shared_ptr<Module>> made = registrations_.new_modules();
  std::reverse(made.begin(), made.end());  // the last one in a vector goes first
  if (!made.empty()) globals_->members.release(made);
  registrations_.restore();
  made.clear();
  globals_->members.restore();
  for (const Registered& registered : registered_) {
    c10::TensorImpl& impl = *registered.tensor.unsafeGetTensorImpl();
    if (has_other_contents(registered)) impl.shallow_copy_from(registered.contents.getIntrusivePtr());
    if (registered.tensor.requires_grad() != registered.requires_grad) impl.set_requires_grad(registered.requires_grad);
    if (!registered.tensor.grad().is_same(registered.gradient)) impl.mutable_grad() = registered.gradient;
  }
}

std::vector<std::pair<ProxyImpl*, at::Tensor>> ModuleState::constants(const Session& session,
                                                                      const std::vector<ProxyImpl*>& proxies) const {
  auto found = kept_constants(session, proxies);
  const auto is_state = [&](const auto& each) {
    const at::Tensor before = globals_->members.before(*each.first);
    return before.defined() &&
           std::any_of(session.captured().begin(), session.captured().end(),
                       [&](const CapturedTensor& captured) { return captured.tensor.is_same(before); });
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_state), found.end());
  return found;
}

void ModuleState::leave(Session& session) {
  restore();
  if (modules_.empty()) return;
  std::vector<ProxyImpl*> alive;
  session.proxies().for_each([&](ProxyImpl& proxy) { alive.push_back(&proxy); });
  for (const auto& [proxy, value] : constants(session, alive)) proxy->become(value);
  const auto before = [this](const ProxyImpl& proxy) { return globals_->members.before(proxy); };
  if (settle_left_over(session, before) && !session.is_abandoned()) has_left_ = true;
}

ModuleState::~ModuleState() { restore(); }

}  // namespace fx::internal
