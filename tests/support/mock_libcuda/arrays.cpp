// arrays.cpp: arrays, textures and surfaces of the mock device: each call is written down, and nothing is made.
#include <cstdio>

#include "mock.h"

namespace mock {

static Handle g_last = 0xa0000;

Result cuArray3DCreate(Handle *array, const ArrayDescriptor *shape) {
  MOCK_CALL(cuArray3DCreate, "%zu x %zu x %zu format %u channels %u flags %u", shape->width, shape->height,
            shape->depth, shape->format, shape->channels, shape->flags);
  MOCK_CONTEXT();
  *array = ++g_last;
  return 0;
}

Result cuArrayDestroy(Handle array) {
  MOCK_CALL(cuArrayDestroy, "%lx", array);
  return 0;
}

Result cuMipmappedArrayCreate(Handle *array, const ArrayDescriptor *shape, uint32_t levels) {
  MOCK_CALL(cuMipmappedArrayCreate, "%zu x %zu levels %u", shape->width, shape->height, levels);
  *array = ++g_last;
  return 0;
}

Result cuMipmappedArrayDestroy(Handle array) {
  MOCK_CALL(cuMipmappedArrayDestroy, "%lx", array);
  return 0;
}

Result cuMipmappedArrayGetLevel(Handle *array, Handle mipmapped, uint32_t level) {
  MOCK_CALL(cuMipmappedArrayGetLevel, "%lx level %u", mipmapped, level);
  *array = ++g_last;
  return 0;
}

static const char *side(char (&text)[128], const pk::cuda::CopySide &one) {
  std::snprintf(text, sizeof text, "type %u array %lx device %lx pitch %zu height %zu", one.memory_type, one.array,
                one.device, one.pitch, one.height);
  return text;
}

Result cuMemcpy3DAsync(const Copy3D *copy, Handle stream) {
  char from[128], to[128];
  MOCK_CALL(cuMemcpy3DAsync, "%s to %s extent %zu %zu %zu stream %lu", side(from, copy->source), side(to, copy->target),
            copy->width_bytes, copy->height, copy->depth, stream);
  return 0;
}

Result cuTexObjectCreate(uint64_t *object, const ResourceDescriptor *resource, const TextureDescriptor *how,
                         const void *view) {
  char memory[160] = "";
  if (resource->type <= 1) std::snprintf(memory, sizeof memory, "array %lx", resource->array);
  if (resource->type == 2)
    std::snprintf(memory, sizeof memory, "linear %lx format %u channels %u bytes %zu", resource->linear.address,
                  resource->linear.format, resource->linear.channels, resource->linear.bytes);
  if (resource->type == 3)
    std::snprintf(memory, sizeof memory, "pitched %lx %zu x %zu pitch %zu", resource->pitched.address,
                  resource->pitched.width, resource->pitched.height, resource->pitched.pitch_bytes);
  MOCK_CALL(cuTexObjectCreate, "%s modes %u %u %u filter %u flags %u mipmap %u levels %g %g %g border %g view %d",
            memory, how->address_modes[0], how->address_modes[1], how->address_modes[2], how->filter, how->flags,
            how->mipmap_filter, static_cast<double>(how->level_bias), static_cast<double>(how->least_level),
            static_cast<double>(how->most_level), static_cast<double>(how->border[3]), view != nullptr);
  *object = ++g_last;
  return 0;
}

Result cuTexObjectDestroy(uint64_t object) {
  MOCK_CALL(cuTexObjectDestroy, "%lx", object);
  return 0;
}

Result cuSurfObjectCreate(uint64_t *object, const ResourceDescriptor *resource) {
  MOCK_CALL(cuSurfObjectCreate, "type %u array %lx", resource->type, resource->array);
  *object = ++g_last;
  return 0;
}

Result cuSurfObjectDestroy(uint64_t object) {
  MOCK_CALL(cuSurfObjectDestroy, "%lx", object);
  return 0;
}

}  // namespace mock
