// textures.cpp: texture and surface objects.
#include <algorithm>

#include "program/arrays.h"
#include "program/streams.h"

namespace pk::program {
namespace {

std::map<cudaTextureObject_t, cudaResourceDesc> &resources() {
  static auto &only = *new std::map<cudaTextureObject_t, cudaResourceDesc>;
  return only;
}

cudaError_t no_object(const char *kind) {
  return fail(cudaErrorInvalidValue, std::string("there is no such ") + kind + ", or it was destroyed");
}

// Where the texels are. The format is also what the texture's numbers are.
cudaError_t fill_in(const cudaResourceDesc &resource, pk_texture *texture, cudaChannelFormatDesc *format) {
  if (resource.resType == cudaResourceTypeArray || resource.resType == cudaResourceTypeMipmappedArray) {
    const bool mipmapped = resource.resType == cudaResourceTypeMipmappedArray;
    const Array *array = mipmapped ? find_array(resource.res.mipmap.mipmap) : find_array(resource.res.array.array);
    if (array == nullptr) return fail(cudaErrorInvalidValue, "the resource's array is none that exists");
    texture->resource = mipmapped ? PK_RESOURCE_MIPMAPPED : PK_RESOURCE_ARRAY;
    texture->memory = array->handle;
    texture->format = array->shape.format;
    texture->channels = array->shape.channels;
    *format = array->format;
    return cudaSuccess;
  }
  const bool linear = resource.resType == cudaResourceTypeLinear;
  *format = linear ? resource.res.linear.desc : resource.res.pitch2D.desc;
  if (!format_of(*format, &texture->format, &texture->channels))
    return fail(cudaErrorInvalidChannelDescriptor, "a texel has 1, 2 or 4 numbers of 8, 16 or 32 bits");
  texture->resource = linear ? PK_RESOURCE_LINEAR : PK_RESOURCE_PITCHED;
  texture->memory = reinterpret_cast<uint64_t>(linear ? resource.res.linear.devPtr : resource.res.pitch2D.devPtr);
  if (linear) {
    texture->width = resource.res.linear.sizeInBytes / (texture->channels * pk_format_bytes(texture->format));
  } else {
    texture->width = resource.res.pitch2D.width;
    texture->height = resource.res.pitch2D.height;
    texture->pitch_bytes = resource.res.pitch2D.pitchInBytes;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *given, const cudaResourceViewDesc *) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (object == nullptr || resource == nullptr || given == nullptr)
    return fail(cudaErrorInvalidValue, "a texture object needs a resource and a description");
  pk_texture texture = {};
  cudaChannelFormatDesc format = {};
  if (const cudaError_t bad = fill_in(*resource, &texture, &format); bad != cudaSuccess) return bad;
  const bool integers = format.f == cudaChannelFormatKindSigned || format.f == cudaChannelFormatKindUnsigned;
  if (integers && given->readMode == cudaReadModeElementType) {
    if (given->filterMode == cudaFilterModeLinear)
      return fail(cudaErrorInvalidFilterSetting, "whole numbers cannot be interpolated: cudaReadModeNormalizedFloat");
    texture.flags |= PK_TEXTURE_INTEGERS;
  }
  if (given->normalizedCoords) texture.flags |= PK_TEXTURE_NORMALIZED_COORDINATES;
  for (int axis = 0; axis < 3; ++axis) texture.address_modes[axis] = given->addressMode[axis];
  texture.filter = given->filterMode;
  texture.mipmap_filter = given->mipmapFilterMode;
  texture.level_bias = given->mipmapLevelBias;
  texture.least_level = given->minMipmapLevelClamp;
  texture.most_level = given->maxMipmapLevelClamp;
  std::copy(std::begin(given->borderColor), std::end(given->borderColor), texture.border);
  uint64_t created = 0;
  const cudaError_t failed = check(driver().texture_create(&texture, &created));
  if (failed != cudaSuccess) return failed;
  *object = created;
  resources()[created] = *resource;
  return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  if (resources().erase(object) == 0) return no_object("texture object");
  if (const cudaError_t failed = wait_device(); failed != cudaSuccess) return failed;
  return check(driver().texture_destroy(object));
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, cudaTextureObject_t object) {
  const auto at = resources().find(object);
  if (at == resources().end()) return no_object("texture object");
  *resource = at->second;
  return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const cudaResourceDesc *resource) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  const Array *array = resource != nullptr && resource->resType == cudaResourceTypeArray
                           ? find_array(resource->res.array.array)
                           : nullptr;
  if (object == nullptr || array == nullptr) return fail(cudaErrorInvalidValue, "a surface object needs an array");
  uint64_t created = 0;
  const cudaError_t failed = check(driver().surface_create(array->handle, &created));
  if (failed == cudaSuccess) *object = created;
  return failed;
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  if (const cudaError_t failed = wait_device(); failed != cudaSuccess) return failed;
  return check(driver().surface_destroy(object));
}

}  // namespace pk::program
