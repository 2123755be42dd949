// elf.cpp: a small reader of ELF files, after the System V ABI and its x86-64 and AArch64 supplements.
#include "sim/elf.h"

#include <algorithm>
#include <cstring>

namespace pygpukit::sim {
namespace {

constexpr uint32_t kSymbolTable = 2, kRelocations = 4, kDynamic = 6, kNoBits = 8, kDynamicSymbols = 11;
constexpr uint64_t kAllocated = 1 << 1, kThreadLocal = 1 << 10, kCompressed = 1 << 11;

std::string_view Text(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

template <class T>
bool ElfFile::Read(uint64_t offset, T *value) const {
  if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
  memcpy(value, bytes_.data() + offset, sizeof(T));
  return true;
}

bool ElfFile::Parse(std::string_view bytes) {
  bytes_ = bytes;
  uint64_t table = 0;
  uint16_t entry_bytes = 0, count = 0, names = 0;
  if (bytes.substr(0, 6) != std::string_view("\177ELF\2\1", 6)) return false;
  if (!Read(0x28, &table) || !Read(0x3a, &entry_bytes) || !Read(0x3c, &count) || !Read(0x3e, &names)) return false;
  std::vector<uint32_t> name_offsets;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = table + i * entry_bytes;
    uint32_t name, type, link;
    uint64_t flags, offset, size;
    if (!Read(at, &name) || !Read(at + 4, &type) || !Read(at + 8, &flags) || !Read(at + 24, &offset)) return false;
    uint64_t address;
    if (!Read(at + 32, &size) || !Read(at + 40, &link) || !Read(at + 16, &address)) return false;
    const bool loaded = (flags & kAllocated) && !(flags & kThreadLocal);
    if (loaded && size < (uint64_t{1} << 40)) image_bytes_ = std::max(image_bytes_, address + size);
    if ((flags & kThreadLocal) && size < (uint64_t{1} << 40) && address < (uint64_t{1} << 62)) {
      thread_local_start_ = thread_local_end_ ? std::min(thread_local_start_, address) : address;
      thread_local_end_ = std::max(thread_local_end_, address + size);
    }
    const bool present = type != kNoBits && !(flags & kCompressed);
    if (present && (offset > bytes.size() || size > bytes.size() - offset)) return false;
    sections_.push_back({{}, present ? bytes.substr(offset, size) : std::string_view(), type, link});
    name_offsets.push_back(name);
  }
  if (names >= sections_.size()) return false;
  for (size_t i = 0; i < sections_.size(); ++i) sections_[i].name = Text(sections_[names].contents, name_offsets[i]);
  for (const Header &header : sections_)
    if ((header.type == kSymbolTable || header.type == kDynamicSymbols) && !ReadSymbols(header)) return false;
  return true;
}

bool ElfFile::ReadSymbols(const Header &header) {
  if (header.link >= sections_.size()) return false;
  const std::string_view names = sections_[header.link].contents;
  constexpr size_t kEntryBytes = 24;
  for (size_t at = 0; at + kEntryBytes <= header.contents.size(); at += kEntryBytes) {
    const char *entry = header.contents.data() + at;
    uint32_t name;
    Symbol symbol;
    memcpy(&name, entry, 4);
    memcpy(&symbol.value, entry + 8, 8);
    memcpy(&symbol.bytes, entry + 16, 8);
    uint16_t section;
    memcpy(&section, entry + 6, 2);
    const int type = entry[4] & 15;
    if (header.type == kDynamicSymbols) {  // the loader's: what it defines stands in the other table, too
      if (section == 0 && name) undefined_.push_back(Text(names, name));
      continue;
    }
    if (section == 0 || (type != 1 && type != 2 && type != 6)) continue;
    symbol.kind = type == 1 ? Symbol::kObject : type == 2 ? Symbol::kFunction : Symbol::kThreadLocal;
    symbol.name = Text(names, name);
    symbols_.push_back(symbol);
  }
  return true;
}

uint64_t ElfFile::functions_at_load() const {
  uint64_t count = 0;
  for (const Header &header : sections_) {
    const auto entries = [&](size_t bytes, auto visit) {
      for (size_t at = 0; at + bytes <= header.contents.size(); at += bytes) {
        uint64_t fields[3] = {};
        memcpy(fields, header.contents.data() + at, bytes);
        visit(fields);
      }
    };
    if (header.type == kDynamic)
      entries(16, [&](const uint64_t *entry) {
        if (entry[0] == 12 || entry[0] == 13) ++count;                                        // DT_INIT, DT_FINI
        if (entry[0] == 27 || entry[0] == 28 || entry[0] == 33) count += (entry[1] + 7) / 8;  // arrays' bytes
      });
    if (header.type == kRelocations)
      entries(24, [&](const uint64_t *entry) {
        const uint32_t kind = static_cast<uint32_t>(entry[1]);
        if (kind == 37 || kind == 1032) ++count;  // R_X86_64_IRELATIVE, R_AARCH64_IRELATIVE
      });
  }
  return count;
}

std::string_view ElfFile::Section(std::string_view name) const {
  for (const Header &header : sections_)
    if (header.name == name) return header.contents;
  return {};
}

}  // namespace pygpukit::sim
