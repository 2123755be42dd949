// graph.cpp: launches captured from a stream, and run again as one.
#include "cuda/table.h"

namespace pk::cuda {

pk_status capture_begin(uint64_t stream) { return PK_CU(cuStreamBeginCapture, stream, kCaptureRelaxed); }

pk_status capture_end(uint64_t stream, uint64_t *graph) {
  Handle captured = 0;
  if (pk_status status = PK_CU(cuStreamEndCapture, stream, &captured)) return status;
  const pk_status status = PK_CU(cuGraphInstantiateWithFlags, graph, captured, 0);
  g_api.cuGraphDestroy(captured);  // the executable is complete without it
  return status;
}

pk_status graph_launch(uint64_t graph, uint64_t stream) { return PK_CU(cuGraphLaunch, graph, stream); }

pk_status graph_destroy(uint64_t graph) { return PK_CU(cuGraphExecDestroy, graph); }

}  // namespace pk::cuda
