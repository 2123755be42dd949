// stream.cpp: streams and events. Stream 0 is the legacy default stream; ours never wait for it on their own.
#include "cuda/table.h"

namespace pk::cuda {

pk_status stream_create(int32_t priority, uint64_t *stream) {
  int32_t allowed = 0;
  if (pk_status status = clamp_priority(priority, &allowed)) return status;
  return PK_CU(cuStreamCreateWithPriority, stream, kStreamNonBlocking, allowed);
}

pk_status stream_create_ordered(int32_t priority, uint64_t *stream) {
  int32_t allowed = 0;
  if (pk_status status = clamp_priority(priority, &allowed)) return status;
  return PK_CU(cuStreamCreateWithPriority, stream, 0, allowed);
}

pk_status stream_destroy(uint64_t stream) { return PK_CU(cuStreamDestroy, stream); }

pk_status stream_query(uint64_t stream) { return PK_CU(cuStreamQuery, stream); }

pk_status stream_wait(uint64_t stream) { return PK_CU(cuStreamSynchronize, stream); }

pk_status stream_wait_event(uint64_t stream, uint64_t event) { return PK_CU(cuStreamWaitEvent, stream, event, 0); }

pk_status event_create(int32_t timing, uint64_t *event) {
  return PK_CU(cuEventCreate, event, timing != 0 ? 0 : kEventDisableTiming);
}

pk_status event_destroy(uint64_t event) { return PK_CU(cuEventDestroy, event); }

pk_status event_record(uint64_t event, uint64_t stream) { return PK_CU(cuEventRecord, event, stream); }

pk_status event_query(uint64_t event) { return PK_CU(cuEventQuery, event); }

pk_status event_wait(uint64_t event) { return PK_CU(cuEventSynchronize, event); }

pk_status event_elapsed(uint64_t start, uint64_t end, double *milliseconds) {
  float value = 0;
  const pk_status status = PK_CU(cuEventElapsedTime, &value, start, end);
  *milliseconds = value;
  return status;
}

}  // namespace pk::cuda
