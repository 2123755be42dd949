// module.cpp: loading images and answering questions about them.
#include "sim/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "sim/core.h"
#include "sim/lines.h"
#include "sim/pages.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// What may stand before the name of a variable: plain, or inside namespaces; static ones get an L.
std::vector<std::string> MangledVariable(std::string name) {
  if (!name.empty() && name[0] == '&') name.erase(0, 1);
  std::vector<std::string> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find("::", at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    at = end + 2;
  }
  if (parts.empty()) return {};
  const std::string last = Format("%zu%s", parts.back().size(), parts.back().c_str());
  if (parts.size() == 1) return {parts[0], "_ZL" + last};
  std::string spaces = "_ZN";
  for (size_t i = 0; i + 1 < parts.size(); ++i) spaces += Format("%zu%s", parts[i].size(), parts[i].c_str());
  return {spaces + last + "E", spaces + "L" + last + "E"};
}

// The built-in variables and what the headers keep for themselves share the thread-local block with __shared__ arrays.
bool OwnVariable(std::string_view name) {
  for (const char *own : {"pk_sim_", "9threadIdx", "8blockIdx", "8blockDim", "7gridDim"})
    if (name.substr(0, 3) == "_ZL" && name.find(own) != std::string_view::npos) return true;
  return false;
}

std::string NoWhitespace(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c != ' ' && c != '\t' && c != '\n') result += c;
  return result;
}

}  // namespace

pk_status Module::Load(const void *image, uint64_t bytes, Memory *memory, std::shared_ptr<Module> *module) {
  auto loaded = std::make_shared<Module>();
  loaded->memory_ = memory;
  loaded->bytes_.assign(static_cast<const char *>(image), bytes);
  if (!loaded->file_.Parse(loaded->bytes_))
    return Fail(PK_ERROR_INVALID_IMAGE,
                "the image is not one made by pygpukit.jit.simulator for this machine: it is not a 64-bit ELF file, or "
                "damaged");
  std::string why;
  loaded->handle_ = LoadImage(image, bytes, &why);
  if (!loaded->handle_) return Fail(PK_ERROR_INVALID_IMAGE, "the image cannot be loaded: " + why);
  const auto *table = static_cast<const pk_sim_image *>(dlsym(loaded->handle_, "pk_sim_image_v1"));
  Dl_info info;
  if (!table || !dladdr(table, &info))
    return Fail(PK_ERROR_INVALID_IMAGE, "the image was not made by pygpukit.jit.simulator: it has no pk_sim_image_v1");
  if (table->abi != PK_SIM_ABI || table->bytes != sizeof(pk_sim_image))
    return Fail(PK_ERROR_INVALID_IMAGE,
                Format("the image was made for version %u of the simulator, this is version %u: "
                       "compile it again",
                       table->abi, PK_SIM_ABI));
  loaded->image_ = table;
  loaded->base_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
  table->bind(&KernelApi());
  if (pk_status bad = loaded->CheckShared()) return bad;
  *module = std::move(loaded);
  return PK_OK;
}

Module::~Module() {
  for (uint64_t address : ranges_) memory_->RemoveModuleRange(address);
  if (handle_) dlclose(handle_);
}

pk_status Module::CheckShared() {
  for (unsigned i = 0; i < image_->kernel_count; ++i) {
    const unsigned bytes = StaticSharedBytes(*image_->kernels[i]);
    if (bytes > kSharedBytes)
      return Fail(
          PK_ERROR_INVALID_IMAGE,
          Format("kernel %s uses too much shared data: %u bytes of __shared__ arrays, at most %u are allowed (use "
                 "extern __shared__ memory for more)",
                 image_->kernels[i]->name, bytes, kSharedBytes));
  }
  return PK_OK;
}

std::string_view Module::MangledName(const void *address) const {
  const uint64_t value = reinterpret_cast<uintptr_t>(address) - base_;
  for (const Symbol &symbol : file_.symbols())
    if (symbol.kind == Symbol::kFunction && symbol.value == value) return symbol.name;
  return {};
}

// Its own __shared__ arrays, and those of functions and namespaces, which it may use; not those of other kernels.
unsigned Module::StaticSharedBytes(const pk_sim_kernel &kernel) const {
  const auto inside = [this](const pk_sim_kernel &one) {
    const std::string_view name = MangledName(reinterpret_cast<const void *>(one.address));
    return name.substr(0, 2) == "_Z" ? Format("_ZZ%sE", std::string(name.substr(2)).c_str())
                                     : Format("_ZZ%zu%sE", name.size(), std::string(name).c_str());
  };
  uint64_t bytes = 0;
  for (const Symbol &symbol : file_.symbols()) {
    if (symbol.kind != Symbol::kThreadLocal || OwnVariable(symbol.name)) continue;
    bool foreign = false;
    for (unsigned i = 0; i < image_->kernel_count; ++i) {
      const std::string prefix = inside(*image_->kernels[i]);
      if (image_->kernels[i]->address != kernel.address && symbol.name.substr(0, prefix.size()) == prefix)
        foreign = true;
    }
    if (!foreign) bytes += symbol.bytes;
  }
  return static_cast<unsigned>(std::min<uint64_t>(bytes, 0xffffffffu));
}

pk_status Module::FindFunction(const char *name, std::shared_ptr<Function> *function) {
  const pk_sim_kernel *found = nullptr;
  std::string known;
  for (unsigned i = 0; i < image_->kernel_count; ++i) {
    const pk_sim_kernel *kernel = image_->kernels[i];
    if (NoWhitespace(kernel->name) == NoWhitespace(name)) found = kernel;
    known += (i ? ", " : "") + std::string(kernel->name);
  }
  if (!found)
    return Fail(PK_ERROR_NOT_FOUND,
                Format("the module has no kernel \"%s\"; it has: %s", name, known.empty() ? "none" : known.c_str()));
  *function = std::make_shared<Function>();
  (*function)->module = shared_from_this();
  (*function)->kernel = found;
  (*function)->static_shared_bytes = StaticSharedBytes(*found);
  (*function)->dynamic_limit_bytes = kSharedBytes - (*function)->static_shared_bytes;
  return PK_OK;
}

pk_status Module::FindGlobal(const char *name, uint64_t *address, uint64_t *bytes) {
  for (const std::string &mangled : MangledVariable(name))
    for (const Symbol &symbol : file_.symbols())
      if (symbol.kind == Symbol::kObject && symbol.name == mangled) {
        *address = base_ + symbol.value;
        *bytes = symbol.bytes;
        memory_->AddModuleRange(*address, *bytes);
        ranges_.push_back(*address);
        return PK_OK;
      }
  return Fail(PK_ERROR_NOT_FOUND, Format("the module has no __device__ or __constant__ variable \"%s\"", name));
}

std::string Module::SourceLine(uintptr_t program_counter) const {
  return program_counter >= base_ ? sim::SourceLine(file_, program_counter - base_) : "";
}

pk_status Function::Info(pk_function_info *info) const {
  *info = {};
  info->max_threads_per_block = static_cast<int32_t>(kernel->max_threads);
  info->static_shared_bytes = static_cast<int32_t>(static_shared_bytes);
  info->param_count = static_cast<int32_t>(kernel->parameter_count);
  return PK_OK;
}

pk_status Function::Parameter(uint32_t index, uint64_t *offset, uint64_t *bytes) const {
  if (index >= kernel->parameter_count)
    return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s has %u parameters: there is no number %u", kernel->name,
                                               kernel->parameter_count, static_cast<unsigned>(index)));
  uint64_t end = 0;
  for (uint32_t i = 0; i <= index; ++i) {
    const uint64_t align = kernel->parameter_align[i];
    *offset = (end + align - 1) / align * align;
    *bytes = kernel->parameter_bytes[i];
    end = *offset + *bytes;
  }
  return PK_OK;
}

pk_status Function::SetDynamicShared(uint32_t bytes) {
  if (bytes > kSharedOptinBytes - static_shared_bytes)
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("kernel %s: %u bytes of dynamic shared memory beside %u static ones exceed the device's %u",
                       kernel->name, static_cast<unsigned>(bytes), static_shared_bytes, kSharedOptinBytes));
  dynamic_limit_bytes = bytes;
  return PK_OK;
}

pk_status Function::Occupancy(uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) const {
  if (block_threads == 0 || block_threads > kernel->max_threads)
    return Fail(PK_ERROR_INVALID_VALUE, Format("kernel %s takes 1 to %u threads a block, not %u", kernel->name,
                                               kernel->max_threads, static_cast<unsigned>(block_threads)));
  const uint32_t rounded = (block_threads + 31) / 32 * 32, shared = static_shared_bytes + shared_bytes + (1 << 10);
  *blocks = static_cast<int32_t>(std::min({2048 / rounded, uint32_t{32}, (kSharedOptinBytes + (1u << 10)) / shared}));
  return PK_OK;
}

}  // namespace pygpukit::sim
