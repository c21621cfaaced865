// Optimising many files: each in a process of its own, several at once.
//
// A process for each file keeps a crash or a lack of memory to that file, and lets the system say what each needed.
#pragma once

#include <fxgraph/cli/model.h>

namespace fx::cli {

/// Runs `program optimize FILE` with these options for each file, at most `jobs` at once, into the folder
/// `options.output` if it is given. Prints what each printed, in the order of the files, then time and peak memory of
/// each. Returns kFailed when one did not end well; the others run all the same. Throws Error(invalid_argument) when
/// two files would be saved under one name.
int optimize_each(const std::string& program, const std::vector<std::string>& files, const OptimizeOptions& options,
                  unsigned jobs);

}  // namespace fx::cli
