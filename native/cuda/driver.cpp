// driver.cpp: the CUDA driver table.
#include "pygpukit/driver.h"

#include "cuda/table.h"

namespace pk::cuda {

static const pk_driver kTable = {
    .version = PK_DRIVER_VERSION,
    .size_bytes = sizeof(pk_driver),
    .name = "cuda",
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .device_info = device_info,
    .device_use = device_use,
    .device_wait = device_wait,
    .memory_info = memory_info,
    .granularity = granularity,
    .address_reserve = address_reserve,
    .address_free = address_free,
    .physical_create = physical_create,
    .physical_release = physical_release,
    .map = map,
    .unmap = unmap,
    .physical_export = physical_export,
    .physical_import = physical_import,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .copy_h2d = copy_h2d,
    .copy_d2h = copy_d2h,
    .copy_d2d = copy_d2d,
    .fill = fill,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_wait = stream_wait,
    .stream_wait_event = stream_wait_event,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_function = module_function,
    .module_global = module_global,
    .function_info = function_info,
    .function_param = function_param,
    .function_set_dynamic_shared = function_set_dynamic_shared,
    .function_occupancy = function_occupancy,
    .launch = launch,
    .launch_host = launch_host,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .sm_groups = sm_groups,
    .sm_partition_create = sm_partition_create,
    .sm_partition_destroy = sm_partition_destroy,
    .sm_stream_create = sm_stream_create,
    .ptx_assemble = ptx_assemble,
    .array_create = array_create,
    .array_destroy = array_destroy,
    .array_level = array_level,
    .array_copy = array_copy,
    .texture_create = texture_create,
    .texture_destroy = texture_destroy,
    .surface_create = surface_create,
    .surface_destroy = surface_destroy,
    .peer_info = peer_info,
    .peer_enable = peer_enable,
    .copy_peer = copy_peer,
    .stream_create_ordered = stream_create_ordered,
    .managed_alloc = managed_alloc,
    .managed_free = managed_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .device_attribute = device_attribute,
};

}  // namespace pk::cuda

extern "C" const char *pk_cuda_probe(void) {
  const std::string &reason = pk::cuda::library().reason;
  return reason.empty() ? nullptr : reason.c_str();
}

extern "C" const pk_driver *pk_cuda_driver(const char **why) {
  const char *reason = pk_cuda_probe();
  if (reason != nullptr && why != nullptr) *why = reason;
  return reason == nullptr ? &pk::cuda::kTable : nullptr;
}
