// pk_sim_textures.h: functions on texture and surface objects, of the types that CUDA has them for. The device does the
// work; here its channels become the type that was asked for.
#pragma once
#pragma GCC system_header

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

// ---- what a type is made of: `type` as in pk_sim_texture_call
template <class T>
struct pk_sim_texel;
#define PK_SIM_TEXEL(T, Number, kind, count)                                   \
  template <>                                                                  \
  struct pk_sim_texel<T> {                                                     \
    typedef Number number;                                                     \
    static constexpr unsigned type = kind << 8 | sizeof(Number), size = count; \
  };
#define PK_SIM_TEXELS(Number, V, kind)  \
  PK_SIM_TEXEL(Number, Number, kind, 1) \
  PK_SIM_TEXEL(V##1, Number, kind, 1)   \
  PK_SIM_TEXEL(V##2, Number, kind, 2)   \
  PK_SIM_TEXEL(V##4, Number, kind, 4)
PK_SIM_TEXEL(char, char, 'i', 1)
PK_SIM_TEXELS(signed char, char, 'i')
PK_SIM_TEXELS(unsigned char, uchar, 'u')
PK_SIM_TEXELS(short, short, 'i')
PK_SIM_TEXELS(unsigned short, ushort, 'u')
PK_SIM_TEXELS(int, int, 'i')
PK_SIM_TEXELS(unsigned, uint, 'u')
PK_SIM_TEXELS(float, float, 'f')
// Of surfaces alone.
PK_SIM_TEXELS(long long, longlong, 'i')
PK_SIM_TEXELS(unsigned long long, ulonglong, 'u')
#undef PK_SIM_TEXELS
#undef PK_SIM_TEXEL

namespace pk_sim_library {

PK_SIM_NOINLINE void pk_sim_fetch(const pk_sim_texture_call *call, unsigned *channels) {
  pk_sim_device->texture(pk_sim_core, call, channels);
}
template <class T>
PK_SIM_UNCHECKED PK_SIM_INLINE T pk_sim_texture(pk_sim_texture_call call, const char *name, const char *file,
                                                int line) {
  typedef typename pk_sim_texel<T>::number Number;
  static_assert(sizeof(Number) <= 4, "a texture has no numbers of 64 bits");
  call.type = pk_sim_texel<T>::type;
  call.channels = pk_sim_texel<T>::size;
  call.name = name;
  call.file = file;
  call.line = line;
  unsigned channels[4];
  pk_sim_fetch(&call, channels);
  Number numbers[pk_sim_texel<T>::size];
  for (unsigned i = 0; i < pk_sim_texel<T>::size; ++i) __builtin_memcpy(&numbers[i], &channels[i], sizeof(Number));
  T value;
  __builtin_memcpy(&value, numbers, sizeof value);
  return value;
}

#define PK_SIM_LIST(...) __VA_ARGS__
// As it returns the element, as it writes it, and both with the word of a sparse array: all of ours are there.
#define PK_SIM_FETCH(name, dimensions, flags, parameters, arguments, at, dx, dy, layer, number)                   \
  template <class T>                                                                                              \
  PK_SIM_INLINE T name(cudaTextureObject_t pk_sim_object, PK_SIM_LIST parameters, PK_SIM_HERE) {                  \
    return pk_sim_texture<T>(                                                                                     \
        {pk_sim_object, dimensions, flags, {PK_SIM_LIST at}, {PK_SIM_LIST dx}, {PK_SIM_LIST dy}, layer, number},  \
        #name, pk_sim_file, pk_sim_line);                                                                         \
  }                                                                                                               \
  template <class T>                                                                                              \
  PK_SIM_INLINE void name(T *pk_sim_to, cudaTextureObject_t pk_sim_object, PK_SIM_LIST parameters, PK_SIM_HERE) { \
    *pk_sim_to = name<T>(pk_sim_object, PK_SIM_LIST arguments, pk_sim_file, pk_sim_line);                         \
  }
#define PK_SIM_FETCH_SPARSE(name, parameters, arguments)                                                           \
  template <class T>                                                                                               \
  PK_SIM_INLINE T name(cudaTextureObject_t pk_sim_object, PK_SIM_LIST parameters, bool *resident, PK_SIM_HERE) {   \
    *resident = true;                                                                                              \
    return name<T>(pk_sim_object, PK_SIM_LIST arguments, pk_sim_file, pk_sim_line);                                \
  }                                                                                                                \
  template <class T>                                                                                               \
  PK_SIM_INLINE void name(T *pk_sim_to, cudaTextureObject_t pk_sim_object, PK_SIM_LIST parameters, bool *resident, \
                          PK_SIM_HERE) {                                                                           \
    *resident = true;                                                                                              \
    *pk_sim_to = name<T>(pk_sim_object, PK_SIM_LIST arguments, pk_sim_file, pk_sim_line);                          \
  }

PK_SIM_FETCH(tex1Dfetch, 1, PK_SIM_INTEGER, (int x), (x), (), (), (), 0, x)
PK_SIM_FETCH(tex1D, 1, 0, (float x), (x), (x), (), (), 0, 0)
PK_SIM_FETCH(tex2D, 2, 0, (float x, float y), (x, y), (x, y), (), (), 0, 0)
PK_SIM_FETCH(tex3D, 3, 0, (float x, float y, float z), (x, y, z), (x, y, z), (), (), 0, 0)
PK_SIM_FETCH(tex1DLayered, 1, PK_SIM_LAYERED, (float x, int layer), (x, layer), (x), (), (), layer, 0)
PK_SIM_FETCH(tex2DLayered, 2, PK_SIM_LAYERED, (float x, float y, int layer), (x, y, layer), (x, y), (), (), layer, 0)
PK_SIM_FETCH(texCubemap, 3, PK_SIM_CUBEMAP, (float x, float y, float z), (x, y, z), (x, y, z), (), (), 0, 0)
PK_SIM_FETCH(texCubemapLayered, 3, PK_SIM_CUBEMAP | PK_SIM_LAYERED, (float x, float y, float z, int layer),
             (x, y, z, layer), (x, y, z), (), (), layer, 0)
PK_SIM_FETCH(tex2Dgather, 2, PK_SIM_GATHER, (float x, float y, int channel), (x, y, channel), (x, y), (), (), 0,
             channel)
PK_SIM_FETCH(tex1DLod, 1, PK_SIM_LEVEL, (float x, float level), (x, level), (x), (level), (), 0, 0)
PK_SIM_FETCH(tex2DLod, 2, PK_SIM_LEVEL, (float x, float y, float level), (x, y, level), (x, y), (level), (), 0, 0)
PK_SIM_FETCH(tex3DLod, 3, PK_SIM_LEVEL, (float x, float y, float z, float level), (x, y, z, level), (x, y, z), (level),
             (), 0, 0)
PK_SIM_FETCH(tex1DLayeredLod, 1, PK_SIM_LAYERED | PK_SIM_LEVEL, (float x, int layer, float level), (x, layer, level),
             (x), (level), (), layer, 0)
PK_SIM_FETCH(tex2DLayeredLod, 2, PK_SIM_LAYERED | PK_SIM_LEVEL, (float x, float y, int layer, float level),
             (x, y, layer, level), (x, y), (level), (), layer, 0)
PK_SIM_FETCH(texCubemapLod, 3, PK_SIM_CUBEMAP | PK_SIM_LEVEL, (float x, float y, float z, float level),
             (x, y, z, level), (x, y, z), (level), (), 0, 0)
PK_SIM_FETCH(texCubemapLayeredLod, 3, PK_SIM_CUBEMAP | PK_SIM_LAYERED | PK_SIM_LEVEL,
             (float x, float y, float z, int layer, float level), (x, y, z, layer, level), (x, y, z), (level), (),
             layer, 0)
PK_SIM_FETCH(tex1DGrad, 1, PK_SIM_GRADIENT, (float x, float dx, float dy), (x, dx, dy), (x), (dx), (dy), 0, 0)
PK_SIM_FETCH(tex2DGrad, 2, PK_SIM_GRADIENT, (float x, float y, float2 dx, float2 dy), (x, y, dx, dy), (x, y),
             (dx.x, dx.y), (dy.x, dy.y), 0, 0)
PK_SIM_FETCH(tex3DGrad, 3, PK_SIM_GRADIENT, (float x, float y, float z, float4 dx, float4 dy), (x, y, z, dx, dy),
             (x, y, z), (dx.x, dx.y, dx.z), (dy.x, dy.y, dy.z), 0, 0)
PK_SIM_FETCH(tex1DLayeredGrad, 1, PK_SIM_LAYERED | PK_SIM_GRADIENT, (float x, int layer, float dx, float dy),
             (x, layer, dx, dy), (x), (dx), (dy), layer, 0)
PK_SIM_FETCH(tex2DLayeredGrad, 2, PK_SIM_LAYERED | PK_SIM_GRADIENT, (float x, float y, int layer, float2 dx, float2 dy),
             (x, y, layer, dx, dy), (x, y), (dx.x, dx.y), (dy.x, dy.y), layer, 0)
PK_SIM_FETCH(texCubemapGrad, 3, PK_SIM_CUBEMAP | PK_SIM_GRADIENT, (float x, float y, float z, float4 dx, float4 dy),
             (x, y, z, dx, dy), (x, y, z), (dx.x, dx.y, dx.z), (dy.x, dy.y, dy.z), 0, 0)
PK_SIM_FETCH(texCubemapLayeredGrad, 3, PK_SIM_CUBEMAP | PK_SIM_LAYERED | PK_SIM_GRADIENT,
             (float x, float y, float z, int layer, float4 dx, float4 dy), (x, y, z, layer, dx, dy), (x, y, z),
             (dx.x, dx.y, dx.z), (dy.x, dy.y, dy.z), layer, 0)
PK_SIM_FETCH_SPARSE(tex2D, (float x, float y), (x, y))
PK_SIM_FETCH_SPARSE(tex3D, (float x, float y, float z), (x, y, z))
PK_SIM_FETCH_SPARSE(tex2DLayered, (float x, float y, int layer), (x, y, layer))
PK_SIM_FETCH_SPARSE(tex2DLod, (float x, float y, float level), (x, y, level))
PK_SIM_FETCH_SPARSE(tex3DLod, (float x, float y, float z, float level), (x, y, z, level))
PK_SIM_FETCH_SPARSE(tex2DLayeredLod, (float x, float y, int layer, float level), (x, y, layer, level))
PK_SIM_FETCH_SPARSE(tex2DGrad, (float x, float y, float2 dx, float2 dy), (x, y, dx, dy))
PK_SIM_FETCH_SPARSE(tex3DGrad, (float x, float y, float z, float4 dx, float4 dy), (x, y, z, dx, dy))
PK_SIM_FETCH_SPARSE(tex2DLayeredGrad, (float x, float y, int layer, float2 dx, float2 dy), (x, y, layer, dx, dy))
#undef PK_SIM_FETCH_SPARSE
#undef PK_SIM_FETCH
// The channel may be left out.
template <class T>
PK_SIM_INLINE T tex2Dgather(cudaTextureObject_t object, float x, float y, PK_SIM_HERE) {
  return tex2Dgather<T>(object, x, y, 0, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE void tex2Dgather(T *to, cudaTextureObject_t object, float x, float y, PK_SIM_HERE) {
  *to = tex2Dgather<T>(object, x, y, 0, pk_sim_file, pk_sim_line);
}

// ---- surfaces
PK_SIM_NOINLINE void pk_sim_surface(const pk_sim_surface_call *call, void *element) {
  pk_sim_device->surface(pk_sim_core, call, element);
}
#define PK_SIM_SURFACE(name, dimensions, flags, parameters, arguments, at, layer)                                     \
  template <class T>                                                                                                  \
  PK_SIM_UNCHECKED PK_SIM_INLINE T name##read(cudaSurfaceObject_t pk_sim_object, PK_SIM_LIST parameters,              \
                                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, PK_SIM_HERE) {     \
    T value;                                                                                                          \
    const pk_sim_surface_call call = {pk_sim_object,                                                                  \
                                      dimensions,                                                                     \
                                      flags,                                                                          \
                                      {PK_SIM_LIST at},                                                               \
                                      layer,                                                                          \
                                      (pk_sim_surface_mode)mode,                                                      \
                                      0,                                                                              \
                                      pk_sim_texel<T>::type,                                                          \
                                      pk_sim_texel<T>::size,                                                          \
                                      #name "read",                                                                   \
                                      pk_sim_file,                                                                    \
                                      pk_sim_line};                                                                   \
    pk_sim_surface(&call, &value);                                                                                    \
    return value;                                                                                                     \
  }                                                                                                                   \
  template <class T>                                                                                                  \
  PK_SIM_INLINE void name##read(T *pk_sim_to, cudaSurfaceObject_t pk_sim_object, PK_SIM_LIST parameters,              \
                                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, PK_SIM_HERE) {                   \
    *pk_sim_to = name##read<T>(pk_sim_object, PK_SIM_LIST arguments, mode, pk_sim_file, pk_sim_line);                 \
  }                                                                                                                   \
  template <class T>                                                                                                  \
  PK_SIM_UNCHECKED PK_SIM_INLINE void name##write(T value, cudaSurfaceObject_t pk_sim_object, PK_SIM_LIST parameters, \
                                                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, PK_SIM_HERE) { \
    const pk_sim_surface_call call = {pk_sim_object,                                                                  \
                                      dimensions,                                                                     \
                                      flags,                                                                          \
                                      {PK_SIM_LIST at},                                                               \
                                      layer,                                                                          \
                                      (pk_sim_surface_mode)mode,                                                      \
                                      1,                                                                              \
                                      pk_sim_texel<T>::type,                                                          \
                                      pk_sim_texel<T>::size,                                                          \
                                      #name "write",                                                                  \
                                      pk_sim_file,                                                                    \
                                      pk_sim_line};                                                                   \
    pk_sim_surface(&call, &value);                                                                                    \
  }
PK_SIM_SURFACE(surf1D, 1, 0, (int x), (x), (x), 0)
PK_SIM_SURFACE(surf2D, 2, 0, (int x, int y), (x, y), (x, y), 0)
PK_SIM_SURFACE(surf3D, 3, 0, (int x, int y, int z), (x, y, z), (x, y, z), 0)
PK_SIM_SURFACE(surf1DLayered, 1, PK_SIM_LAYERED, (int x, int layer), (x, layer), (x), layer)
PK_SIM_SURFACE(surf2DLayered, 2, PK_SIM_LAYERED, (int x, int y, int layer), (x, y, layer), (x, y), layer)
PK_SIM_SURFACE(surfCubemap, 2, PK_SIM_CUBEMAP, (int x, int y, int face), (x, y, face), (x, y), face)
PK_SIM_SURFACE(surfCubemapLayered, 2, PK_SIM_CUBEMAP | PK_SIM_LAYERED, (int x, int y, int face), (x, y, face), (x, y),
               face)
#undef PK_SIM_SURFACE
#undef PK_SIM_LIST

}  // namespace pk_sim_library
