// Names of attributes, inputs and values that TorchScript can write and read back.
#pragma once

#include <string>
#include <string_view>

namespace fx::internal {

/// `name`, unless it is a keyword of Python, which a C++ module may well be called and saved files cannot say, or what
/// every module has there: `raise` becomes `raise_`, `forward` `forward_`. Throws Error(unsupported) for a name with
/// characters that files cannot say: quotes, control characters, other than ASCII.
std::string script_name(std::string_view name);

/// The same for each part of a path, `block.class`.
std::string script_path(std::string_view path);

/// `text`, which names an input or a value, as an identifier by which saved files call nothing: `torch` becomes
/// `torch_`.
std::string script_variable(std::string_view text);

}  // namespace fx::internal
