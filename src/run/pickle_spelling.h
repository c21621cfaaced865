// Pickles of Python as LibTorch reads them. Thread-safety: no state; linear in the pickle.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/qualified_name.h>
#include <c10/core/Allocator.h>

#include <functional>
#include <string>
#include <vector>

namespace fx {

/// The same pickle (protocol 2) without the operations that LibTorch 1.13 does not read: Python writes APPEND and
/// SETITEM for lists and dicts of one element, where others get APPENDS and SETITEMS. What is not understood is
/// returned as it is.
std::string without_single_appends(const std::string& pickle);

/// Where the pieces of a pickle come from that are not in it.
struct PickleParts {
  /// The memory of a tensor, by the name of its record.
  std::function<c10::DataPtr(const std::string&)> memory;
  /// A class by its name, and an object of one from its arguments; without them classes are refused.
  std::function<c10::StrongTypePtr(const c10::QualifiedName&)> type_of{};
  std::function<c10::intrusive_ptr<c10::ivalue::Object>(const c10::StrongTypePtr&, c10::IValue)> make{};
};

/// What torch.load reads, also with weights_only: an archive of plain lists, dicts, tuples and tensors. (What
/// LibTorch's pickle_save writes names classes of TorchScript for lists and dicts, which torch.load refuses.)
std::vector<char> pickled(const c10::IValue& value);

/// Reads what torch.save pickled. Throws what LibTorch and the parts throw.
c10::IValue unpickled(const std::string& pickle, const PickleParts& parts);

}  // namespace fx
