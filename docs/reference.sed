# What Doxygen reads in place of a header: the comment at its top describes the file, and indented lines are code.
1,/^#pragma once$/ {
  s,^// \{0\,1\},/// ,
  s,^#pragma once$,/// @file,
}
s,^\( *\)///   \( *[^ -]\),\1///     \2,
