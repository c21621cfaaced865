#include <fxgraph/export/tree_spec.h>

#include <cmath>
#include <utility>

#include <fxgraph/export/json.h>
#include <fxgraph/run/value.h>

namespace fx::pt2 {
namespace {

struct TypeName {
  const char* name;
  TreeSpec::Kind kind;
};
constexpr TypeName kTypes[] = {
    {"builtins.tuple", TreeSpec::Kind::tuple},
    {"builtins.list", TreeSpec::Kind::list},
    {"builtins.dict", TreeSpec::Kind::dict},
    {"collections.OrderedDict", TreeSpec::Kind::dict},
    {"collections.namedtuple", TreeSpec::Kind::tuple},
    {"collections.deque", TreeSpec::Kind::list},
    {"torch.Size", TreeSpec::Kind::tuple},
    {"builtins.immutable_list", TreeSpec::Kind::list},
};

Argument key_of(const Json& key) {
  if (key.is_string()) return Argument(key.get_ref<const std::string&>());
  if (key.is_number_integer()) return Argument(integer_of(key));
  throw Error(ErrorKind::unsupported, "a dict among the inputs or outputs has the key " + key.dump().substr(0, 60) +
                                          ", which is neither a string nor an int");
}

Argument checked_key(const Argument& key) {
  if (key.is_string() || key.is_int()) return key;
  throw Error(ErrorKind::unsupported, "a dict with keys that are neither strings nor ints cannot be exported");
}

Json json_key(const Argument& key) { return key.is_int() ? Json(key.as_int()) : Json(std::string(key.as_string())); }

TreeSpec read(const Json& json, int depth) {
  if (depth > TreeSpec::kMaxDepth) malformed("the inputs or outputs are nested too deeply");
  TreeSpec spec;
  const Json* type = find_member(json, "type");
  const Json::array_t& children = array_of(member(json, "children_spec"));
  if (!type) {
    if (!children.empty()) malformed("a leaf of the call's structure has children");
    return spec;
  }
  spec.type = string_of(*type);
  spec.kind = TreeSpec::Kind::tuple;  // dataclasses and what else was registered: their parts
  for (const TypeName& each : kTypes) {
    if (spec.type == each.name) spec.kind = each.kind;
  }
  if (const Json* context = find_member(json, "context")) spec.context = string_of(*context);
  if (spec.kind == TreeSpec::Kind::dict) {
    const Json keys = Json::parse(spec.context, nullptr, /*allow_exceptions=*/false);
    for (const Json& key : array_of(keys)) spec.keys.push_back(key_of(key));
    if (spec.keys.size() != children.size()) malformed("a dict of the call's structure has another number of keys");
  }
  for (const Json& child : children) spec.children.push_back(read(child, depth + 1));
  return spec;
}

Json write(const TreeSpec& spec) {
  Json children = Json::array();
  for (const TreeSpec& child : spec.children) children.push_back(write(child));
  if (spec.is_leaf()) return {{"type", nullptr}, {"context", nullptr}, {"children_spec", children}};
  return {{"type", spec.type}, {"context", spec.context}, {"children_spec", children}};
}

Argument key_in(const Argument& key, const Argument& /*like*/) { return key; }
c10::IValue key_in(const Argument& key, const c10::IValue& /*like*/) { return to_ivalue(key); }

template <typename Value, typename Make>
Value packed(const TreeSpec& spec, const std::function<Value()>& next_leaf, const Make& make) {
  if (spec.is_leaf()) return next_leaf();
  std::vector<Value> elements;
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    if (spec.kind == TreeSpec::Kind::dict) elements.push_back(key_in(spec.keys[i], Value()));
    elements.push_back(packed(spec.children[i], next_leaf, make));
  }
  return make(spec.kind, std::move(elements));
}

}  // namespace

TreeSpec TreeSpec::tuple(std::vector<TreeSpec> children) {
  return {Kind::tuple, "builtins.tuple", "null", {}, std::move(children)};
}
TreeSpec TreeSpec::list(std::vector<TreeSpec> children) {
  return {Kind::list, "builtins.list", "null", {}, std::move(children)};
}
TreeSpec TreeSpec::dict(std::vector<Argument> keys, std::vector<TreeSpec> children) {
  Json context = Json::array();
  for (const Argument& key : keys) context.push_back(json_key(key));
  return {Kind::dict, "builtins.dict", context.dump(), std::move(keys), std::move(children)};
}

TreeSpec TreeSpec::parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array() || json.size() != 2) malformed("the call's structure is no JSON of its protocol");
  if (json[0] != 1) {
    throw Error(ErrorKind::unsupported,
                "the call's structure is written in protocol " + json[0].dump().substr(0, 20) + ", 1 is known");
  }
  return read(json[1], 0);
}

std::string TreeSpec::dump() const { return Json::array({1, write(*this)}).dump(); }

TreeSpec TreeSpec::named_like(const TreeSpec& other) const {
  if (kind != other.kind || keys != other.keys || children.size() != other.children.size()) return *this;
  TreeSpec named = *this;
  named.type = other.type;
  named.context = other.context;
  for (std::size_t i = 0; i < children.size(); ++i) named.children[i] = children[i].named_like(other.children[i]);
  return named;
}

std::size_t TreeSpec::num_leaves() const {
  if (is_leaf()) return 1;
  std::size_t total = 0;
  for (const TreeSpec& child : children) total += child.num_leaves();
  return total;
}

Argument TreeSpec::pack(const std::function<Argument()>& next_leaf) const {
  return packed(*this, next_leaf, [](Kind kind, const std::vector<Argument>& elements) {
    if (kind == Kind::dict) return Argument::dict(elements);
    return kind == Kind::list ? Argument::list(elements) : Argument::tuple(elements);
  });
}

c10::IValue TreeSpec::pack_values(const std::function<c10::IValue()>& next_leaf) const {
  return packed(*this, next_leaf, [](Kind kind, std::vector<c10::IValue> elements) -> c10::IValue {
    if (kind == Kind::dict) return make_dict(elements);
    if (kind == Kind::list) return make_list(std::move(elements));
    return c10::ivalue::Tuple::create(std::move(elements));
  });
}

TreeSpec spec_of(const Argument& argument, const std::function<void(const Argument&)>& visit) {
  if (!argument.is_sequence() && !argument.is_dict()) {
    visit(argument);
    return TreeSpec::leaf();
  }
  std::vector<Argument> keys;
  std::vector<TreeSpec> children;
  for (std::size_t i = 0; i < argument.elements().size(); ++i) {
    const Argument& element = argument.elements()[i];
    if (argument.is_dict() && i % 2 == 0) {
      keys.push_back(checked_key(element));
    } else {
      children.push_back(spec_of(element, visit));
    }
  }
  if (argument.is_dict()) return TreeSpec::dict(std::move(keys), std::move(children));
  return argument.is_list() ? TreeSpec::list(std::move(children)) : TreeSpec::tuple(std::move(children));
}

TreeSpec spec_of(const c10::IValue& value) {
  std::vector<Argument> keys;
  std::vector<TreeSpec> children;
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      keys.push_back(checked_key(to_argument(item.key()).value_or(Argument())));
      children.push_back(spec_of(item.value()));
    }
    return TreeSpec::dict(std::move(keys), std::move(children));
  }
  if (!value.isTuple() && !value.isList()) return TreeSpec::leaf();
  for (const c10::IValue& each : elements_of(value)) children.push_back(spec_of(each));
  return value.isTuple() ? TreeSpec::tuple(std::move(children)) : TreeSpec::list(std::move(children));
}

}  // namespace fx::pt2
