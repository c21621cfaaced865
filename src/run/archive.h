// ArchiveReader: a zip of stored records, as torch.export and torch.save write them, read without trusting it.
//
// The directory is checked when the archive is opened: every record lies inside the file, the records together are no
// larger than the file, names are plain relative paths, none stands twice, nothing is compressed. So whatever a hostile
// directory claims, no more is ever allocated than the file has bytes. Records lie below one folder, whose name is left
// out: `models/model.json`.
//
// Why not LibTorch's own reader: see docs/decisions/pt2-archives.md.
//
// Cost: opening reads the directory; a record is read once, straight to where it is wanted. Thread-safety: none.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fx {

class ArchiveReader {
 public:
  /// Whether records may be deflated, as those of TorchScript's code are: then they can be compared, and not read.
  enum class Deflated : std::uint8_t { refused, listed };
  /// Throws Error(io) that names `path` and what is wrong with it.
  explicit ArchiveReader(const std::string& path, Deflated deflated = Deflated::refused);
  /// The same for an archive in memory, which `name` names in messages.
  ArchiveReader(std::string name, std::string bytes);

  /// True when the file at `path` is a zip whose records are those of an exported program. Never throws.
  static bool is_exported_program(const std::string& path) noexcept;

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const { return records_.count(name) != 0; }
  /// The records' names, sorted.
  std::vector<std::string> names() const;
  /// Bytes of the record. Throws Error(io) when there is none.
  std::uint64_t size(const std::string& name) const { return find(name).size; }
  /// Reads a whole record to `to`, which has size(name) bytes.
  void read(const std::string& name, char* to);
  /// The same as a string; its checksum is compared.
  std::string text(const std::string& name);
  /// Throws Error(io) when the record's checksum is not that of `bytes`, which were read from it.
  void check(const std::string& name, std::string_view bytes) const;

 private:
  struct Record {
    std::uint64_t header = 0;  ///< of the local header
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
    bool deflated = false;
    std::uint64_t packed = 0;  ///< bytes in the file
  };

  [[noreturn]] void fail(const std::string& what) const;
  const Record& find(const std::string& name) const;
  std::string bytes_at(std::uint64_t offset, std::uint64_t count);
  void open();
  void read_directory();
  void add_record(std::string_view entry, std::uint64_t directory_offset);
  void leave_out_folder();

  std::string path_;
  std::unique_ptr<std::istream> file_;
  Deflated deflated_ = Deflated::refused;
  std::uint64_t file_size_ = 0;
  std::map<std::string, Record> records_;
};

}  // namespace fx
