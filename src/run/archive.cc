#include <fxgraph/run/archive.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fxgraph/support/error.h>

namespace fx {
namespace {

// The zip format's numbers: APPNOTE.TXT 4.3.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr std::uint32_t kDirectoryEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalHeaderSize = 30;
constexpr std::size_t kDirectoryEntrySize = 46;
constexpr std::size_t kDirectoryEndSize = 22;
constexpr std::size_t kLocatorSize = 20;
constexpr std::size_t kDirectoryEnd64Size = 56;
constexpr std::uint64_t kLargestComment = 0xffff;
constexpr std::uint32_t kIn64 = 0xffffffff;

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}
std::uint16_t u16(std::string_view bytes, std::size_t at) { return static_cast<std::uint16_t>(number(bytes, at, 2)); }
std::uint32_t u32(std::string_view bytes, std::size_t at) { return static_cast<std::uint32_t>(number(bytes, at, 4)); }
std::uint64_t u64(std::string_view bytes, std::size_t at) { return number(bytes, at, 8); }

// A name that leads nowhere but below the archive's own folder.
bool is_plain(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = slash + 1;
  }
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

std::uint32_t checksum_of(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = (made[i] >> 1) ^ (made[i] & 1 ? 0xedb88320u : 0u);
    }
    return made;
  }();
  std::uint32_t value = 0xffffffff;
  for (const char c : bytes) value = table[(value ^ static_cast<unsigned char>(c)) & 0xff] ^ (value >> 8);
  return ~value;
}

}  // namespace

ArchiveReader::ArchiveReader(const std::string& path, Deflated deflated)
    : path_(path), file_(std::make_unique<std::ifstream>(path, std::ios::binary)), deflated_(deflated) {
  open();
}

ArchiveReader::ArchiveReader(std::string name, std::string bytes)
    : path_(std::move(name)), file_(std::make_unique<std::istringstream>(std::move(bytes), std::ios::binary)) {
  open();
}

void ArchiveReader::open() {
  if (!*file_) fail("cannot be opened for reading");
  const std::streamoff size = file_->seekg(0, std::ios::end).tellg();
  if (size < 0) fail("cannot be read; give an ordinary file");
  file_size_ = static_cast<std::uint64_t>(size);
  if (file_size_ < kDirectoryEndSize) fail("is no zip archive: it has only " + std::to_string(file_size_) + " bytes");
  read_directory();
  leave_out_folder();
}

bool ArchiveReader::is_exported_program(const std::string& path) noexcept {
  try {
    const ArchiveReader archive(path);
    if (archive.has("serialized_exported_program.json") || archive.has("archive_format")) return true;
    return std::ranges::any_of(archive.names(), [](const std::string& name) {
      return name.starts_with("models/") && name.ends_with(".json");
    });
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<std::string> ArchiveReader::names() const {
  std::vector<std::string> all;
  for (const auto& [name, record] : records_) all.push_back(name);
  return all;
}

void ArchiveReader::fail(const std::string& what) const { throw Error(ErrorKind::io, path_ + ": " + what); }

const ArchiveReader::Record& ArchiveReader::find(const std::string& name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) fail("has no record '" + name + "'; export the program again");
  return found->second;
}

std::string ArchiveReader::bytes_at(std::uint64_t offset, std::uint64_t count) {
  if (offset > file_size_ || count > file_size_ - offset) fail("is cut short or damaged: a record lies outside of it");
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file_->clear();
  file_->seekg(static_cast<std::streamoff>(offset));
  if (!file_->read(bytes.data(), static_cast<std::streamsize>(count))) fail("cannot be read");
  return bytes;
}

// The directory is found from the end of the file; one written by LibTorch says its place in the 64-bit form as well.
void ArchiveReader::read_directory() {
  const std::uint64_t tail_size = std::min(file_size_, kLargestComment + kDirectoryEndSize);
  const std::uint64_t tail_offset = file_size_ - tail_size;
  const std::string tail = bytes_at(tail_offset, tail_size);
  std::size_t end = tail.size() - kDirectoryEndSize;
  while (u32(tail, end) != kDirectoryEnd) {
    if (end-- == 0) {
      const bool zip = u32(bytes_at(0, 4), 0) == kLocalHeader;
      fail(zip ? "is cut short: the zip archive has no end" : "is no zip archive");
    }
  }
  std::uint64_t size = u32(tail, end + 12), offset = u32(tail, end + 16), count = u16(tail, end + 10);
  if (end >= kLocatorSize && u32(tail, end - kLocatorSize) == kDirectoryEnd64Locator) {
    const std::string end64 = bytes_at(u64(tail, end - kLocatorSize + 8), kDirectoryEnd64Size);
    if (u32(end64, 0) != kDirectoryEnd64) fail("is damaged: its directory is not where it says");
    count = u64(end64, 32), size = u64(end64, 40), offset = u64(end64, 48);
  }
  const std::string directory = bytes_at(offset, size);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view rest = std::string_view(directory).substr(at);
    if (rest.size() < kDirectoryEntrySize || u32(rest, 0) != kDirectoryEntry) fail("is damaged: its directory is");
    const std::size_t length = kDirectoryEntrySize + u16(rest, 28) + u16(rest, 30) + u16(rest, 32);
    if (length > rest.size()) fail("is damaged: its directory is");
    add_record(rest.substr(0, length), offset);
    at += length;
  }
  std::uint64_t total = 0;
  for (const auto& [name, record] : records_) {
    if (record.packed > file_size_ - total) fail("is damaged: its records overlap");
    total += record.packed;
  }
}

void ArchiveReader::add_record(std::string_view entry, std::uint64_t directory_offset) {
  const std::size_t name_size = u16(entry, 28);
  const std::string name(entry.substr(kDirectoryEntrySize, name_size));
  if (name.ends_with('/')) return;  // a folder
  if (!is_plain(name)) fail("has a record with a name that is no plain path; it is not read");
  constexpr std::uint16_t kStored = 0, kDeflated = 8;
  const std::uint16_t method = u16(entry, 10);
  const bool taken = method == kStored || (method == kDeflated && deflated_ == Deflated::listed);
  if (!taken || (u16(entry, 8) & 1)) {
    fail("has the record '" + name + "' compressed or encrypted; torch.export stores records as they are");
  }
  Record record{u32(entry, 42), u32(entry, 24), u32(entry, 16), method == kDeflated, u32(entry, 20)};
  std::string_view extra = entry.substr(kDirectoryEntrySize + name_size, u16(entry, 30));
  while (extra.size() >= 4) {
    const std::size_t length = u16(extra, 2);
    if (length > extra.size() - 4) fail("is damaged: its directory is");
    if (u16(extra, 0) == 1) {  // the numbers that need 64 bits, in this order
      std::string_view values = extra.substr(4, length);
      for (std::uint64_t* value : {&record.size, &record.packed, &record.header}) {
        if (*value != kIn64) continue;
        if (values.size() < 8) fail("is damaged: its directory is");
        *value = u64(values, 0);
        values.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + length);
  }
  // No more comes out of a deflated byte: RFC 1951, 258 bytes of two bits.
  constexpr std::uint64_t kMostOfAByte = 1032;
  if ((record.deflated ? record.size / kMostOfAByte > record.packed : record.packed != record.size) ||
      record.header > directory_offset || record.packed > directory_offset - record.header)
    fail("is damaged: the record '" + name + "' lies outside of it");
  if (!records_.emplace(name, record).second) fail("has two records '" + name + "'");
}

void ArchiveReader::leave_out_folder() {
  if (records_.empty()) return;
  const std::string first = records_.begin()->first;
  const std::string folder = first.substr(0, first.find('/') + 1);
  if (folder.empty()) return;
  for (const auto& [name, record] : records_) {
    if (!name.starts_with(folder)) return;
  }
  std::map<std::string, Record> inside;
  for (const auto& [name, record] : records_) inside.emplace(name.substr(folder.size()), record);
  records_ = std::move(inside);
}

void ArchiveReader::read(const std::string& name, char* to) {
  const Record& record = find(name);
  if (record.deflated) fail("has the record '" + name + "' deflated, which is not read here");
  const std::string header = bytes_at(record.header, kLocalHeaderSize);
  if (u32(header, 0) != kLocalHeader) fail("is damaged: the record '" + name + "' is not where it should be");
  const std::uint64_t offset = record.header + kLocalHeaderSize + u16(header, 26) + u16(header, 28);
  if (offset > file_size_ || record.size > file_size_ - offset) fail("is cut short: the record '" + name + "' is");
  file_->clear();
  file_->seekg(static_cast<std::streamoff>(offset));
  if (!file_->read(to, static_cast<std::streamsize>(record.size))) fail("cannot be read");
}

std::string ArchiveReader::text(const std::string& name) {
  const Record& record = find(name);
  std::string bytes(static_cast<std::size_t>(record.size), '\0');
  read(name, bytes.data());
  check(name, bytes);
  return bytes;
}

void ArchiveReader::check(const std::string& name, std::string_view bytes) const {
  if (checksum_of(bytes) != find(name).checksum)
    fail("is damaged: the checksum of '" + name + "' is wrong; copy or save it again");
}

}  // namespace fx
