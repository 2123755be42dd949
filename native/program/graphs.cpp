// graphs.cpp: graphs, made of calls that are captured or node by node. A launch does their work in order.
#include "program/graphs.h"

#include <algorithm>
#include <unordered_map>

#include "program/copies.h"

namespace pk::program {
namespace {

struct Graphs {
  std::map<cudaGraph_t, std::shared_ptr<Graph>> created;
  std::map<cudaGraphExec_t, std::shared_ptr<Graph>> executables;
};
Graphs &graphs() {
  static Graphs &only = *new Graphs;
  return only;
}

Node *node_of(cudaGraphNode_t node) { return reinterpret_cast<Node *>(node); }

std::shared_ptr<Graph> find(cudaGraph_t graph) {
  const auto at = graphs().created.find(graph);
  return at == graphs().created.end() ? nullptr : at->second;
}
std::shared_ptr<Graph> find(cudaGraphExec_t executable) {
  const auto at = graphs().executables.find(executable);
  return at == graphs().executables.end() ? nullptr : at->second;
}
cudaError_t none() { return fail(cudaErrorInvalidValue, "there is no such graph, or it was destroyed"); }

cudaGraph_t keep(std::shared_ptr<Graph> graph) {
  const auto handle = reinterpret_cast<cudaGraph_t>(graph.get());
  graphs().created[handle] = std::move(graph);
  return handle;
}

cudaError_t add_work(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                     cudaGraphNodeType type, Work work) {
  cudaError_t failed = cudaSuccess;
  if (Node *created = add_node(node, graph, after, count, type, &failed)) created->work = std::move(work);
  return failed;
}

cudaError_t list(const std::vector<Node *> &all, cudaGraphNode_t *nodes, size_t *count) {
  if (count == nullptr) return fail(cudaErrorInvalidValue, "there is no place for the number of nodes");
  if (nodes != nullptr)
    for (size_t i = 0; i < std::min(*count, all.size()); ++i) nodes[i] = handle_of(all[i]);
  *count = all.size();
  return cudaSuccess;
}

}  // namespace

cudaGraphNode_t handle_of(Node *node) { return reinterpret_cast<cudaGraphNode_t>(node); }

Node *add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
               cudaGraphNodeType type, cudaError_t *failed) {
  const std::shared_ptr<Graph> of = find(graph);
  if (of == nullptr || node == nullptr || (count > 0 && after == nullptr)) {
    *failed = none();
    return nullptr;
  }
  std::vector<Node *> before;
  for (size_t i = 0; i < count; ++i) before.push_back(node_of(after[i]));
  Node *created = of->add(type, std::move(before));
  *node = handle_of(created);
  *failed = cudaSuccess;
  return created;
}

Node *Graph::add(cudaGraphNodeType type, std::vector<Node *> after) {
  static uint64_t count = 0;
  nodes.push_back(std::make_unique<Node>());
  nodes.back()->type = type;
  nodes.back()->after = std::move(after);
  nodes.back()->number = ++count;
  return nodes.back().get();
}

std::shared_ptr<Graph> Graph::copy() const {
  auto created = std::make_shared<Graph>();
  std::unordered_map<const Node *, Node *> same;
  for (const auto &node : nodes) {
    created->nodes.push_back(std::make_unique<Node>(*node));
    same[node.get()] = created->nodes.back().get();
    if (node->kernel != nullptr) created->nodes.back()->kernel = std::make_shared<KernelCall>(*node->kernel);
  }
  for (const auto &node : created->nodes)
    for (Node *&before : node->after) before = same[before];
  return created;
}

std::vector<const Node *> Graph::order() const {
  std::vector<const Node *> sorted;
  std::unordered_map<const Node *, bool> done;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto &node : nodes) {
      const auto is_done = [&done](const Node *before) { return done[before]; };
      if (done[node.get()] || !std::all_of(node->after.begin(), node->after.end(), is_done)) continue;
      done[node.get()] = moved = true;
      sorted.push_back(node.get());
    }
  }
  return sorted.size() == nodes.size() ? sorted : std::vector<const Node *>();
}

cudaError_t run(const Node &node, Stream &stream) {
  if (node.kernel != nullptr) return start_kernel(*node.kernel, stream);
  if (node.work) return node.work(stream);
  if (node.child == nullptr) return cudaSuccess;
  for (const Node *one : node.child->order())
    if (const cudaError_t failed = run(*one, stream); failed != cudaSuccess) return failed;
  return cudaSuccess;
}

// ---- captured

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  if ((stream == nullptr && !thread().thread_streams) || stream == cudaStreamLegacy)
    return fail(cudaErrorStreamCaptureUnsupported, "the legacy default stream cannot be captured: make a stream");
  Stream &on = *find_stream(stream);
  if (on.capture != nullptr) return fail(cudaErrorIllegalState, "the stream is captured already");
  on.capture = std::make_shared<Graph>();
  on.last.clear();
  on.origin = true;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  Stream &on = *find_stream(stream);
  if (on.capture == nullptr || !on.origin) return fail(cudaErrorIllegalState, "no capture began on this stream");
  const std::shared_ptr<Graph> captured = on.capture;
  end_capture(captured);
  *graph = keep(captured);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  *status = find_stream(stream)->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  static thread_local cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
  std::swap(own, *mode);
  return cudaSuccess;
}

// ---- made node by node

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned) {
  *graph = keep(std::make_shared<Graph>());
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return graphs().created.erase(graph) ? cudaSuccess : none(); }

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  const std::shared_ptr<Graph> of = find(graph);
  if (of == nullptr) return none();
  *clone = keep(of->copy());
  return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaKernelNodeParams *kernel) {
  auto call = std::make_shared<KernelCall>();
  cudaError_t failed = make_call(*kernel, call.get());
  if (failed != cudaSuccess) return failed;
  if (Node *created = add_node(node, graph, after, count, cudaGraphNodeTypeKernel, &failed)) created->kernel = call;
  return failed;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemcpy3DParms *copy) {
  return add_work(node, graph, after, count, cudaGraphNodeTypeMemcpy,
                  [copy = *copy](Stream &stream) { return copy_3d(stream, copy); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return add_work(node, graph, after, count, cudaGraphNodeTypeMemcpy, [=](Stream &stream) {
    return copy(stream, {reinterpret_cast<uint64_t>(to)}, {reinterpret_cast<uint64_t>(from)}, {bytes}, kind,
                "cudaGraphAddMemcpyNode1D");
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemsetParams *given) {
  if (given->elementSize != 1 && given->elementSize != 2 && given->elementSize != 4)
    return fail(cudaErrorInvalidValue, "elements of a fill have 1, 2 or 4 bytes");
  return add_work(node, graph, after, count, cudaGraphNodeTypeMemset, [of = *given](Stream &stream) {
    return fill(stream, {reinterpret_cast<uint64_t>(of.dst), of.pitch}, {of.width * of.elementSize, of.height},
                of.value, of.elementSize, "cudaGraphAddMemsetNode");
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 const cudaHostNodeParams *host) {
  return add_work(node, graph, after, count, cudaGraphNodeTypeHost, [of = *host](Stream &stream) {
    if (!state().simulated) return check(driver().launch_host(stream.handle, of.fn, of.userData));
    of.fn(of.userData);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                  size_t count) {
  return add_work(node, graph, after, count, cudaGraphNodeTypeEmpty, nullptr);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child) {
  const std::shared_ptr<Graph> of = find(child);
  if (of == nullptr) return none();
  cudaError_t failed = cudaSuccess;
  if (Node *created = add_node(node, graph, after, count, cudaGraphNodeTypeGraph, &failed)) created->child = of->copy();
  return failed;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count) {
  if (find(graph) == nullptr) return none();
  for (size_t i = 0; i < count; ++i) node_of(to[i])->after.push_back(node_of(from[i]));
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  const std::shared_ptr<Graph> of = find(graph);
  if (of == nullptr) return none();
  std::vector<Node *> all;
  for (const auto &node : of->nodes) all.push_back(node.get());
  return list(all, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  const std::shared_ptr<Graph> of = find(graph);
  if (of == nullptr) return none();
  std::vector<Node *> roots;
  for (const auto &node : of->nodes)
    if (node->after.empty()) roots.push_back(node.get());
  return list(roots, nodes, count);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
  *type = node_of(node)->type;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *kernel) {
  auto call = std::make_shared<KernelCall>();
  const cudaError_t failed = make_call(*kernel, call.get());
  if (failed == cudaSuccess) node_of(node)->kernel = call;
  return failed;
}

// ---- executables: copies, whose nodes have the numbers of the graph's

cudaError_t pk_graph_instantiate(cudaGraphExec_t *executable, cudaGraph_t graph) {
  const std::shared_ptr<Graph> of = find(graph);
  if (of == nullptr) return none();
  if (!of->nodes.empty() && of->order().empty())
    return fail(cudaErrorInvalidValue, "the graph's nodes wait for each other in a circle");
  std::shared_ptr<Graph> created = of->copy();
  *executable = reinterpret_cast<cudaGraphExec_t>(created.get());
  graphs().executables[*executable] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *kernel) {
  const std::shared_ptr<Graph> of = find(executable);
  if (of == nullptr) return none();
  auto call = std::make_shared<KernelCall>();
  if (const cudaError_t failed = make_call(*kernel, call.get()); failed != cudaSuccess) return failed;
  for (const auto &one : of->nodes)
    if (one->number == node_of(node)->number) one->kernel = call;
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
  const std::shared_ptr<Graph> old = find(executable), of = find(graph);
  if (old == nullptr || of == nullptr) return none();
  bool same = old->nodes.size() == of->nodes.size();
  for (size_t i = 0; same && i < old->nodes.size(); ++i)
    same = old->nodes[i]->type == of->nodes[i]->type && old->nodes[i]->after.size() == of->nodes[i]->after.size();
  if (result != nullptr)
    *result = {same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
  if (!same) return fail(cudaErrorGraphExecUpdateFailure, "the graph has other nodes than the executable");
  graphs().executables[executable] = of->copy();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::shared_ptr<Graph> of = find(executable);
  if (of == nullptr) return none();
  return put(stream, cudaGraphNodeTypeGraph, [of](Stream &on) {
    for (const Node *node : of->order())
      if (const cudaError_t failed = run(*node, on); failed != cudaSuccess) return failed;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return find(executable) == nullptr ? none() : check_stream(stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return graphs().executables.erase(executable) ? cudaSuccess : none();
}

}  // namespace pk::program
