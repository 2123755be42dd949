// arrays.cpp: arrays in the device's own layout, and textures and surfaces on them.
#include <algorithm>

#include "cuda/table.h"

namespace pk::cuda {

pk_status array_create(const pk_array *shape, uint64_t *array) {
  const ArrayDescriptor request = {shape->width,  shape->height,   shape->depth,
                                   shape->format, shape->channels, shape->flags};
  if (shape->levels > 0) return PK_CU(cuMipmappedArrayCreate, array, &request, shape->levels);
  return PK_CU(cuArray3DCreate, array, &request);
}

pk_status array_destroy(uint64_t array, uint32_t levels) {
  return levels > 0 ? PK_CU(cuMipmappedArrayDestroy, array) : PK_CU(cuArrayDestroy, array);
}

pk_status array_level(uint64_t mipmapped, uint32_t level, uint64_t *array) {
  return PK_CU(cuMipmappedArrayGetLevel, array, mipmapped, level);
}

pk_status array_copy(const pk_array_copy *copy, uint64_t stream) {
  Copy3D request = {};
  CopySide &array = copy->into_array ? request.target : request.source;
  CopySide &memory = copy->into_array ? request.source : request.target;
  array.memory_type = kMemoryArray;
  array.array = copy->array;
  memory.memory_type = kMemoryDevice;
  memory.device = copy->address;
  memory.pitch = copy->row_bytes;
  memory.height = copy->rows;
  request.width_bytes = copy->row_bytes;
  request.height = copy->rows;
  request.depth = copy->slices;
  return PK_CU(cuMemcpy3DAsync, &request, stream);
}

pk_status texture_create(const pk_texture *texture, uint64_t *object) {
  ResourceDescriptor resource = {};
  resource.type = texture->resource;
  if (texture->resource == PK_RESOURCE_LINEAR) {
    const uint64_t element_bytes = uint64_t{texture->channels} * pk_format_bytes(texture->format);
    resource.linear = {texture->memory, texture->format, texture->channels, texture->width * element_bytes};
  } else if (texture->resource == PK_RESOURCE_PITCHED) {
    resource.pitched = {texture->memory, texture->format, texture->channels,
                        texture->width,  texture->height, texture->pitch_bytes};
  } else {
    resource.array = texture->memory;
  }
  TextureDescriptor how = {};
  std::copy_n(texture->address_modes, 3, how.address_modes);
  how.filter = texture->filter;
  how.flags = texture->flags;
  how.mipmap_filter = texture->mipmap_filter;
  how.level_bias = texture->level_bias;
  how.least_level = texture->least_level;
  how.most_level = texture->most_level;
  std::copy_n(texture->border, 4, how.border);
  return PK_CU(cuTexObjectCreate, object, &resource, &how, nullptr);
}

pk_status texture_destroy(uint64_t object) { return PK_CU(cuTexObjectDestroy, object); }

pk_status surface_create(uint64_t array, uint64_t *object) {
  ResourceDescriptor resource = {};
  resource.type = PK_RESOURCE_ARRAY;
  resource.array = array;
  return PK_CU(cuSurfObjectCreate, object, &resource);
}

pk_status surface_destroy(uint64_t object) { return PK_CU(cuSurfObjectDestroy, object); }

}  // namespace pk::cuda
