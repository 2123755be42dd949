// elf.h: what is read from a kernel image beside its entry table: symbols, and sections for the line table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pygpukit::sim {

struct Symbol {
  std::string_view name;
  uint64_t value = 0;  // relative to where the image is loaded; thread-local: to its thread-local block
  uint64_t bytes = 0;
  enum Kind { kOther, kObject, kFunction, kThreadLocal } kind = kOther;
};

// A 64-bit little-endian ELF file in memory. Every offset in it is checked: images come from files.
class ElfFile {
 public:
  // The bytes must outlive this object. False: not such a file, or damaged.
  bool Parse(std::string_view bytes);
  const std::vector<Symbol> &symbols() const { return symbols_; }
  // Bytes of memory that the file takes when it is loaded.
  uint64_t image_bytes() const { return image_bytes_; }
  // Bytes of a thread's own block.
  uint64_t thread_local_bytes() const { return thread_local_end_ - thread_local_start_; }
  // Names that the file takes from elsewhere.
  const std::vector<std::string_view> &undefined() const { return undefined_; }
  // Functions that would run when the file is loaded or unloaded: initialisers, and those that choose an address.
  uint64_t functions_at_load() const;
  // Empty when there is none, or when it is compressed.
  std::string_view Section(std::string_view name) const;

 private:
  struct Header {
    std::string_view name, contents;
    uint32_t type, link;
  };
  template <class T>
  bool Read(uint64_t offset, T *value) const;
  bool ReadSymbols(const Header &header);

  std::string_view bytes_;
  std::vector<Header> sections_;
  std::vector<Symbol> symbols_;
  std::vector<std::string_view> undefined_;
  uint64_t image_bytes_ = 0;
  uint64_t thread_local_start_ = 0, thread_local_end_ = 0;
};

}  // namespace pygpukit::sim
