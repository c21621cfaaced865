#include <fxgraph/retrace/wrap.h>

#include <mutex>
#include <string>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/support/error.h>

namespace fx::internal {
namespace {

// Never taken back: LibTorch's dispatcher may be gone when static objects of the program end.
std::vector<torch::Library>& libraries() {
  static auto& all = *new std::vector<torch::Library>;
  return all;
}

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw Error(ErrorKind::invalid_argument, "wrap: '" + std::string(name) + "' " + why);
}

}  // namespace

c10::OperatorHandle define(std::string_view name_or_declaration, torch::CppFunction function) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string_view full = name_or_declaration.substr(0, name_or_declaration.find('('));
  const std::size_t colons = full.find("::");
  const std::string space(colons == std::string_view::npos ? "fxgraph" : full.substr(0, colons));
  const std::string_view rest =
      colons == std::string_view::npos ? name_or_declaration : name_or_declaration.substr(colons + 2);
  const std::string name(rest.substr(0, rest.find('(')));
  if (!is_identifier(space) || !is_identifier(name)) refuse(name_or_declaration, "is no name; write `my::name`");
  const std::string qualified = space + "::" + name;
  if (c10::Dispatcher::singleton().findSchema({qualified, ""}))
    refuse(name_or_declaration, "is an operator already; choose another name, and wrap each function once");
  torch::Library library(torch::Library::FRAGMENT, space, TorchOptional<c10::DispatchKey>(), __FILE__, __LINE__);
  try {
    library.def(std::string(rest).c_str(), std::move(function));
  } catch (const c10::Error& error) {
    refuse(name_or_declaration, std::string("cannot be registered: ") + error.what_without_backtrace());
  }
  libraries().push_back(std::move(library));
  return c10::Dispatcher::singleton().findSchemaOrThrow(qualified.c_str(), "");
}

}  // namespace fx::internal
