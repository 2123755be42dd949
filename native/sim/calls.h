// calls.h: the functions of the driver table, in its order (see pygpukit/driver.h).
#pragma once

#include "pygpukit/driver.h"

namespace pygpukit::sim {

pk_status DeviceCount(int32_t *count);
pk_status DeviceInfo(int32_t device, pk_device_info *info);
pk_status DeviceAttribute(int32_t device, int32_t attribute, int32_t *value);
pk_status DeviceUse(int32_t device);
pk_status DeviceWait();
pk_status MemoryInfo(uint64_t *free_bytes, uint64_t *total_bytes);
pk_status Granularity(uint64_t *bytes);
pk_status AddressReserve(uint64_t bytes, uint64_t *address);
pk_status AddressFree(uint64_t address, uint64_t bytes);
pk_status PhysicalCreate(uint64_t bytes, uint64_t *physical);
pk_status PhysicalRelease(uint64_t physical);
pk_status Map(uint64_t address, uint64_t bytes, uint64_t physical);
pk_status Unmap(uint64_t address, uint64_t bytes);
pk_status PhysicalExport(uint64_t physical, int32_t *fd);
pk_status PhysicalImport(int32_t fd, uint64_t bytes, uint64_t *physical);
pk_status HostAlloc(uint64_t bytes, void **host);
pk_status HostFree(void *host);
pk_status CopyH2D(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream);
pk_status CopyD2H(void *dst, uint64_t src, uint64_t bytes, uint64_t stream);
pk_status CopyD2D(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream);
pk_status FillMemory(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count, uint64_t stream);
pk_status StreamCreate(int32_t priority, uint64_t *stream);
pk_status StreamDestroy(uint64_t stream);
pk_status StreamQuery(uint64_t stream);
pk_status StreamWait(uint64_t stream);
pk_status EventCreate(int32_t timing, uint64_t *event);
pk_status EventDestroy(uint64_t event);
pk_status StreamWaitEvent(uint64_t stream, uint64_t event);
pk_status EventRecord(uint64_t event, uint64_t stream);
pk_status EventQuery(uint64_t event);
pk_status EventWait(uint64_t event);
pk_status EventElapsed(uint64_t start, uint64_t end, double *milliseconds);
pk_status ModuleLoad(const void *image, uint64_t bytes, uint64_t *module);
pk_status ModuleUnload(uint64_t module);
pk_status ModuleFunction(uint64_t module, const char *name, uint64_t *function);
pk_status ModuleGlobal(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes);
pk_status FunctionInfo(uint64_t function, pk_function_info *info);
pk_status FunctionParam(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes);
pk_status FunctionSetDynamicShared(uint64_t function, uint32_t bytes);
pk_status FunctionOccupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks);
pk_status LaunchKernel(const pk_launch *request);
pk_status LaunchHost(uint64_t stream, void (*fn)(void *), void *arg);
pk_status CaptureBegin(uint64_t stream);
pk_status CaptureEnd(uint64_t stream, uint64_t *graph);
pk_status GraphLaunch(uint64_t graph, uint64_t stream);
pk_status GraphDestroy(uint64_t graph);
pk_status SmGroups(int32_t *sms, uint32_t capacity, uint32_t *count);
pk_status SmPartitionCreate(const uint32_t *groups, uint32_t count, int32_t *sms, uint64_t *partition);
pk_status SmPartitionDestroy(uint64_t partition);
pk_status SmStreamCreate(uint64_t partition, int32_t priority, uint64_t *stream);
pk_status PtxAssemble(const void *ptx, uint64_t bytes, void (*take)(void *to, const void *cubin, uint64_t bytes),
                      void *to);
pk_status ArrayCreate(const pk_array *shape, uint64_t *array);
pk_status ArrayDestroy(uint64_t array, uint32_t levels);
pk_status ArrayLevel(uint64_t mipmapped, uint32_t level, uint64_t *array);
pk_status ArrayCopy(const pk_array_copy *copy, uint64_t stream);
pk_status TextureCreate(const pk_texture *texture, uint64_t *object);
pk_status TextureDestroy(uint64_t object);
pk_status SurfaceCreate(uint64_t array, uint64_t *object);
pk_status SurfaceDestroy(uint64_t object);
pk_status PeerInfo(int32_t device, int32_t peer, pk_peer_info *info);
pk_status PeerEnable(int32_t peer);
pk_status ManagedAlloc(uint64_t bytes, uint64_t *address);
pk_status ManagedFree(uint64_t address, uint64_t bytes);
pk_status HostRegister(void *host, uint64_t bytes);
pk_status HostUnregister(void *host);
pk_status CopyPeer(uint64_t dst, int32_t dst_device, uint64_t src, int32_t src_device, uint64_t bytes, uint64_t stream);

}  // namespace pygpukit::sim
