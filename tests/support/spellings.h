// tests/corpus/spellings.txt: calls as torch.fx prints them, with patterns in ATen's words that find them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fxgraph/text/parse.h>

namespace fx::testing {

struct Spelling {
  std::string pattern;
  Graph graph;
  std::string root;
};

/// `pattern`, and on the next line `inputs | calls, one after the other | the one that is found`.
inline Spelling read_spelling(const std::string& pattern, const std::string& line) {
  const std::size_t first = line.find(" | "), last = line.rfind(" | ");
  std::string text = "graph():\n";
  std::istringstream inputs(line.substr(0, first));
  for (std::string name; inputs >> name;) text += "    %" + name + " : = placeholder[target=" + name + "]\n";
  std::string calls = line.substr(first + 3, last - first - 3);
  for (std::size_t at; (at = calls.find(" ; ")) != std::string::npos;) calls.replace(at, 3, "\n    ");
  const std::string root = line.substr(last + 3);
  return {pattern, parse_graph(text + "    " + calls + "\n    return " + root + "\n"), root};
}

inline std::vector<Spelling> all_spellings() {
  std::ifstream file("tests/corpus/spellings.txt");
  std::vector<Spelling> all;
  for (std::string pattern, line; std::getline(file, pattern) && std::getline(file, line);)
    all.push_back(read_spelling(pattern, line));
  return all;
}

}  // namespace fx::testing
