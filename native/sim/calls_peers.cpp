// calls_peers.cpp: calls of the driver table about devices that reach each other.
#include "sim/calls.h"
#include "sim/sim.h"
#include "sim/state.h"
#include "sim/transfer.h"

namespace pygpukit::sim {
namespace {

pk_status CheckPair(const char *what, int32_t device, int32_t peer) {
  if (pk_status bad = CheckProcess()) return bad;
  for (const int32_t one : {device, peer})
    if (one < 0 || one >= state->config.devices)
      return Fail(PK_ERROR_INVALID_DEVICE, Format("%s: there is no device %d: %d are simulated", what,
                                                  static_cast<int>(one), state->config.devices));
  if (device != peer) return PK_OK;
  return Fail(PK_ERROR_INVALID_VALUE, Format("%s: device %d is no peer of its own", what, static_cast<int>(device)));
}

Device *At(int32_t device) { return state->devices[static_cast<size_t>(device)]; }

}  // namespace

pk_status PeerInfo(int32_t device, int32_t peer, pk_peer_info *info) {
  if (pk_status bad = CheckPair("peer_info", device, peer)) return bad;
  *info = {};
  info->access = state->links.Access(device, peer);
  info->enabled = At(device)->Reaches(peer);
  info->atomics = info->access;
  info->performance_rank = info->access ? 0 : -1;
  if (info->access) {
    info->bytes_per_s = state->links.bytes_per_s();
    info->latency_s = state->links.latency_s();
  }
  return PK_OK;
}

pk_status PeerEnable(int32_t peer) {
  return OnDevice([&](Device &device) {
    if (pk_status bad = CheckPair("peer_enable", device.index(), peer)) return bad;
    if (!state->links.Access(device.index(), peer))
      return Fail(PK_ERROR_PEER_ACCESS_UNSUPPORTED,
                  Format("device %d cannot access the memory of device %d", device.index(), static_cast<int>(peer)));
    device.Reach(peer);
    return pk_status{PK_OK};
  });
}

pk_status CopyPeer(uint64_t dst, int32_t dst_device, uint64_t src, int32_t src_device, uint64_t bytes,
                   uint64_t stream) {
  if (pk_status bad = CheckPair("copy_peer", dst_device, src_device)) return bad;
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  if (place.device->index() != dst_device && place.device->index() != src_device)
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("copy_peer: the stream is device %d's, which is none of the two", place.device->index()));
  return EnqueueCopy(place.device, place.stream.get(), {dst, src, At(dst_device), At(src_device), bytes});
}

}  // namespace pygpukit::sim

pk_status pk_sim_fail_link(int32_t from, int32_t to, uint64_t copies) {
  using namespace pygpukit::sim;
  if (pk_status bad = CheckPair("pk_sim_fail_link", from, to)) return bad;
  state->links.FailAfter(from, to, copies);
  return PK_OK;
}
