#include <fxgraph/testing/hostile/values.h>

#include <algorithm>
#include <array>

#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/arguments.h>

namespace fx::hostile {

namespace {

constexpr std::int64_t kMostElements = 300;

}  // namespace

void Values::choose_theme() {
  constexpr std::array kTypes = {at::kFloat,        at::kFloat,    at::kFloat,  at::kFloat, at::kFloat,
                                 at::kFloat,        at::kFloat,    at::kDouble, at::kLong,  at::kLong,
                                 at::kBFloat16,     at::kBFloat16, at::kInt,    at::kBool,  at::kHalf,
                                 at::kComplexFloat, at::kByte,     at::kShort,  at::kChar};
  constexpr std::array<std::int64_t, 8> kSizes = {2, 2, 3, 3, 3, 2, 1, 0};
  type_ = random_.pick(kTypes);
  n_ = random_.pick(kSizes);
  rank_ = static_cast<std::size_t>(random_.chance(65) ? 2 : random_.below(5));
  program_.numbers = random_.chance(options_.special_percent) ? Numbers::special : Numbers::tame;
  note_type(type_);
}

void Values::note_type(at::ScalarType type) {
  const auto bits = [](at::ScalarType t) {
    return t == at::kBFloat16 ? 0 : t == at::kHalf ? 1 : t == at::kFloat || t == at::kComplexFloat ? 2 : 3;
  };
  if (bits(type) < bits(program_.narrowest)) program_.narrowest = type;
}

TensorForm Values::draw_form() {
  TensorForm form{std::vector<std::int64_t>(rank_, n_), type_};
  if (random_.chance(12)) form.sizes.assign(random_.below(5), n_);
  if (random_.chance(12)) {
    for (std::int64_t& size : form.sizes) size = random_.chance(40) ? 1 : size;
  }
  if (random_.chance(5)) {
    for (std::int64_t& size : form.sizes) size = static_cast<std::int64_t>(1 + random_.below(3));
  }
  constexpr std::array kTypes = {at::kFloat, at::kDouble,   at::kLong, at::kBool,         at::kInt,
                                 at::kFloat, at::kBFloat16, at::kHalf, at::kComplexDouble};
  if (random_.chance(10)) form.type = random_.pick(kTypes);
  return form;
}

std::optional<TensorForm> Values::form_called(std::string_view name) const {
  const at::ScalarType type = at::isFloatingType(type_) ? type_ : at::kFloat;
  if (name.starts_with("image_")) return TensorForm{{2, n_, n_, n_}, type};
  if (name.starts_with("kernel_")) return TensorForm{{n_, n_, n_ > 1 ? 2 : 1, 1}, type};
  if (name.starts_with("matrix_")) return TensorForm{{n_, n_}, type};
  if (name.starts_with("vector_")) return TensorForm{{n_}, type};
  if (name.starts_with("number_")) return TensorForm{{}, type};
  if (rank_ < 1) return {};
  if (name == "b" || name == "bias" || name == "weight" || name == "mean" || name == "variance" || name == "gamma" ||
      name == "beta")
    return TensorForm{{n_}, type};
  return {};
}

Node& Values::keep(Node& node, const c10::IValue& value) {
  if (values_.size() <= node.id()) values_.resize(node.id() + 1);
  values_[node.id()] = value;
  // LibTorch's kernels of meta tensors and windows make some; no tensor can be had like them.
  if (value.isTensor() && value.toTensor().defined() &&
      std::ranges::any_of(value.toTensor().sizes(), [](std::int64_t size) { return size < 0; }))
    throw NoSuchCall();
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() <= kMostElements) {
    if (value.toTensor().is_floating_point() || value.toTensor().is_complex())
      note_type(value.toTensor().scalar_type());
    pool_.push_back(&node);
  }
  if (value.isInt() || value.isDouble()) numbers_.push_back(&node);
  return node;
}

Node& Values::input(const TensorForm& form) {
  constexpr std::array kNames = {"x", "y", "z", "input", "add"};
  constexpr std::array kOddNames = {"inf",   "nan",     "torch", "self",  "class", "None",  "1",      "forward",
                                    "float", "getattr", "tuple", "print", "True",  "input", "Tensor", "device"};
  const std::string name = is_odd() ? random_.pick(kOddNames) : random_.pick(kNames);
  Node* before = nullptr;
  for (Node& node : program_.graph.nodes()) {
    if (!node.is(Op::placeholder) || !node.args().empty()) {  // those with defaults come last
      before = &node;
      break;
    }
  }
  note_type(form.type);
  const auto place = [&]() -> Node& {
    if (!before) return program_.graph.placeholder(name);
    const auto scope = program_.graph.inserting_before(*before);
    return program_.graph.placeholder(name);
  };
  Node& node = place();
  program_.inputs.resize(options_.input_sets);
  forms_.push_back(form);
  for (Tensors& set : program_.inputs) set.push_back(draw_tensor(random_, form, program_.numbers));
  return keep(node, copy_of(program_.inputs[0].back()));
}

void Values::input_with_default() {
  constexpr std::array kNames = {"p", "q"};
  const Argument value = random_.chance(25) ? Argument() : draw_literal(random_, program_.numbers);
  Node& node = program_.graph.placeholder(random_.pick(kNames), value);
  const char* type = value.is_int()     ? "int"
                     : value.is_float() ? "float"
                     : value.is_bool()  ? "bool"
                                        : "Optional[Tensor]";
  node.meta().set(Symbol(meta_key::kType), std::string(type));
  keep(node, to_ivalue(value, nullptr, [](Node&) { return c10::IValue(); }));
}

void Values::add_other_sizes() {
  std::vector<std::int64_t> sizes;
  for (const TensorForm& form : forms_) sizes.insert(sizes.end(), form.sizes.begin(), form.sizes.end());
  if (sizes.empty()) return;
  const std::int64_t old = random_.pick(sizes);
  // A norm of nothing does not look at its statistics.
  const bool norms = std::ranges::any_of(program_.graph.nodes(), [](const Node& node) {
    return node.is(Op::call_module) || node.target().view().find("batch_norm") != std::string_view::npos;
  });
  const std::int64_t now = random_.chance(70) ? old + 1 : random_.between(norms ? 1 : 0, 4);
  // Or where it comes first alone: a batch. LibTorch's norms take no channels for any number of them.
  const bool all = random_.chance(50) && now > 0;
  Tensors set;
  for (TensorForm form : forms_) {
    for (std::size_t d = 0; d < form.sizes.size(); ++d) {
      if (form.sizes[d] == old && (all || d == 0)) form.sizes[d] = now;
    }
    set.push_back(draw_tensor(random_, form, program_.numbers));
  }
  program_.inputs.push_back(std::move(set));
}

Node* Values::number_that_is(std::int64_t value) {
  for (std::size_t i = numbers_.size(); i-- > 0;) {
    const c10::IValue& known = value_of(*numbers_[i]);
    if (known.isInt() && known.toInt() == value && random_.chance(70)) return numbers_[i];
  }
  return nullptr;
}

Node& Values::weight(const TensorForm& form) {
  Weight made{(random_.chance(12)   ? "deep.er."
               : random_.chance(12) ? "deep."
                                    : "") +
                  weight_name(),
              {},
              random_.chance(50)};
  at::Tensor tensor;
  for (const Weight& other : program_.weights) {
    if (tensor.defined() || !random_.chance(12)) continue;
    const at::Tensor whole = weights_.at(&other - program_.weights.data());
    const bool same = whole.sizes() == at::IntArrayRef(form.sizes);
    const bool row = whole.dim() > 0 && whole.size(0) > 0 && whole.sizes().slice(1) == at::IntArrayRef(form.sizes);
    if (!same && !row) continue;
    made.same_as = other.path;
    made.reading = same ? Reading::itself : Reading::row;
    made.parameter = other.parameter;
    tensor = same ? whole : whole.select(0, 0);
  }
  if (!tensor.defined()) {
    made.value = draw_tensor(random_, form, program_.numbers);
    if (!made.value.is_floating_point()) made.parameter = false;
    tensor = copy_of(made.value);
  }
  return keep_weight(std::move(made), tensor);
}

Node& Values::keep_weight(Weight made, const at::Tensor& tensor) {
  program_.weights.push_back(made);
  weights_.push_back(tensor);
  return keep(program_.graph.get_attr(made.path), tensor);
}

// Names that mean something where the program is written.
std::string Values::weight_name() {
  const std::string number = std::to_string(program_.weights.size());
  if (!is_odd()) return "w" + number;
  constexpr std::array kNames = {"class", "self",   "training", "forward",     "None",  "inf",   "torch", "weight",
                                 "x",     "lambda", "state-",   "__dict__",    "_neg_", "a b",   "T",     "float",
                                 "nan",   "print",  "1",        "__getattr__", "True",  "Tensor"};
  const std::string name = random_.chance(15) ? "_tensor_constant" + number : random_.pick(kNames);
  const bool is_known =
      std::ranges::any_of(program_.weights, [&](const Weight& weight) { return weight.path.ends_with(name); });
  return is_known ? name + number : name;
}

void Values::read_otherwise() {
  constexpr std::array kReadings = {Reading::row,       Reading::transposed, Reading::expanded, Reading::conjugate,
                                    Reading::imaginary, Reading::negative,   Reading::real,     Reading::bytes};
  Weight made{weight_name(), {}, false, {}, random_.pick(kReadings)};
  const bool is_complex = made.reading == Reading::conjugate || made.reading == Reading::imaginary ||
                          (made.reading == Reading::real && random_.chance(90));
  at::Tensor whole;
  for (std::size_t i = 0; i < weights_.size() && random_.chance(80); ++i) {
    if (weights_[i].is_complex() != is_complex || weights_[i].dim() != 2) continue;
    made.same_as = program_.weights[i].path;
    whole = weights_[i];
  }
  if (!whole.defined()) {
    const TensorForm form{std::vector<std::int64_t>(2, n_), is_complex ? at::kComplexFloat : type_};
    made.value = draw_tensor(random_, form, program_.numbers);
    whole = copy_of(made.value);
  }
  // What LibTorch cannot negate, and what it does not take for memory of two tensors because nothing lies in it.
  const bool has_bit = made.reading == Reading::negative || made.reading == Reading::conjugate;
  if (has_bit && (whole.scalar_type() == at::kBool || whole.numel() == 0)) throw NoSuchCall();
  const at::Tensor tensor = read_as(made.reading, whole);
  made.parameter = tensor.is_floating_point() && random_.chance(40);
  keep_weight(std::move(made), tensor);
}

void Values::leave_unread() {
  for (Node* node : {&weight(draw_form()), &input(draw_form())}) {
    std::erase(pool_, node);
    if (node->is(Op::get_attr)) program_.graph.erase_node(*node);
  }
}

Node* Values::pick() {
  if (pool_.empty()) return nullptr;
  if (random_.chance(4)) return &input(draw_form());
  if (random_.chance(7)) return &weight(draw_form());
  if (random_.chance(3) && !program_.weights.empty())
    return again(program_.weights[random_.below(program_.weights.size())]);
  const std::size_t last = random_.chance(60) ? std::min<std::size_t>(pool_.size(), 4) : pool_.size();
  return pool_[pool_.size() - 1 - random_.below(last)];
}

Node* Values::again(const Weight& weight) {
  return &keep(program_.graph.get_attr(weight.path), weights_[&weight - program_.weights.data()]);
}

Node& Values::of_form(const TensorForm& form, unsigned weight_percent) {
  if (random_.chance(55)) {
    for (int tries = 0; tries < 4; ++tries) {
      Node* node = pool_.empty() ? nullptr : random_.pick(pool_);
      if (node && tensor_of(*node).sizes() == at::IntArrayRef(form.sizes) &&
          tensor_of(*node).scalar_type() == form.type)
        return *node;
    }
  }
  return random_.chance(weight_percent) ? weight(form) : input(form);
}

Node* Values::value_for(const SchemaArgument& parameter, const at::Tensor& first) {
  const std::string_view name = parameter.name.view();
  const bool vector = name == "bias" || name == "running_mean" || name == "running_var" ||
                      (name == "weight" && first.defined() && first.dim() != 4);
  if (name == "weight" && first.defined() && first.dim() == 4 && random_.chance(80))
    return &of_form({{n_, n_, 1, 1}, first.scalar_type()}, 60);
  if (vector && first.defined() && random_.chance(60)) return &of_form({{n_}, first.scalar_type()}, 60);
  const auto of_type = [&](at::ScalarType type) -> Node* {
    for (Node* node : pool_) {
      if (tensor_of(*node).scalar_type() == type && random_.chance(60)) return node;
    }
    return &of_form({first.defined() ? first.sizes().vec() : std::vector<std::int64_t>{n_}, type}, 30);
  };
  if (name == "out") {  // one that need not be resized
    for (std::size_t i = pool_.size(); i-- > 0;) {
      if (tensor_of(*pool_[i]).sizes() == first.sizes()) return pool_[i];
    }
    return nullptr;
  }
  if (name == "condition" || name == "mask") return of_type(at::kBool);
  if ((name == "index" || name == "indices") && random_.chance(85)) return of_type(at::kLong);
  if (first.defined() && random_.chance(35)) {  // of the same sizes
    for (std::size_t i = pool_.size(); i-- > 0;) {
      if (tensor_of(*pool_[i]).sizes() == first.sizes() && random_.chance(50)) return pool_[i];
    }
  }
  return pick();
}

}  // namespace fx::hostile
