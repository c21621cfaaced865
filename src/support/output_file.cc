#include <fxgraph/support/output_file.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <streambuf>

#include <fxgraph/support/error.h>

namespace fx {

namespace fs = std::filesystem;

namespace {

// Keeps the first failure to itself: the writer of archives ends the program when its stream refuses its last bytes.
class FileSink : public std::streambuf {
 public:
  explicit FileSink(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) { note(file_ != nullptr); }
  ~FileSink() override { close(); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  /// Ends the file; returns the errno of what failed first, or 0.
  int close() {
    if (file_) note(std::fclose(file_) == 0);
    file_ = nullptr;
    return error_;
  }

 protected:
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    const auto bytes = static_cast<std::size_t>(size);
    if (error_ == 0) note(std::fwrite(data, 1, bytes, file_) == bytes);
    return size;
  }
  int_type overflow(int_type character) override {
    const char byte = traits_type::to_char_type(character);
    if (!traits_type::eq_int_type(character, traits_type::eof())) xsputn(&byte, 1);
    return traits_type::not_eof(character);
  }

 private:
  void note(bool good) {
    if (!good && error_ == 0) error_ = errno != 0 ? errno : EIO;
  }

  std::FILE* file_;
  int error_ = 0;
};

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::io, "cannot write " + path + ": " + reason);
}

void fill(const std::string& place, const std::string& path, const std::function<void(std::ostream&)>& write) {
  FileSink sink(place);
  std::ostream stream(&sink);
  write(stream);
  if (const int error = sink.close()) fail(path, std::strerror(error));
}

std::string beside(const fs::path& target) {
  static std::atomic<unsigned> count{0};
  const std::string name = "." + target.filename().string() + "." + std::to_string(getpid());
  return (target.parent_path() / (name + "." + std::to_string(count++))).string();
}

/// What the link at `path`, and those that it leads to, point to, though it is not there.
fs::path end_of_links(const std::string& path) {
  constexpr int kMost = 40;  // as the kernel allows
  fs::path target(path);
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, ignored)); ++links) {
    if (links == kMost) fail(path, "it is a link that leads to itself; remove it");
    target = target.parent_path() / fs::read_symlink(target);
  }
  return target;
}

}  // namespace

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "the folder cannot be made: " + error.message());
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) fail(path, "it is a folder; name a file in it");
  if (fs::exists(status) && !fs::is_regular_file(status)) return fill(path, path, write);
  const fs::path target = fs::exists(status) ? fs::canonical(path) : end_of_links(path);
  const fs::path folder = target.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    fail(path, "the folder " + folder.string() + " does not exist; create it first");

  const std::string temporary = beside(target);
  try {
    fill(temporary, path, write);
    if (fs::exists(status)) fs::permissions(temporary, status.permissions(), ignored);
    std::error_code error;
    fs::rename(temporary, target, error);
    if (error) fail(path, error.message());
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

}  // namespace fx
