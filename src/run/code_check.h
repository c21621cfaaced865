// Texts of TorchScript that somebody sent, before LibTorch's parser reads them: what it is known not to survive. It
// reads the rest by itself. Thread-safety: no state; linear in the text.
#pragma once

#include <string_view>

namespace fx {

/// Throws Error(io) when this text, code or the name of a type, is nested deeper than a parser that recurses can read.
void check_nesting(std::string_view text);

/// The same for code with classes. Throws Error(io), too, when a class sets a name without a type, which none but the
/// lists of its parameters, buffers and hooks may, and the members of an Enum.
void check_code(std::string_view text);

}  // namespace fx
