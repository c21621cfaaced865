// Names of attributes that TorchScript can write and read back.
#pragma once

#include <string>
#include <string_view>

namespace fx::internal {

/// `name`, unless it is a keyword of Python, which a C++ module may well be called and saved files cannot say, or what
/// every module has there: `raise` becomes `raise_`, `forward` `forward_`.
std::string script_name(std::string_view name);

}  // namespace fx::internal
