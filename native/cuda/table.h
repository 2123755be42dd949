// table.h: the functions that fill the driver table, by the file that holds them, and the thread's current device.
#pragma once
#include "cuda/errors.h"

namespace pk::cuda {

// device.cpp
pk_status device_count(int32_t *count);
pk_status device_info(int32_t device, pk_device_info *info);
pk_status device_attribute(int32_t device, int32_t attribute, int32_t *value);
pk_status device_use(int32_t device);
pk_status device_wait();
pk_status memory_info(uint64_t *free_bytes, uint64_t *total_bytes);
const Device *current_device();                                 // of this thread; null before device_use()
int32_t current_ordinal();                                      // its number; -1 before device_use()
pk_status context_of(int32_t device, Handle *context);          // made on first use; the current one stays
pk_status clamp_priority(int32_t requested, int32_t *allowed);  // to the current device's range

// memory.cpp
pk_status granularity(uint64_t *bytes);
pk_status address_reserve(uint64_t bytes, uint64_t *address);
pk_status address_free(uint64_t address, uint64_t bytes);
pk_status physical_create(uint64_t bytes, uint64_t *physical);
pk_status physical_release(uint64_t physical);
pk_status map(uint64_t address, uint64_t bytes, uint64_t physical);
pk_status unmap(uint64_t address, uint64_t bytes);
pk_status physical_export(uint64_t physical, int32_t *fd);
pk_status physical_import(int32_t fd, uint64_t bytes, uint64_t *physical);
pk_status host_alloc(uint64_t bytes, void **host);
pk_status host_free(void *host);
pk_status host_register(void *host, uint64_t bytes);
pk_status host_unregister(void *host);
pk_status managed_alloc(uint64_t bytes, uint64_t *address);
pk_status managed_free(uint64_t address, uint64_t bytes);
// A device gets access to what is mapped on another one, and to what will be.
pk_status share_memory(int32_t owner, int32_t with);
bool shares_memory(int32_t owner, int32_t with);

// copy.cpp
pk_status copy_h2d(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream);
pk_status copy_d2h(void *dst, uint64_t src, uint64_t bytes, uint64_t stream);
pk_status copy_d2d(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream);
pk_status fill(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count, uint64_t stream);

// stream.cpp
pk_status stream_create(int32_t priority, uint64_t *stream);
pk_status stream_create_ordered(int32_t priority, uint64_t *stream);
pk_status stream_destroy(uint64_t stream);
pk_status stream_query(uint64_t stream);
pk_status stream_wait(uint64_t stream);
pk_status stream_wait_event(uint64_t stream, uint64_t event);
pk_status event_create(int32_t timing, uint64_t *event);
pk_status event_destroy(uint64_t event);
pk_status event_record(uint64_t event, uint64_t stream);
pk_status event_query(uint64_t event);
pk_status event_wait(uint64_t event);
pk_status event_elapsed(uint64_t start, uint64_t end, double *milliseconds);

// module.cpp
pk_status module_load(const void *image, uint64_t bytes, uint64_t *module);
pk_status module_unload(uint64_t module);
pk_status ptx_assemble(const void *ptx, uint64_t bytes, void (*take)(void *to, const void *cubin, uint64_t bytes),
                       void *to);
pk_status module_function(uint64_t module, const char *name, uint64_t *function);
pk_status module_global(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes);
pk_status function_info(uint64_t function, pk_function_info *info);
pk_status function_param(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes);
pk_status function_set_dynamic_shared(uint64_t function, uint32_t bytes);
pk_status function_occupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks);

// launch.cpp
pk_status launch(const pk_launch *launch);
pk_status launch_host(uint64_t stream, void (*fn)(void *), void *arg);

// graph.cpp
pk_status capture_begin(uint64_t stream);
pk_status capture_end(uint64_t stream, uint64_t *graph);
pk_status graph_launch(uint64_t graph, uint64_t stream);
pk_status graph_destroy(uint64_t graph);

// sms.cpp
pk_status sm_groups(int32_t *sms, uint32_t capacity, uint32_t *count);
pk_status sm_partition_create(const uint32_t *groups, uint32_t count, int32_t *sms, uint64_t *partition);
pk_status sm_partition_destroy(uint64_t partition);
pk_status sm_stream_create(uint64_t partition, int32_t priority, uint64_t *stream);

// arrays.cpp
pk_status array_create(const pk_array *shape, uint64_t *array);
pk_status array_destroy(uint64_t array, uint32_t levels);
pk_status array_level(uint64_t mipmapped, uint32_t level, uint64_t *array);
pk_status array_copy(const pk_array_copy *copy, uint64_t stream);
pk_status texture_create(const pk_texture *texture, uint64_t *object);
pk_status texture_destroy(uint64_t object);
pk_status surface_create(uint64_t array, uint64_t *object);
pk_status surface_destroy(uint64_t object);

// peers.cpp
pk_status peer_info(int32_t device, int32_t peer, pk_peer_info *info);
pk_status peer_enable(int32_t peer);
pk_status copy_peer(uint64_t dst, int32_t dst_device, uint64_t src, int32_t src_device, uint64_t bytes,
                    uint64_t stream);

}  // namespace pk::cuda
