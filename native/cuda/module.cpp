// module.cpp: CUBIN and PTX images, their functions and variables.
#include <cstdio>
#include <cstring>

#include "cuda/cubin.h"
#include "cuda/table.h"

namespace pk::cuda {

// The driver reads PTX up to its NUL: that must be the last byte and no other.
static bool is_ptx(const void *image, uint64_t bytes) {
  if (image == nullptr || bytes == 0) return false;
  const auto *text = static_cast<const char *>(image);
  return std::memchr(text, 0, bytes) == text + bytes - 1 && std::strstr(text, ".version ") != nullptr;
}

// What the driver's compiler says of what it refuses.
struct JitLog {
  char text[400] = "";
  uint32_t options[2] = {kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  void *values[2] = {text, reinterpret_cast<void *>(sizeof(text))};

  JitLog() = default;
  JitLog(const JitLog &) = delete;  // it holds its own address
  JitLog &operator=(const JitLog &) = delete;

  pk_status check(pk_status status, const char *call) {
    if (status == PK_OK) return PK_OK;
    text[sizeof(text) - 1] = '\0';
    return fail(status, call, text);
  }
};

pk_status module_load(const void *image, uint64_t bytes, uint64_t *module) {
  if (const char *fault = is_ptx(image, bytes) ? nullptr : cubin_fault(image, bytes))
    return fail(PK_ERROR_INVALID_IMAGE, "cuModuleLoadDataEx", fault);
  JitLog log;
  return log.check(g_api.cuModuleLoadDataEx(module, image, 2, log.options, log.values), "cuModuleLoadDataEx");
}

// Every launch of the process waits while cuModuleLoadDataEx compiles, and none while the linker does.
pk_status ptx_assemble(const void *ptx, uint64_t bytes, void (*take)(void *to, const void *cubin, uint64_t bytes),
                       void *to) {
  if (!is_ptx(ptx, bytes)) return fail(PK_ERROR_INVALID_IMAGE, "cuLinkAddData", "the text is not PTX");
  JitLog log;  // the driver writes to it until the link is destroyed
  struct Link {
    Handle handle = 0;
    ~Link() {
      if (handle != 0) g_api.cuLinkDestroy(handle);
    }
  } link;
  if (pk_status status = log.check(g_api.cuLinkCreate(2, log.options, log.values, &link.handle), "cuLinkCreate"))
    return status;
  const pk_status added = g_api.cuLinkAddData(link.handle, kJitInputPtx, ptx, bytes, nullptr, 0, nullptr, nullptr);
  if (pk_status status = log.check(added, "cuLinkAddData")) return status;
  void *cubin = nullptr;  // the link's own
  size_t size = 0;
  if (pk_status status = log.check(g_api.cuLinkComplete(link.handle, &cubin, &size), "cuLinkComplete")) return status;
  take(to, cubin, size);
  return PK_OK;
}

pk_status module_unload(uint64_t module) { return PK_CU(cuModuleUnload, module); }

pk_status module_function(uint64_t module, const char *name, uint64_t *function) {
  const pk_status status = g_api.cuModuleGetFunction(function, module, name);
  if (status != PK_ERROR_NOT_FOUND) return check(status, "cuModuleGetFunction");
  char detail[300];
  std::snprintf(detail, sizeof(detail),
                "the module has no kernel '%s': declare it extern \"C\" __global__, or use its lowered (mangled) name",
                name);
  return fail(status, "cuModuleGetFunction", detail);
}

pk_status module_global(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes) {
  size_t size = 0;
  const pk_status status = g_api.cuModuleGetGlobal(address, &size, module, name);
  *bytes = size;
  if (status != PK_ERROR_NOT_FOUND) return check(status, "cuModuleGetGlobal");
  char detail[300];
  std::snprintf(detail, sizeof(detail), "the module has no __device__ or __constant__ variable '%s'", name);
  return fail(status, "cuModuleGetGlobal", detail);
}

pk_status function_info(uint64_t function, pk_function_info *info) {
  const struct {
    int32_t attribute;
    int32_t *value;
  } attributes[] = {
      {kFunctionMaxThreads, &info->max_threads_per_block},
      {kFunctionStaticShared, &info->static_shared_bytes},
      {kFunctionConst, &info->const_bytes},
      {kFunctionLocal, &info->local_bytes},
      {kFunctionRegisters, &info->registers},
      {kFunctionBinaryVersion, &info->binary_version},
  };
  for (const auto &entry : attributes) {
    if (pk_status status = PK_CU(cuFuncGetAttribute, entry.value, entry.attribute, function)) return status;
  }
  info->param_count = -1;
  if (g_api.cuFuncGetParamInfo == nullptr) return PK_OK;
  size_t offset = 0, bytes = 0;
  do {
    ++info->param_count;
  } while (g_api.cuFuncGetParamInfo(function, static_cast<size_t>(info->param_count), &offset, &bytes) == 0);
  return PK_OK;
}

pk_status function_param(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes) {
  if (g_api.cuFuncGetParamInfo == nullptr) return missing("cuFuncGetParamInfo");
  size_t at = 0, size = 0;
  const pk_status status = PK_CU(cuFuncGetParamInfo, function, index, &at, &size);
  *offset = at;
  *bytes = size;
  return status;
}

pk_status function_set_dynamic_shared(uint64_t function, uint32_t bytes) {
  return PK_CU(cuFuncSetAttribute, function, kFunctionMaxDynamicShared, static_cast<int32_t>(bytes));
}

pk_status function_occupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) {
  return PK_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function, static_cast<int32_t>(block_threads),
               shared_bytes);
}

}  // namespace pk::cuda
