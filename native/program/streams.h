// streams.h: streams as a program knows them, and the work that is put on them or kept for a graph.
#pragma once
#include <functional>

#include "program/state.h"

namespace pk::program {

struct Graph;
struct Node;

struct Stream {
  uint64_t handle = 0;  // the driver's
  uint64_t number = 0;  // of those that were made; 0: the default stream
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Graph> capture;  // what is put on it becomes nodes of this graph
  std::vector<Node *> last;        // that the next node comes after
  bool origin = false;             // the capture began here
};

// Of a program's handle, where 0 is the legacy default stream, or the thread's own. Null: no such stream.
Stream *find_stream(cudaStream_t stream);
cudaError_t check_stream(cudaStream_t stream);

// A piece of work: told the stream that it is to go to. It begins on the simulation when it is called, and is done when
// it returns.
using Work = std::function<cudaError_t(Stream &stream)>;
// Does it now, or keeps it while the stream is captured.
cudaError_t put(cudaStream_t stream, cudaGraphNodeType type, Work work);
// For calls that wait for what they do: an error while the stream is captured.
cudaError_t check_not_captured(Stream &stream, const char *call);

// What kernels have printed appears, in order with the program's own output.
void show_output();
// Waits for all work of the device; whatever a kernel left behind is standing() from then on.
cudaError_t wait_device();
cudaError_t wait_stream(Stream &stream);
// A fault that the driver has told.
void note_fault(pk_status status, const std::string &kernel, const Place &place);
// No stream is captured into this graph any more.
void end_capture(const std::shared_ptr<Graph> &graph);
void forget_streams();

}  // namespace pk::program
