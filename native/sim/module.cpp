// module.cpp: loading images and answering questions about them.
#include "sim/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/lines.h"
#include "sim/pages.h"
#include "sim/refused.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// "ns::table" or "&ns::table" as its parts.
std::vector<std::string_view> Parts(std::string_view name) {
  if (name.substr(0, 1) == "&") name.remove_prefix(1);
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find("::", at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    at = end + 2;
  }
  return parts;
}

// A variable's symbol (Itanium C++ ABI): plain, or _Z, N for nested ones, and parts with their lengths, static ones
// after an L. Namespaces without a name count for nothing.
bool IsVariable(std::string_view symbol, const std::vector<std::string_view> &parts) {
  if (parts.size() == 1 && symbol == parts[0]) return true;
  if (symbol.substr(0, 2) != "_Z") return false;
  symbol.remove_prefix(symbol.substr(2, 1) == "N" ? 3 : 2);
  size_t matched = 0;
  while (!symbol.empty() && symbol != "E") {
    if (symbol[0] == 'L') symbol.remove_prefix(1);
    size_t length = 0, digits = 0;
    for (; digits < symbol.size() && symbol[digits] >= '0' && symbol[digits] <= '9' && length < symbol.size(); ++digits)
      length = length * 10 + static_cast<size_t>(symbol[digits] - '0');
    if (digits == 0 || length > symbol.size() - digits) return false;
    const std::string_view part = symbol.substr(digits, length);
    symbol.remove_prefix(digits + length);
    if (part == "_GLOBAL__N_1") continue;
    if (matched == parts.size() || part != parts[matched]) return false;
    ++matched;
  }
  return matched == parts.size() && matched > 0;
}

// The built-in variables and what the headers keep for themselves share the thread-local block with __shared__ arrays.
bool OwnVariable(std::string_view name) {
  // Guards that compilers keep beside variables of classes.
  if (name.substr(0, 11) == "pk_sim_own_" || name.substr(0, 4) == "_ZGV" || name.find("__tls_guard") != name.npos)
    return true;
  for (const char *own : {"pk_sim_", "9threadIdx", "8blockIdx", "8blockDim", "7gridDim"})
    if (name.substr(0, 3) == "_ZL" && name.find(own) != std::string_view::npos) return true;
  return false;
}

// What headers keep in shared memory and a device in hardware: barriers by number, what a warp group has read.
bool InHardware(std::string_view name) {
  return name.substr(0, 2) == "_Z" && name.find("pk_ptx_") != std::string_view::npos;
}

// The last name in a mangled one: "As" of "_ZZ4tilePfE2As". Others are their own.
std::string PlainName(std::string_view mangled) {
  std::string last(mangled);
  if (mangled.substr(0, 2) != "_Z") return last;
  for (size_t at = 2; at < mangled.size();) {
    size_t length = 0, digits = at;
    while (digits < mangled.size() && mangled[digits] >= '0' && mangled[digits] <= '9')
      length = length * 10 + static_cast<size_t>(mangled[digits++] - '0');
    if (digits == at || length == 0 || length > mangled.size() - digits) {
      at = digits == at ? at + 1 : digits;
      continue;
    }
    last = std::string(mangled.substr(digits, length));
    at = digits + length;
  }
  return last;
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
  if (const std::string refused = RefusedCode(loaded->file_); !refused.empty())
    return Fail(PK_ERROR_INVALID_IMAGE, "the image is refused: " + refused);
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
  static std::atomic<uint64_t> count{0};
  loaded->serial_ = ++count;
  loaded->end_ = loaded->base_ + loaded->file_.image_bytes();
  loaded->check_ = static_cast<const pk_sim_check_image *>(dlsym(loaded->handle_, "pk_sim_check_v1"));
  if (loaded->check_ && loaded->check_->bytes != sizeof(pk_sim_check_image))
    return Fail(PK_ERROR_INVALID_IMAGE,
                "the checked image was made for another version of the simulator: compile it again");
  if (loaded->check_) loaded->check_->bind(&Checker::Api(loaded->check_->mode));
  if (pk_status bad = loaded->FindAnchor()) return bad;
  if (pk_status bad = loaded->CheckShared()) return bad;
  *module = std::move(loaded);
  return PK_OK;
}

Module::~Module() {
  for (uint64_t address : ranges_) memory_->RemoveModuleRange(address);
  if (handle_) dlclose(handle_);
}

pk_status Module::FindAnchor() {
  for (const Symbol &symbol : file_.symbols()) {
    if (symbol.kind != Symbol::kThreadLocal || symbol.name != "_ZL13pk_sim_anchor") continue;
    if (symbol.value >= file_.thread_local_bytes()) break;
    anchor_ = symbol.value;
    return PK_OK;
  }
  return Fail(PK_ERROR_INVALID_IMAGE, "the image was not made by pygpukit.jit.simulator: it has no pk_sim_anchor");
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
    if (symbol.kind != Symbol::kThreadLocal || OwnVariable(symbol.name) || InHardware(symbol.name)) continue;
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
  const pk_sim_kernel *match = nullptr;
  std::string known;
  for (unsigned i = 0; i < image_->kernel_count; ++i) {
    const pk_sim_kernel *kernel = image_->kernels[i];
    if (NoWhitespace(kernel->name) == NoWhitespace(name)) match = kernel;
    known += (i ? ", " : "") + std::string(kernel->name);
  }
  if (!match)
    return Fail(PK_ERROR_NOT_FOUND,
                Format("the module has no kernel \"%s\"; it has: %s", name, known.empty() ? "none" : known.c_str()));
  *function = std::make_shared<Function>();
  (*function)->module = shared_from_this();
  (*function)->kernel = match;
  (*function)->static_shared_bytes = StaticSharedBytes(*match);
  (*function)->dynamic_limit_bytes = kSharedBytes - (*function)->static_shared_bytes;
  return PK_OK;
}

pk_status Module::FindGlobal(const char *name, uint64_t *address, uint64_t *bytes) {
  const std::vector<std::string_view> parts = Parts(name);
  for (const Symbol &symbol : file_.symbols())
    if (symbol.kind == Symbol::kObject && IsVariable(symbol.name, parts)) {
      *address = base_ + symbol.value;
      *bytes = symbol.bytes;
      if (std::find(ranges_.begin(), ranges_.end(), *address) == ranges_.end()) {
        memory_->AddModuleRange(*address, *bytes);
        ranges_.push_back(*address);
      }
      return PK_OK;
    }
  return Fail(PK_ERROR_NOT_FOUND, Format("the module has no __device__ or __constant__ variable \"%s\"", name));
}

std::vector<Variable> Module::Variables() const {
  std::vector<Variable> match;
  for (const Symbol &symbol : file_.symbols()) {
    const bool shared = symbol.kind == Symbol::kThreadLocal;
    if ((!shared && symbol.kind != Symbol::kObject) || symbol.bytes == 0) continue;
    if (shared && symbol.name.find("pk_sim_anchor") != std::string_view::npos) continue;  // no kernel has a use for it
    const bool own = OwnVariable(symbol.name) || symbol.name.find("pk_sim_") != std::string_view::npos;
    match.push_back({PlainName(symbol.name), shared ? symbol.value : base_ + symbol.value, symbol.bytes, shared, own});
  }
  return match;
}

bool Module::Contains(uintptr_t address) const { return address >= base_ && address < end_; }

bool Module::OwnData(uintptr_t address) const {
  return check_ && address >= reinterpret_cast<uintptr_t>(check_->own) &&
         address < reinterpret_cast<uintptr_t>(check_->own_end);
}

std::string Module::SourceLine(uintptr_t program_counter, bool same_function) const {
  return program_counter >= base_ ? sim::SourceLine(file_, program_counter - base_, same_function) : "";
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
