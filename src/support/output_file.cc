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

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code ignored;
  fs::path target(path);
  const fs::file_status status = fs::status(target, ignored);
  if (fs::is_directory(status)) fail(path, "it is a folder; name a file in it");
  if (fs::exists(status) && !fs::is_regular_file(status)) return fill(path, path, write);
  if (fs::exists(status)) target = fs::canonical(target);
  const fs::path folder = target.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    fail(path, "the folder " + folder.string() + " does not exist; create it first");

  const std::string temporary = beside(target);
  try {
    fill(temporary, path, write);
    std::error_code error;
    fs::rename(temporary, target, error);
    if (error) fail(path, error.message());
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

}  // namespace fx
