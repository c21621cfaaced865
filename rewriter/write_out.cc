#include <fxgraph/rewriter/write_out.h>

#include <algorithm>
#include <utility>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/text/print.h>

namespace fx::internal {

namespace {

std::string text_of(const std::shared_ptr<const Graph>& body) { return body ? print_graph(*body) : std::string(); }

/// True when the module at `path` computes something else than it does in evaluation.
bool is_in_training(const std::string& path, const ModuleInfo& modules) {
  const std::shared_ptr<const Graph> evaluated = modules.evaluated ? modules.evaluated(path) : nullptr;
  if (!evaluated || !modules.body) return false;
  const std::shared_ptr<const Graph> now = modules.body(path);
  if (now != evaluated && text_of(now) != text_of(evaluated)) return true;
  return std::ranges::any_of(evaluated->nodes(), [&](const Node& node) {
    return node.is(Op::call_module) && is_in_training(path + "." + node.target().str(), modules);
  });
}

}  // namespace

Node* WriteOut::in_program(const Node& read) const {
  const auto made = made_.find(&read);
  Node* node = made == made_.end() ? reading_->value(read) : made->second;
  return node && !node->is_erased() ? node : nullptr;
}

/// What stands for the value now, also where an earlier rewrite replaced it; None for what is gone.
Argument WriteOut::value_of(const Node& read) const {
  const auto made = made_.find(&read);
  Node* node = made == made_.end() ? reading_->value(read) : made->second;
  if (!node) return {};
  Argument now = rewriter_.forwarded(*node);
  const Node* one = now.node_or_null();
  return one && one->is_erased() ? Argument() : now;
}

/// The calls that are read as others: those of the match, and modules that hand on what it takes.
std::vector<Node*> WriteOut::needed(const Match& match) const {
  std::vector<Node*> sources;
  const auto add = [&](Node& source) {
    const std::vector<const Node*> parts = reading_->parts(source);
    if (!parts.empty() && made_.contains(parts.front())) return;
    if (std::ranges::find(sources, &source) == sources.end()) sources.push_back(&source);
  };
  for (const Node* node : match.nodes()) {
    Node& source = reading_->source(*node);
    if (reading_->is_changed(*node)) {
      add(source);
      continue;
    }
    if (source.is_erased()) continue;
    source.for_each_input([&](Node& input) {
      const Node* read = reading_->result(input).node_or_null();
      if (read && !reading_->is_changed(*read) && &reading_->source(*read) != &input) add(input);
    });
  }
  return sources;
}

std::optional<Refusal> WriteOut::make(const Match& match) {
  mark_ = rewriter_.mark();
  done_.clear();
  erased_.clear();
  asked_.clear();
  if (guard_) guard_->prepare();
  std::vector<Node*> sources = needed(match);
  for (const Node* source : sources) {
    if (std::optional<Refusal> no = check(*source)) return no;
  }
  std::ranges::sort(sources, GraphOrder{});
  for (Node* source : sources) {
    std::optional<Refusal> no = write(*source);
    if (!no) continue;
    undo();
    return no;
  }
  std::optional<Refusal> no = make_forms(match);
  if (no) undo();
  return no;
}

/// Operands first: a form is made of values that may be forms themselves.
std::optional<Refusal> WriteOut::make_forms(const Match& match) {
  std::vector<const Form*> forms;
  for (const Argument& value : match.values()) {
    const Node* node = value.node_or_null();
    const Form* form = node ? reading_->forms().form(*node) : nullptr;
    if (form && !made_.contains(node)) forms.push_back(form);
  }
  std::ranges::sort(forms, GraphOrder{}, &Form::root);
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  for (const Form* form : forms) {
    if (std::optional<Refusal> no = write_form(*form)) return no;
  }
  return {};
}

/// A value that a form stands for, or takes, to which something is written; null when there is none.
const Node* WriteOut::written_among(const Form& form) const {
  if (!effects_.any_writes()) return nullptr;
  for (const Node* node : form.covers) {
    const Node* covered = in_program(*node);
    if (!covered) continue;
    if (effects_.is_written(*covered)) return covered;
    for (const Node* input : covered->all_input_nodes()) {
      if (effects_.is_written(*input)) return input;
    }
  }
  return nullptr;
}

/// True when what a form takes and gives is known to be of one type for which all kernels are there; for half precision
/// some are not.
bool WriteOut::is_of_one_type(const Form& form) const {
  const TensorInfo* result = reading_->info(*form.of);
  bool is = result && TypeSet{DType::float32, DType::float64}.contains(result->dtype);
  form.root->for_each_input([&](const Node& input) {
    const Node& standing = reading_->forms().standing(input);
    if (reading_->forms().is_of_form(standing)) return;  // made of what is taken
    const TensorInfo* info = reading_->info(standing);
    is = is && info && info->dtype == result->dtype;
  });
  return is;
}

/// The form holds for these types and sizes, which are answered for behind the rewrite.
std::optional<Refusal> WriteOut::note_read(const Form& form) {
  for (const Node* node : guard_ ? form.read : std::vector<const Node*>()) {
    if (node->is(Op::get_attr)) continue;  // it stays what it is
    const Node& read = reading_->forms().standing(*node);
    const Node* value = in_program(read);
    if (!value)
      return refused(reading_->source(read),
                     form.row->name + " goes by the sizes of " + read.name() + ", which the program has no node for");
    asked_.note({value, FactKind::dtype, TypeSet{reading_->info(read)->dtype}});
    asked_.note({value, FactKind::sizes});
  }
  return {};
}

/// Puts the call of a form where its value stands, with what it takes that is only in the reading.
std::optional<Refusal> WriteOut::write_form(const Form& form) {
  Node* of = in_program(*form.of);
  if (!of) return refused(reading_->source(*form.of), "an earlier rewrite replaced it");
  if (const Node* written = written_among(form))
    return refused(*written, "it is written, and by " + form.row->name + " it would be read elsewhere");
  if (!form.row->of_any_type && !is_of_one_type(form))
    return refused(*of, form.row->name +
                            " holds for float32 and float64, and these types are not known to be: give the "
                            "shapes of the inputs");
  if (std::optional<Refusal> no = note_read(form)) return no;
  std::vector<const Node*> missing = {form.root};
  for (std::size_t i = 0; i < missing.size(); ++i) {
    missing[i]->for_each_input([&](const Node& input) {
      const bool is_new = reading_->forms().is_of_form(input) && !made_.contains(&input);
      if (is_new && std::ranges::find(missing, &input) == missing.end()) missing.push_back(&input);
    });
  }
  std::ranges::sort(missing, GraphOrder{});
  Done done{of->name() + " by " + form.row->name, missing};
  bool is_there = true;
  {
    const auto scope = rewriter_.inserting_before(*of);
    for (const Node* part : missing) copy(*part, is_there);
  }
  done_.push_back(std::move(done));
  if (!is_there) return refused(*of, "an earlier rewrite replaced what it takes");
  Node& root = *made_.at(form.root);
  if (effects_.of(root).may_alias != effects_.of(*of).may_alias && effects_.is_returned(*of))
    return refused(*of, "it is returned, and by " + form.row->name + " it would share other storage");
  if (shapes_) (*shapes_)[root] = ValueInfo(std::as_const(*shapes_)[*of]);
  if (guard_) guard_->stands_for(root, *of);
  redirect(*of, Argument(root));
  rewriter_.erase_unused(*of, [&](Node& dead) {
    if (!dead.is_callable() || effects_.of(dead).impure()) return false;
    effects_.remove(dead);
    erased_.push_back(&dead);
    return true;
  });
  return {};
}

std::optional<Refusal> WriteOut::check(const Node& source) {
  if (source.is_erased()) return refused(source, "an earlier rewrite replaced it");
  if (source.is(Op::call_module)) {
    if (!is_in_training(source.target().str(), reading_->options().modules)) return {};
    return refused(source,
                   "its module is in training, and the pattern matches what it does in evaluation: call eval() first");
  }
  return check_types(source);
}

/// In place a sum has the type of its first operand; anew, that of both.
std::optional<Refusal> WriteOut::check_types(const Node& source) {
  const Call call = call_of(source);
  const auto facts = [&](const Node& node) {
    return TensorFacts(shapes_ ? std::as_const(*shapes_)[node].tensor() : nullptr, node, &asked_);
  };
  const Node* written = call.argument(0)->node_or_null();
  for (const Node* other : source.all_input_nodes()) {
    if (other == written) continue;
    const TensorFacts into = facts(*written), from = facts(*other);
    if (!into || !from)
      return refused(source, "it writes in place, and whether " + other->name() + " has the type of " +
                                 written->name() + " is not known: give the shapes of the inputs");
    if (!into.is_of_type_of(from)) return refused(source, "it writes in place, into another type");
  }
  return {};
}

/// Makes the program's node for one of the reading. `is_there` becomes false where an earlier rewrite erased what it
/// takes.
Node& WriteOut::copy(const Node& part, bool& is_there) {
  const auto now = [&](Node& node) {
    Argument value = value_of(node);
    is_there = is_there && !value.is_none();
    return value;
  };
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const Argument& argument : part.args()) args.push_back(map_nodes(argument, now));
  for (const auto& [name, argument] : part.kwargs()) kwargs.push_back({name, map_nodes(argument, now)});
  Node& made = rewriter_.create_node(part.op(), part.target(), args, kwargs, part.name());
  if (const Meta* meta = part.find_meta()) made.meta() = *meta;
  if (shapes_ && reading_->options().shapes) (*shapes_)[made] = ValueInfo((*reading_->options().shapes)[part]);
  effects_.add(made);
  made_.emplace(&part, &made);
  return made;
}

std::optional<Refusal> WriteOut::write(Node& source) {
  Done done{source.name(), reading_->parts(source)};
  bool is_there = true;
  {
    const auto scope = rewriter_.inserting_before(source);
    for (const Node* part : done.parts) copy(*part, is_there);
  }
  if (!is_there) {
    done_.push_back(std::move(done));
    return refused(source, "an earlier rewrite replaced what it takes");
  }
  done_.push_back(std::move(done));
  const auto value = [&](Node& node) { return value_of(node); };
  const Argument result = map_nodes(reading_->result(source), value);
  const Node* one = result.node_or_null();
  if (guard_ && one && made_.contains(reading_->result(source).node_or_null())) guard_->stands_for(*one, source);
  // Who takes a module's several values apart has these.
  for (Node* user : source.users().to_vector()) {
    const Argument& element = reading_->result(*user);
    if (one || element.is_none() || !reading_->parts(*user).empty()) continue;
    redirect(*user, map_nodes(element, value));
    erase(*user);
  }
  redirect(source, result);
  erase(source);
  return {};
}

void WriteOut::redirect(Node& from, const Argument& to) {
  const std::vector<Node*> users = from.users().to_vector();
  rewriter_.replace_all_uses_with(from, to);
  for (Node* user : users) effects_.changed(*user);
}

void WriteOut::erase(Node& node) {
  effects_.remove(node);
  rewriter_.erase_node(node);
  erased_.push_back(&node);
}

std::vector<std::string> WriteOut::sources() const {
  std::vector<std::string> names;
  for (const Done& done : done_) names.push_back(done.source);
  return names;
}

void WriteOut::undo() {
  for (const Done& done : done_) {
    for (const Node* part : done.parts) {
      const auto made = made_.find(part);
      if (made == made_.end()) continue;
      effects_.remove(*made->second);
      made_.erase(made);
    }
  }
  rewriter_.rollback(mark_);
  for (Node* node : erased_) {
    effects_.add(*node);
    for (Node& user : node->users()) effects_.changed(user);
  }
  done_.clear();
  erased_.clear();
}

}  // namespace fx::internal
