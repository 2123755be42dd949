// symbols.h: the program's kernels and variables: which place of its library stands for which name of which image.
#pragma once
#include <cstdint>
#include <string>

#include "program/state.h"

namespace pk::program {

enum class SymbolKind { kKernel = 0, kDevice = 1, kConstant = 2, kManaged = 3 };

struct Symbol {
  SymbolKind kind;
  std::string name;  // as the image has it
  std::string unit;  // whose image
  uint64_t bytes;    // of a variable
  Place place;
  struct Loaded {
    uint64_t function = 0;  // or the variable's address
    std::vector<uint64_t> parameter_bytes;
  };
  std::map<int, Loaded> loaded;  // by device
};

void add_image(const std::string &unit, const std::string &image);
void add_symbol(const std::string &library, uint64_t offset, Symbol symbol);

// The kernel of a stub, or the variable of a shadow; null where the program has no such.
Symbol *find_symbol(const void *address);
// On the current device: loads what is not loaded yet.
cudaError_t load(Symbol &symbol, const Symbol::Loaded **loaded);

// Managed variables live with the host, and travel to the device and back: on the simulation around each launch.
cudaError_t send_managed(uint64_t stream);
cudaError_t fetch_managed(uint64_t stream);
// Where a managed variable of the host's is on the device; the address itself for others.
uint64_t device_address(uint64_t address);
void forget_symbols();

}  // namespace pk::program
