// launch.cpp: kernels and host functions onto a stream. The plain launch is the hottest call of the program.
#include "cuda/table.h"

namespace pk::cuda {

namespace {

constexpr uint32_t kPortableClusterBlocks = 8;  // larger clusters need the function's consent

[[gnu::cold]] pk_status launch_with_attributes(const pk_launch &launch) {
  if (g_api.cuLaunchKernelEx == nullptr) return missing("cuLaunchKernelEx");
  LaunchAttribute attributes[3] = {};
  LaunchConfig config = {};
  for (int axis = 0; axis < 3; ++axis) {
    config.grid[axis] = launch.grid[axis];
    config.block[axis] = launch.block[axis];
  }
  config.shared_bytes = launch.shared_bytes;
  config.stream = launch.stream;
  config.attributes = attributes;
  if ((launch.flags & PK_LAUNCH_COOPERATIVE) != 0) {
    LaunchAttribute &attribute = attributes[config.attribute_count++];
    attribute.id = kAttributeCooperative;
    attribute.value.flag = 1;
  }
  if ((launch.flags & PK_LAUNCH_CLUSTER) != 0) {
    LaunchAttribute &attribute = attributes[config.attribute_count++];
    attribute.id = kAttributeClusterDimension;
    uint64_t blocks = 1;
    for (int axis = 0; axis < 3; ++axis) {
      attribute.value.cluster[axis] = launch.cluster[axis];
      blocks *= launch.cluster[axis];
    }
    if (blocks > kPortableClusterBlocks) {
      if (pk_status status = PK_CU(cuFuncSetAttribute, launch.function, kFunctionNonPortableCluster, 1)) return status;
    }
  }
  if ((launch.flags & PK_LAUNCH_PDL) != 0) {
    LaunchAttribute &attribute = attributes[config.attribute_count++];
    attribute.id = kAttributeProgrammaticStreamSerialization;
    attribute.value.flag = 1;
  }
  return PK_CU(cuLaunchKernelEx, &config, launch.function, launch.params, nullptr);
}

}  // namespace

pk_status launch(const pk_launch *launch) {
  if ((launch->flags & ~PK_LAUNCH_SLICE) != 0) [[unlikely]]  // a slice is a parameter like any other here
    return launch_with_attributes(*launch);
  return PK_CU(cuLaunchKernel, launch->function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
               launch->block[1], launch->block[2], launch->shared_bytes, launch->stream, launch->params, nullptr);
}

pk_status launch_host(uint64_t stream, void (*fn)(void *), void *arg) {
  return PK_CU(cuLaunchHostFunc, stream, fn, arg);
}

}  // namespace pk::cuda
