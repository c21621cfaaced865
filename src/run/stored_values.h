// Values in files and messages that somebody sent: the one door through which bytes come to LibTorch's readers.
//
// LibTorch believes what it reads: that a tensor lies inside of its memory, that a record is as large as a pickle says.
// Each archive is checked before: its directory (run/archive.h), the checksums of what is parsed, its pickles
// (run/pickle_check.h). Thread-safety: no state. Cost: linear in what is parsed; tensors are read once.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/qualified_name.h>

#include <functional>
#include <string>
#include <vector>

#include <fxgraph/run/archive.h>

namespace torch::jit {
struct Module;
}

namespace fx {

/// What torch.load reads, also with weights_only: an archive of plain lists, dicts, tuples and tensors. (What
/// LibTorch's pickle_save writes names classes of TorchScript for lists and dicts, which torch.load refuses.)
std::vector<char> pickled(const c10::IValue& value);

/// How classes are read that a pickle names; without these it may name none.
struct PickledClasses {
  /// A class by its name.
  std::function<c10::StrongTypePtr(const c10::QualifiedName&)> type_of{};
  /// An object of it, from its arguments.
  std::function<c10::intrusive_ptr<c10::ivalue::Object>(const c10::StrongTypePtr&, c10::IValue)> make{};
};

/// The value that torch.save, pickled() or torch::pickle_save has put into `archive`. Throws Error(io) that names the
/// archive when it is damaged, or not what it says; and what the classes throw.
c10::IValue stored_value(ArchiveReader& archive, const PickledClasses& classes = {});

/// The module in a file of TorchScript. Throws Error(io) that names the file and the cure when there is none, when it
/// is damaged, or when LibTorch refuses it.
torch::jit::Module stored_module(const std::string& path);

}  // namespace fx
