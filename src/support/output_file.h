// Files are written whole or not at all.
//
// What goes to an ordinary file is written beside it and renamed into its place; a symbolic link stays, and what it
// points to is replaced, or made. The permissions of a file that is replaced stay. Devices and pipes are written as
// they are: there is nothing to rename. Safe on several threads.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

namespace fx {

/// Calls `write` with a stream into the file `path`. The stream takes everything; that the disk is full is told at the
/// end. Throws Error(io) that names `path` when it cannot be written, and what `write` throws; the old file is there
/// then.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Makes the folder, and those above it, unless it is there. Throws Error(io) with the reason.
void make_folder(const std::string& path);

}  // namespace fx
