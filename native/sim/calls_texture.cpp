// calls_texture.cpp: calls of the driver table about arrays, textures and surfaces.
#include "sim/calls.h"
#include "sim/state.h"
#include "sim/textures.h"

namespace pygpukit::sim {

pk_status ArrayCreate(const pk_array *shape, uint64_t *array) {
  return OnDevice([&](Device &device) {
    pk_status status;
    if (auto created = Array::Make(&device, *shape, &status))
      *array = state->arrays.Add(std::make_shared<ArrayHandle>(ArrayHandle{std::move(created)}));
    return status;
  });
}

pk_status ArrayDestroy(uint64_t array, uint32_t) {
  pk_status status;
  const auto held = FindObject(state->arrays, array, "array", &status);
  if (!held) return status;
  state->arrays.RemoveIf([&](const ArrayHandle &one) { return one.array == held->array; });  // its levels, too
  return PK_OK;
}

pk_status ArrayLevel(uint64_t mipmapped, uint32_t level, uint64_t *array) {
  pk_status status;
  const auto held = FindObject(state->arrays, mipmapped, "array", &status);
  if (!held) return status;
  if (level >= held->array->levels.size()) return Fail(PK_ERROR_INVALID_VALUE, "array_level: there is no such level");
  *array = state->arrays.Add(std::make_shared<ArrayHandle>(ArrayHandle{held->array, level}));
  return PK_OK;
}

pk_status ArrayCopy(const pk_array_copy *copy, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  pk_status status;
  auto held = FindObject(state->arrays, copy->array, "array", &status);
  return held ? EnqueueArrayCopy(place.device, place.stream.get(), std::move(held), *copy) : status;
}

template <class T>
static pk_status Register(Registry<T> &registry, std::unique_ptr<T> created, uint64_t *object) {
  *object = registry.Add(std::move(created));
  return *object ? pk_status{PK_OK} : Fail(PK_ERROR_OUT_OF_MEMORY, "too many objects were made");
}

pk_status TextureCreate(const pk_texture *texture, uint64_t *object) {
  pk_status status;
  Device *device = Current(&status);
  if (!device) return status;
  std::shared_ptr<ArrayHandle> handle;
  if (texture->resource == PK_RESOURCE_ARRAY || texture->resource == PK_RESOURCE_MIPMAPPED) {
    handle = FindObject(state->arrays, texture->memory, "array", &status);
    if (!handle) return status;
  }
  auto created = MakeTexture(*texture, std::move(handle), &device->memory, &status);
  return created ? Register(state->textures, std::move(created), object) : status;
}

pk_status TextureDestroy(uint64_t object) {
  return state->textures.Remove(object) ? pk_status{PK_OK}
                                        : Fail(PK_ERROR_INVALID_HANDLE, "texture_destroy: no such texture");
}

pk_status SurfaceCreate(uint64_t array, uint64_t *object) {
  pk_status status;
  const auto handle = FindObject(state->arrays, array, "array", &status);
  if (!handle) return status;
  auto created = MakeSurface(*handle, &status);
  return created ? Register(state->surfaces, std::move(created), object) : status;
}

pk_status SurfaceDestroy(uint64_t object) {
  return state->surfaces.Remove(object) ? pk_status{PK_OK}
                                        : Fail(PK_ERROR_INVALID_HANDLE, "surface_destroy: no such surface");
}

}  // namespace pygpukit::sim
