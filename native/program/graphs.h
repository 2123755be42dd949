// graphs.h: graphs: pieces of work and what they come after.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "program/streams.h"
#include "program/symbols.h"

namespace pk::program {

// A launch that can be made again: its own copy of the arguments.
struct KernelCall {
  const void *stub = nullptr;
  dim3 grid, block;
  size_t shared_bytes = 0;
  uint32_t flags = 0;
  uint32_t cluster[3] = {0, 0, 0};
  std::vector<std::vector<uint64_t>> arguments;  // in whole words
  std::string pointers;                          // 'p' for each parameter that is known to be one
  Place place;
};

// Memory that a graph's node takes: at its address from when the node is made, given back with the last graph that has
// the node, unless the program still has it then.
struct GraphMemory;

struct Node {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  Work work;  // of all but kernels and graphs
  std::shared_ptr<KernelCall> kernel;
  std::shared_ptr<Graph> child;
  std::shared_ptr<GraphMemory> memory;
  std::vector<Node *> after;
  uint64_t number = 0;  // the same in a copy of the graph
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  Node *add(cudaGraphNodeType type, std::vector<Node *> after);
  std::shared_ptr<Graph> copy() const;
  // Each node after those that it comes after; empty where they go in a circle.
  std::vector<const Node *> order() const;
};

cudaError_t run(const Node &node, Stream &stream);

cudaGraphNode_t handle_of(Node *node);
// Makes a node of a graph; null and the error where something is missing.
Node *add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
               cudaGraphNodeType type, cudaError_t *failed);

// graph_memory.cpp: of a stream that is captured
cudaError_t capture_malloc(Stream &stream, void **pointer, size_t bytes);
cudaError_t capture_free(Stream &stream, void *pointer);
// True where the address is memory of a graph: it is the program's no more, until the graph takes it again.
bool give_to_graph(const void *pointer);

// launch.cpp
cudaError_t pack(const Symbol::Loaded &loaded, void **arguments, KernelCall *call);
cudaError_t make_call(const cudaKernelNodeParams &given, KernelCall *call);
cudaError_t start_kernel(const KernelCall &call, Stream &stream);

}  // namespace pk::program
