// graph_memory.cpp: memory that graphs take and give back.
#include "program/allocations.h"
#include "program/graphs.h"

namespace pk::program {

struct GraphMemory {
  Allocation allocation;
  bool alive = false;  // a launch took it, and none gave it back
  ~GraphMemory();
};

namespace {

std::map<uint64_t, GraphMemory *> &memories() {
  static auto &only = *new std::map<uint64_t, GraphMemory *>;
  return only;
}

GraphMemory *find_memory(const void *pointer) {
  const auto at = memories().find(reinterpret_cast<uint64_t>(pointer));
  return at == memories().end() ? nullptr : at->second;
}

bool is_there(const Allocation &allocation) {
  const Allocation *found = find_allocation(allocation.address);
  return found != nullptr && found->serial == allocation.serial;
}

cudaError_t make_taker(Node *node, uint64_t bytes, void **pointer) {
  auto memory = std::make_shared<GraphMemory>();
  if (const cudaError_t failed = allocate(Kind::kDevice, bytes, &memory->allocation); failed != cudaSuccess)
    return failed;
  memories()[memory->allocation.address] = memory.get();
  *pointer = reinterpret_cast<void *>(memory->allocation.address);
  node->memory = memory;
  node->work = [taken = memory.get()](Stream &) {
    taken->alive = true;
    return cudaSuccess;
  };
  return cudaSuccess;
}

void make_giver(Node *node, void *pointer) {
  node->work = [pointer](Stream &) { return give_to_graph(pointer) ? cudaSuccess : cudaFree(pointer); };
}

}  // namespace

GraphMemory::~GraphMemory() {
  memories().erase(allocation.address);
  if (!alive && is_there(allocation)) release(allocation);
}

bool give_to_graph(const void *pointer) {
  GraphMemory *memory = find_memory(pointer);
  if (memory == nullptr || !memory->alive) return false;
  memory->alive = false;
  return true;
}

cudaError_t capture_malloc(Stream &stream, void **pointer, size_t bytes) {
  Node *node = stream.capture->add(cudaGraphNodeTypeMemAlloc, stream.last);
  stream.last = {node};
  return make_taker(node, bytes, pointer);
}

cudaError_t capture_free(Stream &stream, void *pointer) {
  Node *node = stream.capture->add(cudaGraphNodeTypeMemFree, stream.last);
  stream.last = {node};
  make_giver(node, pointer);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, cudaMemAllocNodeParams *memory) {
  if (memory == nullptr || memory->bytesize == 0)
    return fail(cudaErrorInvalidValue, "cudaGraphAddMemAllocNode takes some bytes");
  cudaError_t failed = cudaSuccess;
  Node *created = add_node(node, graph, after, count, cudaGraphNodeTypeMemAlloc, &failed);
  return created == nullptr ? failed : make_taker(created, memory->bytesize, &memory->dptr);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *pointer) {
  cudaError_t failed = cudaSuccess;
  Node *created = add_node(node, graph, after, count, cudaGraphNodeTypeMemFree, &failed);
  if (created != nullptr) make_giver(created, pointer);
  return failed;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType which, void *value) {
  const bool used = which == cudaGraphMemAttrUsedMemCurrent || which == cudaGraphMemAttrUsedMemHigh;
  uint64_t bytes = 0;
  for (const auto &[address, memory] : memories())
    if (memory->allocation.device == device && (memory->alive || !used) && is_there(memory->allocation))
      bytes += memory->allocation.bytes;
  *static_cast<uint64_t *>(value) = bytes;
  return cudaSuccess;
}

// What is not used any more goes with its graph.
cudaError_t cudaDeviceGraphMemTrim(int) { return cudaSuccess; }

}  // namespace pk::program
