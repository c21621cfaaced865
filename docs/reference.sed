# What Doxygen reads in place of a header: its head comment is the description of the file.
1,/^#pragma once$/ {
  s,^// \{0\,1\},/// ,
  s,^#pragma once$,/// @file,
}
