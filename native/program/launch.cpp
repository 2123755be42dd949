// launch.cpp: kernels: launches, their limits, and questions about them.
#include <algorithm>
#include <cstring>

#include "program/allocations.h"
#include "program/graphs.h"
#include "program/report.h"
#include "program/symbols.h"
#include "program/times.h"
#include "sim/sim.h"

namespace pk::program {
namespace {

cudaError_t find_kernel(const void *stub, Symbol **symbol, const Symbol::Loaded **loaded) {
  *symbol = find_symbol(stub);
  if (*symbol == nullptr || (*symbol)->kind != SymbolKind::kKernel)
    return fail(cudaErrorInvalidDeviceFunction, "it is no __global__ function of the program");
  return load(**symbol, loaded);
}

std::string shape(const dim3 &of) {
  return std::to_string(of.x) + " x " + std::to_string(of.y) + " x " + std::to_string(of.z);
}

// What a device refuses before it looks at the kernel.
cudaError_t check_shape(const std::string &name, const dim3 &grid, const dim3 &block) {
  const pk_device_info &info = device().info;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const auto within = [](const dim3 &of, const int32_t *limits) {
    return of.x > 0 && of.y > 0 && of.z > 0 && of.x <= static_cast<unsigned>(limits[0]) &&
           of.y <= static_cast<unsigned>(limits[1]) && of.z <= static_cast<unsigned>(limits[2]);
  };
  if (!within(block, info.max_block) || threads > static_cast<uint64_t>(info.max_threads_per_block))
    return fail(cudaErrorInvalidConfiguration, "kernel " + name + ": a block of " + shape(block) +
                                                   " threads; at least 1 and at most " +
                                                   std::to_string(info.max_threads_per_block) + " in all");
  if (!within(grid, info.max_grid))
    return fail(cudaErrorInvalidConfiguration, "kernel " + name + ": a grid of " + shape(grid) +
                                                   " blocks; at least 1 each way, and at most 65535 in y and z");
  return cudaSuccess;
}

// Host memory that is given to a kernel. True: told.
bool tell_host_pointer(const Symbol &symbol, const KernelCall &call) {
  if (!state().simulated) return false;
  for (size_t i = 0; i < call.pointers.size() && i < call.arguments.size(); ++i) {
    if (call.pointers[i] != 'p') continue;
    const uint64_t address = call.arguments[i][0];
    if (address == 0 || find_allocation(address) != nullptr || device_address(address) != address) continue;
    const Freed *freed = find_freed(address);
    const std::string what = freed != nullptr
                                 ? "is in memory that was freed (" + describe_address(address) + ")"
                                 : "is a pointer to host memory, which no kernel can read: copy it with cudaMemcpy() "
                                   "to memory of cudaMalloc(), or take cudaMallocManaged()";
    tell_finding(freed != nullptr ? "use after free" : "host pointer in a kernel",
                 "kernel " + symbol.name + ": argument " + std::to_string(i + 1) + " " + what, call.place);
    return true;
  }
  return false;
}

// What a checked kernel may touch: all that the program has, and its arguments by number.
void describe(const Symbol::Loaded &loaded, const KernelCall &call) {
  if (pk_sim_checked(loaded.function) == 0) return;
  static const char *const kNames[] = {"argument 1", "argument 2", "argument 3", "argument 4",
                                       "argument 5", "argument 6", "argument 7", "argument 8"};
  std::vector<pk_sim_array> arrays;
  std::vector<pk_sim_argument> arguments;
  for (const Allocation &one : all_allocations()) arrays.push_back({one.serial, one.address, one.bytes, 0, ""});
  for (size_t i = 0; i < call.pointers.size() && i < call.arguments.size(); ++i) {
    if (call.pointers[i] != 'p') continue;
    const uint64_t address = call.arguments[i][0];
    const char *const name = kNames[std::min<size_t>(i, std::size(kNames) - 1)];
    uint64_t array = UINT64_MAX, bytes = 0, start = 0;
    for (size_t k = 0; k < arrays.size(); ++k)
      if (address >= arrays[k].address && address - arrays[k].address < arrays[k].bytes) {
        array = k;
        start = arrays[k].address;
        bytes = arrays[k].bytes;
      }
    if (array != UINT64_MAX || address == 0)
      arguments.push_back({static_cast<uint32_t>(i), 1, name, array, start, bytes});
  }
  pk_sim_describe(arrays.data(), arrays.size(), arguments.data(), arguments.size());
}

// Of the allocations that its arguments point to, each once.
uint64_t reached_bytes(const KernelCall &call) {
  std::vector<uint64_t> seen;
  uint64_t bytes = 0;
  for (size_t i = 0; i < call.pointers.size() && i < call.arguments.size(); ++i) {
    if (call.pointers[i] != 'p') continue;
    const Allocation *found = find_allocation(call.arguments[i][0]);
    if (found == nullptr || std::find(seen.begin(), seen.end(), found->address) != seen.end()) continue;
    seen.push_back(found->address);
    bytes += found->bytes;
  }
  return bytes;
}

Amount amount_of(const KernelCall &call) {
  uint64_t traffic[5] = {};
  if (state().simulated) pk_sim_take_traffic(traffic);
  const uint64_t moved = traffic[0] + traffic[1];
  return moved > 0 ? Amount{moved, traffic[4], true} : Amount{reached_bytes(call), 0, false};
}

void count(const Symbol &symbol, const Symbol::Loaded &loaded, const KernelCall &call, const Amount &amount) {
  if (!count_kernel(symbol.name, call.grid, call.block, call.shared_bytes, amount)) return;
  const uint32_t threads = call.block.x * call.block.y * call.block.z;
  const pk_device_info &info = device().info;
  const uint32_t warp = static_cast<uint32_t>(info.warp_size);
  int32_t blocks = 0;
  if (driver().function_occupancy(loaded.function, threads, static_cast<uint32_t>(call.shared_bytes), &blocks) != PK_OK)
    return;
  const uint32_t resident = static_cast<uint32_t>(blocks) * ((threads + warp - 1) / warp) * warp;
  note_occupancy(symbol.name, static_cast<double>(resident) / info.max_threads_per_multiprocessor);
}

cudaError_t start(const KernelCall &call, Stream &stream) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  if (const cudaError_t bad = find_kernel(call.stub, &symbol, &loaded); bad != cudaSuccess) return bad;
  if (tell_host_pointer(*symbol, call)) {  // a device notices when the kernel touches it
    device().fault = cudaErrorIllegalAddress;
    return cudaSuccess;
  }
  std::vector<std::vector<uint64_t>> arguments = call.arguments;
  std::vector<void *> places;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i < call.pointers.size() && call.pointers[i] == 'p') arguments[i][0] = device_address(arguments[i][0]);
    places.push_back(arguments[i].data());
  }
  pk_launch request = {};
  request.function = loaded->function;
  request.stream = stream.handle;
  const dim3 *const shapes[] = {&call.grid, &call.block};
  for (int which = 0; which < 2; ++which) {
    uint32_t *const into = which == 0 ? request.grid : request.block;
    into[0] = shapes[which]->x;
    into[1] = shapes[which]->y;
    into[2] = shapes[which]->z;
  }
  request.shared_bytes = static_cast<uint32_t>(call.shared_bytes);
  request.flags = call.flags;
  std::memcpy(request.cluster, call.cluster, sizeof request.cluster);
  request.params = places.data();
  if (const cudaError_t failed = send_managed(stream.handle); failed != cudaSuccess) return failed;
  const Gate open;
  if (state().simulated) describe(*loaded, call);
  Timing timing(stream);
  if (const cudaError_t failed = check(driver().launch(&request)); failed != cudaSuccess) return failed;
  device().used = true;
  const pk_status status = state().simulated ? driver().stream_wait(stream.handle) : PK_OK;
  const Amount amount = amount_of(call);
  timing.end({"kernel", symbol->name, uint64_t{call.grid.x} * call.grid.y * call.grid.z,
              uint64_t{call.block.x} * call.block.y * call.block.z, amount.bytes});
  count(*symbol, *loaded, call, amount);
  if (status != PK_OK) note_fault(status, symbol->name, call.place);
  const cudaError_t fetched = fetch_managed(stream.handle);
  return state().simulated ? cudaSuccess : fetched;
}

// Checks what can be checked at once, copies the arguments, and puts the launch on its stream.
cudaError_t put_launch(KernelCall call, void **arguments, cudaStream_t stream) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  cudaError_t bad = find_kernel(call.stub, &symbol, &loaded);
  if (bad == cudaSuccess) bad = check_shape(symbol->name, call.grid, call.block);
  if (bad == cudaSuccess) bad = check_stream(stream);
  if (bad == cudaSuccess) bad = pack(*loaded, arguments, &call);
  if (bad != cudaSuccess) return bad;
  Stream &on = *find_stream(stream);
  auto kept = std::make_shared<KernelCall>(std::move(call));
  if (on.capture == nullptr) return start(*kept, on);
  Node *node = on.capture->add(cudaGraphNodeTypeKernel, on.last);
  node->kernel = kept;
  on.last = {node};
  return cudaSuccess;
}

KernelCall call_of(const void *stub, const dim3 &grid, const dim3 &block, size_t shared_bytes, uint32_t flags) {
  KernelCall call;
  call.stub = stub;
  call.grid = grid;
  call.block = block;
  call.shared_bytes = shared_bytes;
  call.flags = flags;
  call.place = thread().place;
  return call;
}

}  // namespace

cudaError_t pack(const Symbol::Loaded &loaded, void **arguments, KernelCall *call) {
  if (!loaded.parameter_bytes.empty() && arguments == nullptr)
    return fail(cudaErrorInvalidValue, "the kernel has parameters, and no arguments were given");
  call->arguments.clear();
  for (size_t i = 0; i < loaded.parameter_bytes.size(); ++i) {
    std::vector<uint64_t> words((loaded.parameter_bytes[i] + 7) / 8 + 1);
    std::memcpy(words.data(), arguments[i], loaded.parameter_bytes[i]);
    call->arguments.push_back(std::move(words));
  }
  return cudaSuccess;
}

cudaError_t make_call(const cudaKernelNodeParams &given, KernelCall *call) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  *call = call_of(given.func, given.gridDim, given.blockDim, given.sharedMemBytes, 0);
  cudaError_t bad = find_kernel(given.func, &symbol, &loaded);
  if (bad == cudaSuccess) bad = check_shape(symbol->name, call->grid, call->block);
  return bad != cudaSuccess ? bad : pack(*loaded, given.kernelParams, call);
}

cudaError_t start_kernel(const KernelCall &call, Stream &stream) { return start(call, stream); }

// ---- the calls

void pk_configure(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  Thread &own = thread();
  own.grid = grid;
  own.block = block;
  own.shared_bytes = shared_bytes;
  own.stream = stream;
  own.launch_place = own.place;
  own.launch_thread_streams = own.thread_streams;
}

void pk_launch_pointers(const void *stub, void **arguments, const char *pointers) {
  Thread &own = thread();
  own.place = own.launch_place;
  own.thread_streams = own.launch_thread_streams;
  KernelCall call = call_of(stub, own.grid, own.block, own.shared_bytes, 0);
  if (pointers != nullptr) call.pointers = pointers;
  const cudaError_t failed = put_launch(std::move(call), arguments, own.stream);
  if (failed != cudaSuccess) remember(failed, "kernel launch");
}

cudaError_t pk_launch_kernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return put_launch(call_of(stub, grid, block, shared_bytes, 0), arguments, stream);
}

cudaError_t pk_launch_cooperative(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                                  cudaStream_t stream) {
  return put_launch(call_of(stub, grid, block, shared_bytes, PK_LAUNCH_COOPERATIVE), arguments, stream);
}

cudaError_t pk_launch_configured(const cudaLaunchConfig_t *config, const void *stub, void **arguments) {
  if (config == nullptr) return fail(cudaErrorInvalidValue, "cudaLaunchKernelEx has no configuration");
  KernelCall call = call_of(stub, config->gridDim, config->blockDim, config->dynamicSmemBytes, 0);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &one = config->attrs[i];
    if (one.id == cudaLaunchAttributeCooperative && one.val.cooperative) call.flags |= PK_LAUNCH_COOPERATIVE;
    if (one.id == cudaLaunchAttributeClusterDimension) {
      call.flags |= PK_LAUNCH_CLUSTER;
      call.cluster[0] = one.val.clusterDim.x;
      call.cluster[1] = one.val.clusterDim.y;
      call.cluster[2] = one.val.clusterDim.z;
    }
  }
  return put_launch(std::move(call), arguments, config->stream);
}

cudaError_t pk_function_attributes(cudaFuncAttributes *attributes, const void *stub) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  if (const cudaError_t bad = find_kernel(stub, &symbol, &loaded); bad != cudaSuccess) return bad;
  pk_function_info info;
  if (const cudaError_t bad = check(driver().function_info(loaded->function, &info)); bad != cudaSuccess) return bad;
  *attributes = {};
  attributes->sharedSizeBytes = static_cast<size_t>(info.static_shared_bytes);
  attributes->constSizeBytes = static_cast<size_t>(info.const_bytes);
  attributes->localSizeBytes = static_cast<size_t>(info.local_bytes);
  attributes->maxThreadsPerBlock = info.max_threads_per_block;
  attributes->numRegs = info.registers;
  const int version = device().info.compute_major * 10 + device().info.compute_minor;
  attributes->ptxVersion = version;
  attributes->binaryVersion = info.binary_version != 0 ? info.binary_version : version;
  attributes->maxDynamicSharedSizeBytes = device().info.max_shared_per_block_bytes - info.static_shared_bytes;
  attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  return cudaSuccess;
}

cudaError_t pk_function_set(const void *stub, cudaFuncAttribute attribute, int value) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  if (const cudaError_t bad = find_kernel(stub, &symbol, &loaded); bad != cudaSuccess) return bad;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // what follows is advice
  if (value < 0) return fail(cudaErrorInvalidValue, "no negative number of bytes");
  return check(driver().function_set_dynamic_shared(loaded->function, static_cast<uint32_t>(value)));
}

cudaError_t pk_occupancy_blocks(int *blocks, const void *stub, int block_threads, size_t shared_bytes) {
  Symbol *symbol = nullptr;
  const Symbol::Loaded *loaded = nullptr;
  if (const cudaError_t bad = find_kernel(stub, &symbol, &loaded); bad != cudaSuccess) return bad;
  if (block_threads <= 0) return fail(cudaErrorInvalidValue, "a block has at least 1 thread");
  int32_t count = 0;
  const cudaError_t failed = check(driver().function_occupancy(loaded->function, static_cast<uint32_t>(block_threads),
                                                               static_cast<uint32_t>(shared_bytes), &count));
  *blocks = count;
  return failed;
}

}  // namespace pk::program
