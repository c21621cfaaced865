// Reading graph texts from files.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/program_form.h>

namespace fx {

namespace {

constexpr std::size_t kBlock = 64 * 1024;

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

[[noreturn]] void fail(const std::string& path, int code) {
  throw Error(ErrorKind::io, "cannot read " + path + ": " + std::strerror(code));
}

// A file that cannot be a graph is refused by its first block: parsing that fails where parsing the whole would.
void require_header(std::string_view block, const std::string& name) {
  if (begins_archive(block))
    throw Error(ErrorKind::invalid_argument, name +
                                                 ": an archive, such as .pt and .pt2 are, and no text; archives are "
                                                 "read from files, not from a pipe: give the path of one");
  const std::size_t statement = block.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (statement == std::string_view::npos || block[statement] == '#' || block.substr(statement).starts_with("graph"))
    return;
  parse_graph(block, name);
}

}  // namespace

Graph load_graph_text(const std::string& path) {
  const bool standard = path == "-";
  const std::string name = standard ? "<stdin>" : path;
  const std::unique_ptr<std::FILE, Close> file(standard ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) fail(path, errno);
  std::string text;
  while (true) {
    const std::size_t before = text.size();
    if (text.capacity() < before + kBlock) text.reserve(2 * before + kBlock);
    text.resize(before + kBlock);
    errno = 0;
    const std::size_t got = std::fread(text.data() + before, 1, kBlock, file.get());
    text.resize(before + got);
    if (got < kBlock && std::ferror(file.get())) fail(path, errno);
    if (before == 0) require_header(text, name);
    if (got < kBlock) break;
  }
  return parse_graph(text, name);
}

}  // namespace fx
