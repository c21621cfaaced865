# What Doxygen reads in place of a header: the comment at its top describes the file, indented lines are code, "the top of this file"
# is a link, and what Doxygen reads otherwise than people do (a percent sign, an apostrophe in code) is spelt so that it stays.
FNR == 1 {
  name = FILENAME
  sub(/.*\/fxgraph\//, "fxgraph/", name)
  head = 1
}
head && /^#pragma once$/ {
  head = 0
  print "/// @file"
  next
}
head { sub(/^\/\/ ?/, "/// ") }
/^ *\/\/\/   +[^ -]/ {
  sub(/\/\/\/   /, "///     ")
  print
  next
}
/\/\/\// {
  gsub(/the top of this file/, "the top of " name)
  gsub(/%[A-Za-z_]/, "%&")
  left = $0
  $0 = ""
  while (match(left, /`[^`]*`/)) {
    code = substr(left, RSTART, RLENGTH)
    $0 = $0 substr(left, 1, RSTART - 1) (index(code, "'") ? "`" code "`" : code)
    left = substr(left, RSTART + RLENGTH)
  }
  $0 = $0 left
}
{ print }
