// module.cpp: real CUBINs read for their kernels and parameters; launches are recorded in the log, not run.
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "mock.h"

namespace mock {

namespace {

struct Parameter {
  size_t offset;
  size_t bytes;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  Handle module;
};

struct Module {
  std::map<std::string, std::vector<Parameter>> kernels;
  std::map<std::string, std::vector<uint8_t>> variables;  // zeros: initial values are not read
};

struct Link {
  char *log;
  size_t log_bytes;
  std::vector<char> cubin;
};

std::mutex g_mutex;
std::map<Handle, Link> g_links;
std::map<Handle, Module> g_modules;
std::map<Handle, Function> g_functions;
Handle g_next = 0x9000;

// .nv.info.NAME: records of (format, attribute, value); attribute 0x17 describes one parameter.
std::vector<Parameter> parameters_of(const uint8_t *info, size_t bytes) {
  std::map<uint16_t, Parameter> by_ordinal;
  for (size_t at = 0; at + 4 <= bytes;) {
    uint16_t size = 0;
    std::memcpy(&size, info + at + 2, sizeof(size));
    if (info[at] != 4) size = 0;  // other formats keep their value in the header
    if (info[at] == 4 && info[at + 1] == 0x17 && size == 12) {
      uint16_t ordinal = 0, offset = 0;
      uint32_t packed = 0;
      std::memcpy(&ordinal, info + at + 8, sizeof(ordinal));
      std::memcpy(&offset, info + at + 10, sizeof(offset));
      std::memcpy(&packed, info + at + 12, sizeof(packed));
      by_ordinal[ordinal] = {offset, packed >> 18};
    }
    at += 4 + size;
  }
  std::vector<Parameter> parameters;
  for (const auto &[ordinal, parameter] : by_ordinal) parameters.push_back(parameter);
  return parameters;
}

Module read_image(const uint8_t *image) {
  Module module;
  const auto *header = reinterpret_cast<const Elf64_Ehdr *>(image);
  const auto *sections = reinterpret_cast<const Elf64_Shdr *>(image + header->e_shoff);
  const char *names = reinterpret_cast<const char *>(image + sections[header->e_shstrndx].sh_offset);
  for (int i = 0; i < header->e_shnum; ++i) {
    const char *name = names + sections[i].sh_name;
    const uint8_t *content = image + sections[i].sh_offset;
    if (std::strncmp(name, ".nv.info.", 9) == 0) module.kernels[name + 9] = parameters_of(content, sections[i].sh_size);
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto *symbols = reinterpret_cast<const Elf64_Sym *>(content);
    const char *symbol_names = reinterpret_cast<const char *>(image + sections[sections[i].sh_link].sh_offset);
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (ELF64_ST_TYPE(symbols[k].st_info) != STT_OBJECT || symbols[k].st_shndx == SHN_UNDEF) continue;
      module.variables[symbol_names + symbols[k].st_name].resize(symbols[k].st_size);
    }
  }
  return module;
}

// The parameters' bytes as hexadecimal, in their layout's order.
std::string hexadecimal(const std::vector<Parameter> &parameters, void **values) {
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i > 0) text += ',';
    for (size_t k = 0; k < parameters[i].bytes; ++k) {
      char byte[3];
      std::snprintf(byte, sizeof(byte), "%02x", static_cast<const uint8_t *>(values[i])[k]);
      text += byte;
    }
  }
  return text;
}

}  // namespace

Result cuModuleLoadDataEx(Handle *module, const void *image, uint32_t count, uint32_t *options, void **values) {
  MOCK_CALL(cuModuleLoadDataEx, "options %u", count);
  MOCK_CONTEXT();
  if (count != 2 || options[0] != pk::cuda::kJitErrorLogBuffer || options[1] != pk::cuda::kJitErrorLogBufferBytes)
    return 1;
  if (reinterpret_cast<size_t>(values[1]) == 0) return 1;
  std::lock_guard<std::mutex> lock(g_mutex);
  *module = ++g_next;
  g_modules[*module] = read_image(static_cast<const uint8_t *>(image));
  return 0;
}

Result cuLinkCreate(uint32_t count, uint32_t *options, void **values, Handle *link) {
  MOCK_CALL(cuLinkCreate, "options %u", count);
  MOCK_CONTEXT();
  if (count != 2 || options[0] != pk::cuda::kJitErrorLogBuffer || options[1] != pk::cuda::kJitErrorLogBufferBytes)
    return 1;
  std::lock_guard<std::mutex> lock(g_mutex);
  *link = ++g_next;
  g_links[*link] = {static_cast<char *>(values[0]), reinterpret_cast<size_t>(values[1]), {}};
  return 0;
}

// Refuses what says "nonsense", with a log.
Result cuLinkAddData(Handle link, uint32_t type, const void *data, size_t bytes, const char *, uint32_t, uint32_t *,
                     void **) {
  MOCK_CALL(cuLinkAddData, "%lu type %u bytes %zu", link, type, bytes);
  if (const char *path = std::getenv("MOCK_CUDA_LINK_UNTIL")) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (access(path, F_OK) != 0) {
      if (std::chrono::steady_clock::now() > until) return 999;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_links.find(link);
  if (found == g_links.end() || type != pk::cuda::kJitInputPtx) return 1;
  if (std::strstr(static_cast<const char *>(data), "nonsense") == nullptr) return 0;
  std::snprintf(found->second.log, found->second.log_bytes, "ptxas: Unexpected 'nonsense'");
  return 218;
}

Result cuLinkComplete(Handle link, void **cubin, size_t *bytes) {
  MOCK_CALL(cuLinkComplete, "%lu", link);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_links.find(link);
  const char *path = std::getenv("MOCK_CUDA_CUBIN");
  if (found == g_links.end() || path == nullptr) return 1;
  std::ifstream file(path, std::ios::binary);
  found->second.cubin.assign(std::istreambuf_iterator<char>(file), {});
  *cubin = found->second.cubin.data();
  *bytes = found->second.cubin.size();
  return 0;
}

// What the link gave is of no use afterwards.
Result cuLinkDestroy(Handle link) {
  MOCK_CALL(cuLinkDestroy, "%lu", link);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_links.find(link);
  if (found == g_links.end()) return 400;
  std::fill(found->second.cubin.begin(), found->second.cubin.end(), '\xdb');
  g_links.erase(found);
  return 0;
}

Result cuModuleUnload(Handle module) {
  MOCK_CALL(cuModuleUnload, "%lu", module);
  std::lock_guard<std::mutex> lock(g_mutex);
  std::erase_if(g_functions, [&](const auto &entry) { return entry.second.module == module; });
  return g_modules.erase(module) == 1 ? 0 : 400;
}

Result cuModuleGetFunction(Handle *function, Handle module, const char *name) {
  MOCK_CALL(cuModuleGetFunction, "%s", name);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto loaded = g_modules.find(module);
  if (loaded == g_modules.end()) return 400;
  const auto kernel = loaded->second.kernels.find(name);
  if (kernel == loaded->second.kernels.end()) return 500;
  *function = ++g_next;
  g_functions[*function] = {name, kernel->second, module};
  return 0;
}

Result cuModuleGetGlobal(Address *address, size_t *bytes, Handle module, const char *name) {
  MOCK_CALL(cuModuleGetGlobal, "%s", name);
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto loaded = g_modules.find(module);
  if (loaded == g_modules.end()) return 400;
  const auto variable = loaded->second.variables.find(name);
  if (variable == loaded->second.variables.end()) return 500;
  *address = reinterpret_cast<Address>(variable->second.data());
  *bytes = variable->second.size();
  add_memory(*address, *bytes);
  return 0;
}

Result cuFuncGetAttribute(int32_t *value, int32_t attribute, Handle) {
  *value = 100 + attribute;  // any number, another for each
  if (attribute == pk::cuda::kFunctionMaxThreads) *value = 1024;
  if (attribute == pk::cuda::kFunctionBinaryVersion) *value = device_sm(0);
  return 0;
}

Result cuFuncSetAttribute(Handle function, int32_t attribute, int32_t value) {
  MOCK_CALL(cuFuncSetAttribute, "%lu attribute %d value %d", function, attribute, value);
  return 0;
}

Result cuFuncGetParamInfo(Handle function, size_t index, size_t *offset, size_t *bytes) {
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_functions.find(function);
  if (found == g_functions.end() || index >= found->second.parameters.size()) return 1;
  *offset = found->second.parameters[index].offset;
  *bytes = found->second.parameters[index].bytes;
  return 0;
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int32_t *blocks, Handle, int32_t block_threads, size_t) {
  MOCK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, "%d", block_threads);
  *blocks = 2048 / std::max(block_threads, 1);
  return 0;
}

Result cuLaunchKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                      uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, Handle stream, void **params,
                      void **) {
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_functions.find(function);
  MOCK_CONTEXT();
  if (found == g_functions.end()) return 400;
  MOCK_CALL(cuLaunchKernel, "%s grid %u,%u,%u block %u,%u,%u shared %u stream %lu params %s",
            found->second.name.c_str(), grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
            hexadecimal(found->second.parameters, params).c_str());
  return 0;
}

Result cuLaunchKernelEx(const LaunchConfig *config, Handle function, void **params, void **) {
  std::lock_guard<std::mutex> lock(g_mutex);
  const auto found = g_functions.find(function);
  MOCK_CONTEXT();
  if (found == g_functions.end()) return 400;
  std::string attributes;
  for (uint32_t i = 0; i < config->attribute_count; ++i) {
    const auto &attribute = config->attributes[i];
    attributes += " " + std::to_string(attribute.id) + ":";
    for (int k = 0; k < 3; ++k) attributes += (k > 0 ? "/" : "") + std::to_string(attribute.value.cluster[k]);
  }
  MOCK_CALL(cuLaunchKernelEx, "%s grid %u,%u,%u block %u,%u,%u shared %u stream %lu params %s attributes%s",
            found->second.name.c_str(), config->grid[0], config->grid[1], config->grid[2], config->block[0],
            config->block[1], config->block[2], config->shared_bytes, config->stream,
            hexadecimal(found->second.parameters, params).c_str(), attributes.c_str());
  return 0;
}

Result cuLaunchHostFunc(Handle stream, HostFunction function, void *argument) {
  MOCK_CALL(cuLaunchHostFunc, "stream %lu", stream);
  MOCK_CONTEXT();
  std::thread(function, argument).join();  // off the calling thread, and before anything later on the stream
  return 0;
}

}  // namespace mock
