// symbols.cpp: images, kernels and variables, which are loaded when they are first used.
#include "program/symbols.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "program/allocations.h"
#include "program/copies.h"
#include "program/report.h"

namespace pk::program {
namespace {

struct Symbols {
  std::map<std::string, std::string> images;                   // by unit
  std::map<std::pair<std::string, int>, uint64_t> modules;     // by unit and device
  std::map<std::pair<std::string, uint64_t>, Symbol> symbols;  // by library and offset
  std::unordered_map<const void *, Symbol *> found;            // by address
  std::map<std::string, uint64_t> bases;                       // where libraries lie
  std::map<std::string, const char *> files;                   // names that places point to
  std::vector<std::pair<const void *, Symbol *>> managed;      // variables that the host sees, of loaded images
};
Symbols &symbols() {
  static Symbols &only = *new Symbols;
  return only;
}

cudaError_t load_variable(Symbol &symbol, uint64_t module, Symbol::Loaded *loaded);

// Kernels may use any of them, so all are looked up with their image.
cudaError_t load_managed(const std::string &unit, uint64_t module) {
  for (auto &[place, symbol] : symbols().symbols) {
    const auto base = symbols().bases.find(place.first);
    if (symbol.kind != SymbolKind::kManaged || symbol.unit != unit || base == symbols().bases.end()) continue;
    Symbol::Loaded made;
    if (const cudaError_t failed = load_variable(symbol, module, &made); failed != cudaSuccess) return failed;
    symbol.loaded[thread().device] = made;
    const void *const shadow = reinterpret_cast<const void *>(base->second + place.second);
    const auto known = std::find_if(symbols().managed.begin(), symbols().managed.end(),
                                    [shadow](const auto &one) { return one.first == shadow; });
    if (known == symbols().managed.end()) symbols().managed.emplace_back(shadow, &symbol);
  }
  return cudaSuccess;
}

cudaError_t load_module(const std::string &unit, uint64_t *module) {
  const auto key = std::make_pair(unit, thread().device);
  if (const auto at = symbols().modules.find(key); at != symbols().modules.end()) {
    *module = at->second;
    return cudaSuccess;
  }
  const auto image = symbols().images.find(unit);
  if (image == symbols().images.end())
    return fail(cudaErrorInvalidKernelImage, "nobody compiled the device code of " + unit);
  const cudaError_t failed = check(driver().module_load(image->second.data(), image->second.size(), module));
  if (failed != cudaSuccess) return failed;
  symbols().modules[key] = *module;
  return load_managed(unit, *module);
}

// The whole of a variable lies at an address of the device, which is memory like any other.
cudaError_t load_variable(Symbol &symbol, uint64_t module, Symbol::Loaded *loaded) {
  uint64_t bytes = 0;
  const cudaError_t failed = check(driver().module_global(module, symbol.name.c_str(), &loaded->function, &bytes));
  if (failed != cudaSuccess) return failed;
  symbol.bytes = bytes;
  add_allocation({Kind::kSymbol, loaded->function, bytes, 0, 0, thread().device, symbol.place, 0});
  return cudaSuccess;
}

cudaError_t load_kernel(const Symbol &symbol, uint64_t module, Symbol::Loaded *loaded) {
  const cudaError_t failed = check(driver().module_function(module, symbol.name.c_str(), &loaded->function));
  if (failed != cudaSuccess) return failed;
  pk_function_info info;
  if (const cudaError_t bad = check(driver().function_info(loaded->function, &info)); bad != cudaSuccess) return bad;
  uint64_t offset = 0, bytes = 0;
  for (uint32_t i = 0; static_cast<int32_t>(i) < info.param_count; ++i) {
    if (const cudaError_t bad = check(driver().function_param(loaded->function, i, &offset, &bytes));
        bad != cudaSuccess)
      return bad;
    loaded->parameter_bytes.push_back(bytes);
  }
  return cudaSuccess;
}

cudaError_t find_variable(const void *shadow, Symbol **symbol, uint64_t *address) {
  *symbol = find_symbol(shadow);
  if (*symbol == nullptr || (*symbol)->kind == SymbolKind::kKernel)
    return fail(cudaErrorInvalidSymbol, "it is no __device__ or __constant__ variable of the program");
  const Symbol::Loaded *loaded = nullptr;
  const cudaError_t failed = load(**symbol, &loaded);
  if (failed == cudaSuccess) *address = loaded->function;
  return failed;
}

cudaError_t move_managed(uint64_t stream, bool to_device) {
  for (const auto &[shadow, symbol] : symbols().managed) {
    const auto loaded = symbol->loaded.find(thread().device);
    if (loaded == symbol->loaded.end()) continue;
    void *const host = const_cast<void *>(shadow);
    const uint64_t device = loaded->second.function;
    cudaError_t failed = cudaSuccess;
    if (state().simulated) {
      std::memcpy(to_device ? reinterpret_cast<void *>(device) : host,
                  to_device ? host : reinterpret_cast<const void *>(device), symbol->bytes);
    } else {
      failed = check(to_device ? driver().copy_h2d(device, host, symbol->bytes, stream)
                               : driver().copy_d2h(host, device, symbol->bytes, stream));
    }
    if (failed != cudaSuccess) return failed;
  }
  return cudaSuccess;
}

}  // namespace

void add_image(const std::string &unit, const std::string &image) { symbols().images[unit] = image; }

void add_symbol(const std::string &library, uint64_t offset, Symbol symbol) {
  auto &file = symbols().files[symbol.place.file];
  if (file == nullptr) file = strdup(symbol.place.file);
  symbol.place.file = file;
  symbols().symbols[{library, offset}] = std::move(symbol);
}

Symbol *find_symbol(const void *address) {
  const auto [at, is_new] = symbols().found.try_emplace(address, nullptr);
  if (!is_new) return at->second;
  Dl_info info;
  if (dladdr(address, &info) == 0) return nullptr;
  const uint64_t base = reinterpret_cast<uint64_t>(info.dli_fbase);
  const uint64_t offset = reinterpret_cast<uint64_t>(address) - base;
  symbols().bases[info.dli_fname] = base;
  const auto symbol = symbols().symbols.find({info.dli_fname, offset});
  if (symbol == symbols().symbols.end()) return nullptr;
  at->second = &symbol->second;
  return at->second;
}

cudaError_t load(Symbol &symbol, const Symbol::Loaded **loaded) {
  const auto at = symbol.loaded.find(thread().device);
  if (at != symbol.loaded.end()) {
    *loaded = &at->second;
    return cudaSuccess;
  }
  uint64_t module = 0;
  Symbol::Loaded made;
  cudaError_t failed = load_module(symbol.unit, &module);
  if (failed == cudaSuccess)
    failed =
        symbol.kind == SymbolKind::kKernel ? load_kernel(symbol, module, &made) : load_variable(symbol, module, &made);
  if (failed == cudaSuccess) *loaded = &(symbol.loaded[thread().device] = std::move(made));
  return failed;
}

cudaError_t send_managed(uint64_t stream) { return move_managed(stream, true); }
cudaError_t fetch_managed(uint64_t stream) { return move_managed(stream, false); }

uint64_t device_address(uint64_t address) {
  for (const auto &[shadow, symbol] : symbols().managed) {
    const uint64_t start = reinterpret_cast<uint64_t>(shadow);
    const auto loaded = symbol->loaded.find(thread().device);
    if (address >= start && address - start < symbol->bytes && loaded != symbol->loaded.end())
      return loaded->second.function + (address - start);
  }
  return address;
}

void forget_symbols() {
  for (const auto &[key, module] : symbols().modules)
    if (key.second == thread().device) driver().module_unload(module);
  std::erase_if(symbols().modules, [](const auto &one) { return one.first.second == thread().device; });
  for (auto &[key, symbol] : symbols().symbols) symbol.loaded.erase(thread().device);
}

// ---- the calls

cudaError_t pk_symbol_address(void **address, const void *shadow) {
  Symbol *symbol = nullptr;
  uint64_t at = 0;
  const cudaError_t failed = find_variable(shadow, &symbol, &at);
  if (failed == cudaSuccess) *address = reinterpret_cast<void *>(at);
  return failed;
}

cudaError_t pk_symbol_size(size_t *bytes, const void *shadow) {
  Symbol *symbol = nullptr;
  uint64_t at = 0;
  const cudaError_t failed = find_variable(shadow, &symbol, &at);
  if (failed == cudaSuccess) *bytes = symbol->bytes;
  return failed;
}

cudaError_t pk_to_symbol_async(const void *shadow, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                               cudaStream_t stream) {
  Symbol *symbol = nullptr;
  uint64_t at = 0;
  if (const cudaError_t failed = find_variable(shadow, &symbol, &at); failed != cudaSuccess) return failed;
  if (offset > symbol->bytes || bytes > symbol->bytes - offset)
    return fail(cudaErrorInvalidValue, std::to_string(offset) + " + " + std::to_string(bytes) +
                                           " bytes are more than " + symbol->name + " has, " +
                                           std::to_string(symbol->bytes));
  if (symbol->kind == SymbolKind::kManaged) {
    std::memcpy(const_cast<char *>(static_cast<const char *>(shadow)) + offset, from, bytes);
    return cudaSuccess;
  }
  return cudaMemcpyAsync(reinterpret_cast<void *>(at + offset), from, bytes, kind, stream);
}

cudaError_t pk_to_symbol(const void *shadow, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  const cudaError_t failed = pk_to_symbol_async(shadow, from, bytes, offset, kind, nullptr);
  return failed != cudaSuccess ? failed : wait_stream(*find_stream(nullptr));
}

cudaError_t pk_from_symbol_async(void *to, const void *shadow, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  Symbol *symbol = nullptr;
  uint64_t at = 0;
  if (const cudaError_t failed = find_variable(shadow, &symbol, &at); failed != cudaSuccess) return failed;
  if (offset > symbol->bytes || bytes > symbol->bytes - offset)
    return fail(cudaErrorInvalidValue, std::to_string(offset) + " + " + std::to_string(bytes) +
                                           " bytes are more than " + symbol->name + " has, " +
                                           std::to_string(symbol->bytes));
  if (symbol->kind == SymbolKind::kManaged) {
    std::memcpy(to, static_cast<const char *>(shadow) + offset, bytes);
    return cudaSuccess;
  }
  return cudaMemcpyAsync(to, reinterpret_cast<void *>(at + offset), bytes, kind, stream);
}

cudaError_t pk_from_symbol(void *to, const void *shadow, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  const cudaError_t failed = pk_from_symbol_async(to, shadow, bytes, offset, kind, nullptr);
  return failed != cudaSuccess ? failed : wait_stream(*find_stream(nullptr));
}

}  // namespace pk::program
