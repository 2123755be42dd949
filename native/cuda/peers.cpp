// peers.cpp: what devices can do with each other's memory, and copies between them. NVLink multicast is never used.
#include <cstdio>

#include "cuda/table.h"

namespace pk::cuda {

namespace {

pk_status check_pair(const char *call, int32_t device, int32_t peer) {
  const int32_t count = library().device_count;
  const auto exists = [count](int32_t one) { return one >= 0 && one < count; };
  char detail[96];
  if (!exists(device) || !exists(peer)) {
    std::snprintf(detail, sizeof(detail), "device %d does not exist: there are %d", exists(device) ? peer : device,
                  count);
    return fail(PK_ERROR_INVALID_DEVICE, call, detail);
  }
  if (device != peer) return PK_OK;
  std::snprintf(detail, sizeof(detail), "device %d is no peer of its own", device);
  return fail(PK_ERROR_INVALID_VALUE, call, detail);
}

// -1 where the driver does not say.
int32_t attribute(PeerAttribute which, int32_t device, int32_t peer) {
  int32_t value = 0;
  if (g_api.cuDeviceGetP2PAttribute == nullptr) return -1;
  return g_api.cuDeviceGetP2PAttribute(&value, which, device, peer) == PK_OK ? value : -1;
}

}  // namespace

pk_status peer_info(int32_t device, int32_t peer, pk_peer_info *info) {
  if (pk_status status = check_pair("peer_info", device, peer)) return status;
  *info = {};
  info->atomics = info->performance_rank = -1;
  const Device &from = library().devices[device], &to = library().devices[peer];
  if (!from.refusal.empty() || !to.refusal.empty() || g_api.cuDeviceCanAccessPeer == nullptr) return PK_OK;
  if (pk_status status = PK_CU(cuDeviceCanAccessPeer, &info->access, from.handle, to.handle)) return status;
  info->enabled = shares_memory(peer, device) ? 1 : 0;
  info->atomics = attribute(kPeerNativeAtomics, from.handle, to.handle);
  info->performance_rank = attribute(kPeerPerformanceRank, from.handle, to.handle);
  return PK_OK;
}

pk_status peer_enable(int32_t peer) {
  const int32_t device = current_ordinal();
  if (device < 0) return fail(kErrorInvalidContext, "cuCtxEnablePeerAccess", nullptr);
  if (g_api.cuCtxEnablePeerAccess == nullptr) return missing("cuCtxEnablePeerAccess");
  pk_peer_info info;
  if (pk_status status = peer_info(device, peer, &info)) return status;
  if (info.enabled) return PK_OK;
  if (!info.access) {
    char detail[96];
    std::snprintf(detail, sizeof(detail), "device %d cannot access the memory of device %d", device, peer);
    return fail(PK_ERROR_PEER_ACCESS_UNSUPPORTED, "peer_enable", detail);
  }
  Handle context = 0;
  if (pk_status status = context_of(peer, &context)) return status;
  // For memory of other libraries; ours is mapped, and has its access by mapping.
  const Result enabled = g_api.cuCtxEnablePeerAccess(context, 0);
  if (enabled != PK_OK && enabled != kErrorPeerAccessAlreadyEnabled) {
    return fail(enabled, "cuCtxEnablePeerAccess", nullptr);
  }
  return share_memory(peer, device);
}

pk_status copy_peer(uint64_t dst, int32_t dst_device, uint64_t src, int32_t src_device, uint64_t bytes,
                    uint64_t stream) {
  if (g_api.cuMemcpyPeerAsync == nullptr) return missing("cuMemcpyPeerAsync");
  if (pk_status status = check_pair("copy_peer", dst_device, src_device)) return status;
  if (bytes == 0) return PK_OK;
  Handle to = 0, from = 0;
  if (pk_status status = context_of(dst_device, &to)) return status;
  if (pk_status status = context_of(src_device, &from)) return status;
  return PK_CU(cuMemcpyPeerAsync, dst, to, src, from, bytes, stream);
}

}  // namespace pk::cuda
