#include <fxgraph/trace/placeholder_inputs.h>

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/example_note.h>
#include <fxgraph/trace/input_assertions.h>
#include <fxgraph/trace/session.h>

namespace fx::internal {
namespace {

std::string default_name(std::size_t position, std::size_t count) {
  static constexpr std::array<const char*, 3> kNames = {"x", "y", "z"};
  if (count <= kNames.size()) return kNames[position];
  return "arg_" + std::to_string(position);
}

// An optional parameter that is given is not optional in the graph.
std::string without_optional(std::string_view annotation) {
  constexpr std::string_view kOptional = "typing.Optional[";
  if (annotation.starts_with(kOptional))
    annotation = annotation.substr(kOptional.size(), annotation.size() - kOptional.size() - 1);
  return std::string(annotation == "torch.Tensor" ? "" : annotation);
}

bool is_unknown(const c10::IValue& example) {
  return example.isTensor() && example.toTensor().is_same(unknown_example());
}

}  // namespace

const at::Tensor& unknown_example() {
  static const at::Tensor* const tensor = [] {
    c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    return new at::Tensor(at::empty({0}, at::TensorOptions().device(at::kMeta)));
  }();
  return *tensor;
}

PlaceholderInputs::PlaceholderInputs(Session& session, Graph& graph, const std::vector<std::string>& names,
                                     std::vector<c10::IValue> examples, std::size_t parameters, Literals literals)
    : Inputs(session),
      graph_(graph),
      names_(names),
      examples_(std::move(examples)),
      parameters_(parameters),
      literals_(literals) {
  if (examples_.size() > parameters_) {
    throw Error(ErrorKind::invalid_argument, "symbolic_trace: " + std::to_string(examples_.size()) +
                                                 " example inputs for a program that takes " +
                                                 std::to_string(parameters_));
  }
  // Before anything is recorded: the notes are tensors, too.
  for (const c10::IValue& example : examples_)
    notes_.push_back(is_unknown(example) ? std::nullopt : example_note(example));
}

std::size_t PlaceholderInputs::count(std::size_t required) const { return std::max(required, examples_.size()); }

Node& PlaceholderInputs::placeholder(const Argument* default_value, const std::string& annotation) {
  const std::string name = next_ < names_.size() ? names_[next_] : default_name(next_, parameters_);
  ++next_;
  const ArgumentSpan args(default_value, default_value ? 1 : 0, sizeof(Argument));
  if (last_) {
    // Taking containers apart makes nodes between two placeholders, which all stay at the start.
    const auto after = graph_.inserting_after(*last_);
    last_ = &session().create_node(Op::placeholder, name, args);
  } else {
    last_ = &session().create_node(Op::placeholder, name, args);
  }
  if (!annotation.empty()) last_->meta().set(meta_key::kType, annotation);
  return *last_;
}

// A longer list or another dict is refused when the graph runs: what it has more would be lost.
void PlaceholderInputs::assert_length(Node& container, std::size_t length) {
  if (literals_ == Literals::holes) return;
  Node& found = session().create_node(Op::call_function, python::kLength, {Argument(container)});
  const std::string message = container.name() + " has been specialized to have " + std::to_string(length) +
                              " elements but got another number of them";
  session().assertions().add(SizeRelation::equal, found, static_cast<std::int64_t>(length), message);
}

// As FX does for concrete_args: the graph holds for this value only, and says so when it runs.
void PlaceholderInputs::specialise(Node& placeholder, const Argument& value) {
  const auto [input, path] = path_of(placeholder);
  const std::string message =
      input->name() + path + " has been specialized to have value " + to_string(value) + " but got another value";
  session().assertions().add(SizeRelation::equal, placeholder, value, message);
}

bool PlaceholderInputs::next(const Parameter& parameter, InputItem& item) {
  current_ = next_;
  annotation_ = parameter.annotation;
  const bool given = next_ < examples_.size();
  if (!given && parameter.optional) {
    ++next_;
    return false;
  }
  if (given && !is_unknown(examples_[next_])) item.example = examples_[next_];
  if (item.example && item.example->isNone()) {
    const Argument none;
    specialise(placeholder(&none, parameter.optional ? annotation_ : "typing.Optional[torch.Tensor]"), none);
    return false;
  }
  if (given && parameter.optional) annotation_ = without_optional(annotation_);
  if (parameter.is_literal()) return true;
  const bool is_value = parameter.kind == ParameterKind::container || !item.example || item.example->isTensor() ||
                        item.example->isTuple() || item.example->isTensorList();
  if (!is_value) return true;
  const bool other_container = item.example && item.example->isTuple() && !annotation_.starts_with("typing.Tuple");
  item.node = &placeholder(nullptr, other_container ? item.example->type()->annotation_str() : annotation_);
  if (item.example && notes_[current_]) note_example(*item.node, *notes_[current_]);
  return true;
}

c10::IValue PlaceholderInputs::literal(const InputItem& item, ParameterKind kind) {
  const bool is_part = item.node && !item.node->is(Op::placeholder);  // of a struct or tuple
  if ((item.node && !is_part) || !item.example || !literal_kind(kind).fits(*item.example))
    wrong_example(item.example, literal_kind(kind).words);
  const std::optional<Argument> value = to_argument(*item.example);
  if (is_part) {
    specialise(*item.node, *value);
  } else if (literals_ == Literals::holes) {
    placeholder(nullptr, std::string(Parameter{kind, false, {}}.type_name()));
  } else {
    specialise(placeholder(&*value, annotation_), *value);
  }
  return *item.example;
}

bool PlaceholderInputs::is_none(const InputItem& item) {
  const bool is_none = item.example && item.example->isNone();
  if (is_none && item.node) specialise(*item.node, Argument());
  if (!is_none && item.node && item.example) given_.push_back(item.node);
  return is_none;
}

at::Tensor PlaceholderInputs::tensor(const InputItem& item) {
  // A part that is absent: an undefined tensor in a struct, tuple or list.
  const bool absent =
      item.example && (item.example->isNone() || (item.example->isTensor() && !item.example->toTensor().defined()));
  if (item.node && absent) {
    specialise(*item.node, Argument());
    return {};
  }
  if (!item.node || (item.example && !item.example->isTensor())) wrong_example(item.example, "a tensor");
  if (!item.example) return session().proxy(*item.node);
  const std::size_t nth = bound_.size();
  const auto [node, path] = path_of(*item.node);
  const at::Tensor& example = instead_ ? instead_->at(nth) : item.example->toTensor();
  bound_.push_back({item.node, example, node, node->name() + path});
  const at::Tensor& shape = stand_ins_ ? stand_ins_->at(nth) : bound_.back().example;
  session().remember_input(*item.node, shape, /*blank=*/!shape.is_same(bound_.back().example));
  return session().proxy(*item.node, shape);
}

std::vector<InputItem> PlaceholderInputs::elements(const InputItem& item, std::size_t wanted) {
  std::vector<c10::IValue> examples;
  if (item.example && item.example->isTuple()) {
    examples = item.example->toTupleRef().elements();
  } else if (item.example && item.example->isList()) {
    examples = item.example->toListRef().vec();
  } else if (item.example || wanted == kAnyLength) {
    wrong_example(item.example, "a list or tuple");
  }
  if (item.example && wanted != kAnyLength && examples.size() != wanted) {
    wrong_example(item.example, "a tuple of " + std::to_string(wanted) + " elements");
  }
  if (wanted == kAnyLength) assert_length(*item.node, examples.size());
  std::vector<InputItem> parts(item.example ? examples.size() : wanted);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].node = &session().getitem(*item.node, static_cast<std::int64_t>(i));
    if (item.example) parts[i].example = examples[i];
  }
  return parts;
}

std::vector<std::pair<std::string, InputItem>> PlaceholderInputs::entries(const InputItem& item) {
  if (!item.example || !item.example->isGenericDict()) wrong_example(item.example, "a dict of tensors");
  assert_length(*item.node, item.example->toGenericDict().size());
  std::vector<std::pair<std::string, InputItem>> result;
  for (const auto& entry : item.example->toGenericDict()) {
    const std::string& key = entry.key().toStringRef();
    result.push_back({key, {&session().getitem(*item.node, key), entry.value(), {}}});
  }
  return result;
}

void PlaceholderInputs::wrong_example(const std::optional<c10::IValue>& example, std::string_view wanted) const {
  std::string message = "symbolic_trace: input " + std::to_string(current_) + " is ";
  message.append(wanted);
  message += example ? ", but its example is a " + example->tagKind() : "; give its value among the example inputs";
  throw Error(ErrorKind::invalid_argument, message);
}

}  // namespace fx::internal
