// lines.cpp: the line number programs of DWARF 2 to 4 (images are compiled with -gdwarf-4).
#include "sim/lines.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// Reads past the end give zeros and set bad.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool bad = false;
  bool empty() const { return at_ >= bytes_.size(); }

  template <class T>
  T Fixed() {
    T value = 0;
    if (sizeof(T) > bytes_.size() - at_) {
      at_ = bytes_.size();
      bad = true;
    } else {
      memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  uint64_t Unsigned() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
  int64_t Signed() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 127u} << shift;
      shift += 7;
      if (byte < 128) return static_cast<int64_t>(byte & 64 && shift < 64 ? value | ~uint64_t{0} << shift : value);
    }
  }
  std::string_view String() {
    const std::string_view rest = bytes_.substr(at_);
    const std::string_view text = rest.substr(0, rest.find('\0'));
    at_ += text.size() + 1;
    if (at_ > bytes_.size()) at_ = bytes_.size(), bad = true;
    return text;
  }
  std::string_view Take(uint64_t bytes) {
    if (bytes > bytes_.size() - at_) bytes = bytes_.size() - at_, bad = true;
    const std::string_view taken = bytes_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

struct Best {
  uint64_t address = 0;
  std::string_view file;
  int64_t line = 0;
};

// Some compilers give folders with the name.
bool Ours(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  return file.substr(0, 3) == "pk_" || file.substr(0, 5) == "cuda_" || file.substr(0, 1) == "<";
}

// Where the function that holds the address begins; 0 if the file does not say.
uint64_t FunctionStart(const ElfFile &file, uint64_t address) {
  uint64_t start = 0;
  for (const Symbol &symbol : file.symbols())
    if (symbol.kind == Symbol::kFunction && symbol.value <= address) start = std::max(start, symbol.value);
  return start;
}

// Runs one unit's program and keeps the last row at or before the address and of its function, if the row's sequence
// covers the address.
void RunProgram(std::string_view unit, uint64_t function, uint64_t address, Best *best) {
  Reader header(unit);
  const uint16_t version = header.Fixed<uint16_t>();
  if (version < 2 || version > 4) return;
  Reader body(header.Take(header.Fixed<uint32_t>()));
  const uint8_t unit_bytes = body.Fixed<uint8_t>();
  if (version == 4) body.Fixed<uint8_t>();  // operations in an instruction: 1 on every machine we know
  body.Fixed<uint8_t>();                    // whether rows start as statements
  const int8_t line_base = body.Fixed<int8_t>();
  const uint8_t line_range = body.Fixed<uint8_t>(), opcode_base = body.Fixed<uint8_t>();
  if (line_range == 0 || opcode_base == 0) return;
  uint8_t operands[256] = {};
  for (int opcode = 1; opcode < opcode_base; ++opcode) operands[opcode] = body.Fixed<uint8_t>();
  while (!body.bad && !body.String().empty()) {  // directories
  }
  std::vector<std::string_view> files(1);
  while (!body.bad) {
    const std::string_view file = body.String();
    if (file.empty()) break;
    files.push_back(file);
    for (int field = 0; field < 3; ++field) body.Unsigned();
  }

  Best candidate;
  bool passed = false;  // this sequence has a row beyond the address
  uint64_t at = 0, start = ~uint64_t{0};
  uint64_t file = 1;
  int64_t line = 1;
  const auto row = [&] {
    if (start == ~uint64_t{0}) start = at;
    if (at > address) {
      passed = true;
    } else if (!passed && at >= function && file < files.size() && !Ours(files[file])) {
      candidate = {at, files[file], line};
    }
  };
  const auto end_sequence = [&] {
    if (passed && start <= address && candidate.line && candidate.address >= best->address) *best = candidate;
    candidate = {};
    passed = false;
    at = 0, start = ~uint64_t{0}, file = 1, line = 1;
  };
  Reader program(header.Take(~uint64_t{0}));
  program.bad = false;
  while (!program.empty()) {
    const uint8_t opcode = program.Fixed<uint8_t>();
    if (opcode >= opcode_base) {
      const unsigned step = opcode - opcode_base;
      at += step / line_range * unit_bytes;
      line += line_base + static_cast<int>(step % line_range);
      row();
    } else if (opcode == 0) {
      Reader extended(program.Take(program.Unsigned()));
      const uint8_t what = extended.Fixed<uint8_t>();
      if (what == 1) row(), end_sequence();
      if (what == 2) at = extended.Fixed<uint64_t>();
    } else if (opcode == 1) {
      row();
    } else if (opcode == 2) {
      at += program.Unsigned() * unit_bytes;
    } else if (opcode == 3) {
      line += program.Signed();
    } else if (opcode == 4) {
      file = program.Unsigned();
    } else if (opcode == 8) {
      at += (255u - opcode_base) / line_range * unit_bytes;
    } else if (opcode == 9) {
      at += program.Fixed<uint16_t>();
    } else {
      for (int i = 0; i < operands[opcode]; ++i) program.Unsigned();
    }
  }
}

}  // namespace

std::string SourceLine(const ElfFile &file, uint64_t address, bool same_function) {
  Best best;
  const uint64_t function = same_function ? FunctionStart(file, address) : 0;
  Reader units(file.Section(".debug_line"));
  while (!units.empty() && !units.bad) RunProgram(units.Take(units.Fixed<uint32_t>()), function, address, &best);
  return best.line ? Format("%.*s:%lld", static_cast<int>(best.file.size()), best.file.data(),
                            static_cast<long long>(best.line))
                   : "";
}

}  // namespace pygpukit::sim
