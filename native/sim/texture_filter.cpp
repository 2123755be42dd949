// texture_filter.cpp: the filters, address modes, faces and levels of the CUDA C++ programming guide's appendix on
// texture fetching. Fractions of a place have 8 bits, as its filters have them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/textures.h"

namespace pygpukit::sim {
namespace {

constexpr double kFraction = 256;

float HalfToFloat(uint16_t bits) {
  const uint32_t exponent = bits >> 10 & 31u, digits = bits & 1023u, sign = static_cast<uint32_t>(bits >> 15) << 31;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(digits), -24), sign ? -1.0f : 1.0f);
  const uint32_t wide = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | digits << 13;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// One number of an element: its bits as wide as 32 bits, and what it stands for.
void ReadNumber(const Texture &texture, const char *at, double *value, uint32_t *bits) {
  const unsigned bytes = pk_format_bytes(texture.format);
  *bits = 0;
  std::memcpy(bits, at, bytes);
  if (texture.format == PK_FORMAT_FLOAT32) {
    float number;
    std::memcpy(&number, bits, sizeof number);
    *value = static_cast<double>(number);
    return;
  }
  if (texture.format == PK_FORMAT_FLOAT16) {
    *value = static_cast<double>(HalfToFloat(static_cast<uint16_t>(*bits)));
    return;
  }
  if (texture.format >= PK_FORMAT_INT8) {
    const unsigned unused = 32 - 8 * bytes;
    const int32_t number = static_cast<int32_t>(*bits << unused) >> unused;
    *bits = static_cast<uint32_t>(number);
    *value = std::max(number / (std::ldexp(1.0, static_cast<int>(8 * bytes) - 1) - 1), -1.0);
  } else {
    *value = *bits / (std::ldexp(1.0, static_cast<int>(8 * bytes)) - 1);
  }
}

// Where one axis is read: one element, or two and the part of the second.
struct Span {
  int64_t first = 0, second = 0;  // -1: the border
  double part = 0;
};

int64_t Wrapped(int64_t index, int64_t extent) { return ((index % extent) + extent) % extent; }

int64_t Addressed(int64_t index, int64_t extent, uint32_t mode) {
  if (index >= 0 && index < extent) return index;
  switch (mode) {
    case PK_ADDRESS_WRAP:
      return Wrapped(index, extent);
    case PK_ADDRESS_MIRROR: {
      const int64_t at = Wrapped(index, 2 * extent);
      return at < extent ? at : 2 * extent - 1 - at;
    }
    case PK_ADDRESS_BORDER:
      return -1;
    default:
      return std::clamp<int64_t>(index, 0, extent - 1);
  }
}

// NaN counts as 0, which no manual says.
double InElements(float coordinate, uint64_t extent, bool normalised, uint32_t mode) {
  double at = static_cast<double>(coordinate);
  if (normalised && (mode == PK_ADDRESS_WRAP || mode == PK_ADDRESS_MIRROR))
    at = std::fmod(at, 2.0);  // of both a period
  if (std::isnan(at)) return 0;
  return std::clamp(normalised ? at * static_cast<double>(extent) : at, -1e9, 1e9);
}

Span Place(float coordinate, uint64_t extent, bool normalised, uint32_t mode, bool linear) {
  if (!normalised && (mode == PK_ADDRESS_WRAP || mode == PK_ADDRESS_MIRROR)) mode = PK_ADDRESS_CLAMP;
  const double at = InElements(coordinate, extent, normalised, mode);
  const int64_t count = static_cast<int64_t>(extent);
  Span span;
  if (!linear) {
    span.first = span.second = Addressed(static_cast<int64_t>(std::floor(at)), count, mode);
    return span;
  }
  const int64_t fixed = static_cast<int64_t>(std::floor((at - 0.5) * kFraction + 0.5));
  const int64_t first = fixed >> 8;
  span.first = Addressed(first, count, mode);
  span.second = Addressed(first + 1, count, mode);
  span.part = static_cast<double>(fixed & 255) / kFraction;
  return span;
}

// Of the face of a cube that a direction meets: its number, and what is divided by what.
struct Face {
  int number;
  double s, t, length;
};
Face OnFace(const float *at, int number) {
  const double x = static_cast<double>(at[0]), y = static_cast<double>(at[1]), z = static_cast<double>(at[2]);
  switch (number) {
    case 0:
      return {0, -z, -y, x};
    case 1:
      return {1, z, -y, -x};
    case 2:
      return {2, x, z, y};
    case 3:
      return {3, x, -z, -y};
    case 4:
      return {4, x, -y, z};
    default:
      return {5, -x, -y, -z};
  }
}
Face FaceOf(const float *at) {
  const float x = std::fabs(at[0]), y = std::fabs(at[1]), z = std::fabs(at[2]);
  const int axis = z >= x && z >= y ? 2 : y >= x ? 1 : 0;
  return OnFace(at, 2 * axis + std::signbit(at[axis]));
}

// How a face's coordinates change with the direction.
void OnFaceChange(const Face &face, const float *change, float *out) {
  const Face moved = OnFace(change, face.number);
  out[0] = static_cast<float>((moved.s * face.length - face.s * moved.length) / (2 * face.length * face.length));
  out[1] = static_cast<float>((moved.t * face.length - face.t * moved.length) / (2 * face.length * face.length));
  out[2] = 0;
}

double LevelOfGradients(const Texture &texture, const float *dx, const float *dy, unsigned dimensions) {
  const Image &image = texture.levels[0];
  const double extents[3] = {static_cast<double>(image.width), static_cast<double>(image.height),
                             static_cast<double>(image.depth)};
  double longest = 0;
  for (const float *change : {dx, dy}) {
    double sum = 0;
    for (unsigned axis = 0; axis < dimensions; ++axis) {
      const double step = static_cast<double>(change[axis]) * (texture.Normalised() ? extents[axis] : 1);
      sum += step * step;
    }
    longest = std::max(longest, std::sqrt(sum));
  }
  return std::log2(longest);  // of 0: below every level
}

// The place in one level, as a call's coordinates say after faces are resolved.
struct Coordinates {
  float at[3];
  unsigned dimensions;
  int64_t slice;  // of layers and faces; 0 in volumes
};

Texel SampleLevel(const Texture &texture, const Image &image, const Coordinates &where) {
  const bool linear = texture.how.filter == PK_FILTER_LINEAR, normalised = texture.Normalised() || texture.cubemap;
  const uint64_t extents[3] = {image.width, image.height, image.depth};
  Span spans[3];
  for (unsigned axis = 0; axis < where.dimensions; ++axis)
    spans[axis] = Place(where.at[axis], extents[axis], normalised,
                        texture.cubemap ? uint32_t{PK_ADDRESS_CLAMP} : texture.how.address_modes[axis], linear);
  if (where.dimensions < 3) spans[2].first = spans[2].second = where.slice;
  Texel sum;
  for (unsigned corner = 0; corner < 8; ++corner) {
    int64_t at[3];
    double weight = 1;
    bool border = false;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const bool second = corner >> axis & 1u;
      at[axis] = second ? spans[axis].second : spans[axis].first;
      weight *= second ? spans[axis].part : 1 - spans[axis].part;
      border |= at[axis] < 0;
    }
    if (weight == 0) continue;  // an infinity that is not asked for makes no NaN
    Texel one;
    if (border) {
      for (unsigned i = 0; i < texture.channels; ++i) {
        one.value[i] = static_cast<double>(texture.how.border[i]);
        one.bits[i] = static_cast<uint32_t>(static_cast<int64_t>(one.value[i]));
      }
    } else {
      one = ReadTexel(texture, image.elements + at[2] * static_cast<int64_t>(image.slice_bytes) +
                                   at[1] * static_cast<int64_t>(image.pitch_bytes) + at[0] * texture.element_bytes());
    }
    if (!linear) return one;
    for (unsigned i = 0; i < 4; ++i) sum.value[i] += weight * one.value[i];
  }
  return sum;
}

Texel Gather(const Texture &texture, const pk_sim_texture_call &call) {
  const Image &image = texture.levels[0];
  const Span x = Place(call.at[0], image.width, texture.Normalised(), texture.how.address_modes[0], true);
  const Span y = Place(call.at[1], image.height, texture.Normalised(), texture.how.address_modes[1], true);
  const int64_t at[4][2] = {{x.first, y.second}, {x.second, y.second}, {x.second, y.first}, {x.first, y.first}};
  const unsigned channel = static_cast<unsigned>(call.number) & 3u;
  Texel all;
  for (unsigned i = 0; i < 4; ++i) {
    if (at[i][0] < 0 || at[i][1] < 0) {
      all.value[i] = channel < texture.channels ? static_cast<double>(texture.how.border[channel]) : 0;
      all.bits[i] = static_cast<uint32_t>(static_cast<int64_t>(all.value[i]));
      continue;
    }
    const Texel one = ReadTexel(texture, image.elements + at[i][1] * static_cast<int64_t>(image.pitch_bytes) +
                                             at[i][0] * texture.element_bytes());
    all.value[i] = one.value[channel];
    all.bits[i] = one.bits[channel];
  }
  return all;
}

}  // namespace

Texel ReadTexel(const Texture &texture, const char *element) {
  Texel texel;
  const unsigned bytes = pk_format_bytes(texture.format);
  for (unsigned i = 0; i < texture.channels; ++i)
    ReadNumber(texture, element + i * bytes, &texel.value[i], &texel.bits[i]);
  return texel;
}

Texel Sample(const Texture &texture, const pk_sim_texture_call &call) {
  if (call.flags & PK_SIM_GATHER) return Gather(texture, call);
  Coordinates where = {{call.at[0], call.at[1], call.at[2]}, call.dimensions, 0};
  float dx[3] = {call.dx[0], call.dx[1], call.dx[2]}, dy[3] = {call.dy[0], call.dy[1], call.dy[2]};
  int64_t faces = 1;
  if (texture.cubemap) {
    const Face face = FaceOf(call.at);
    where = {
        {static_cast<float>((face.s / face.length + 1) / 2), static_cast<float>((face.t / face.length + 1) / 2), 0},
        2,
        face.number};
    faces = 6;
    OnFaceChange(face, call.dx, dx);
    OnFaceChange(face, call.dy, dy);
  }
  if (texture.layered)
    where.slice +=
        faces * std::clamp<int64_t>(call.layer, 0, static_cast<int64_t>(texture.levels[0].depth) / faces - 1);
  if (texture.levels.size() == 1) return SampleLevel(texture, texture.levels[0], where);
  double level = 0;
  if (call.flags & PK_SIM_LEVEL) level = static_cast<double>(call.dx[0]);
  if (call.flags & PK_SIM_GRADIENT) level = LevelOfGradients(texture, dx, dy, where.dimensions);
  level += static_cast<double>(texture.how.level_bias);
  if (!(level >= static_cast<double>(texture.how.least_level))) level = static_cast<double>(texture.how.least_level);
  level = std::min(level, static_cast<double>(texture.how.most_level));
  level = std::clamp(level, 0.0, static_cast<double>(texture.levels.size() - 1));
  if (texture.how.mipmap_filter == PK_FILTER_POINT)
    return SampleLevel(texture, texture.levels[static_cast<size_t>(level + 0.5)], where);
  const int64_t fixed = static_cast<int64_t>(level * kFraction + 0.5);
  const size_t first = static_cast<size_t>(fixed >> 8);
  const double part = static_cast<double>(fixed & 255) / kFraction;
  Texel sum = SampleLevel(texture, texture.levels[first], where);
  if (part == 0) return sum;
  const Texel next = SampleLevel(texture, texture.levels[first + 1], where);
  for (unsigned i = 0; i < 4; ++i) sum.value[i] = (1 - part) * sum.value[i] + part * next.value[i];
  return sum;
}

}  // namespace pygpukit::sim
