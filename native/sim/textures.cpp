// textures.cpp: making texture objects, and kernels' calls on textures and surfaces: what a call may not do is told at
// the user's line.
#include "sim/textures.h"

#include <cstring>

#include "sim/core.h"
#include "sim/state.h"

namespace pygpukit::sim {
namespace {

typedef unsigned long long Number;

constexpr uint64_t kMaxLinear = uint64_t{1} << 28;

// Empty, or what the device would refuse of linear and pitched memory.
std::string MemoryRefusal(const pk_texture &how, Memory *memory, uint64_t element_bytes) {
  const bool pitched = how.resource == PK_RESOURCE_PITCHED;
  if (how.memory % PK_TEXTURE_ALIGNMENT)
    return Format("the memory at 0x%llx does not begin at a multiple of %d bytes", static_cast<Number>(how.memory),
                  PK_TEXTURE_ALIGNMENT);
  if (how.width == 0 || how.width > (pitched ? 131072 : kMaxLinear) ||
      (pitched && (how.height == 0 || how.height > 65000)))
    return Format("%llu x %llu elements are too many or none", static_cast<Number>(how.width),
                  static_cast<Number>(how.height));
  if (pitched && (how.pitch_bytes % PK_TEXTURE_PITCH_ALIGNMENT || how.pitch_bytes < how.width * element_bytes))
    return Format("a pitch of %llu bytes is no multiple of %d or shorter than a row",
                  static_cast<Number>(how.pitch_bytes), PK_TEXTURE_PITCH_ALIGNMENT);
  const uint64_t row = how.width * element_bytes;
  return memory->Check(how.memory, pitched ? (how.height - 1) * how.pitch_bytes + row : row);
}

}  // namespace

std::string Viewed::Shape() const {
  if (linear) return "linear memory";
  const std::string kind = cubemap ? "cubemap" : Format("%u-D", dimensions);
  return layered ? kind + " layered" : kind;
}

std::string Viewed::Element() const {
  const unsigned kind = format >= PK_FORMAT_FLOAT16 ? 'f' : format >= PK_FORMAT_INT8 ? 'i' : 'u';
  return TypeName(kind << 8 | pk_format_bytes(format), channels);
}

std::string TypeName(unsigned type, unsigned channels) {
  const unsigned kind = type >> 8;
  const std::string name = Format("%s%u", kind == 'f' ? "float" : kind == 'i' ? "int" : "uint", 8 * (type & 255u));
  return channels == 1 ? name : name + Format(" x %u", channels);
}

static void LookAt(Viewed *viewed, const ArrayHandle &handle, bool all_levels) {
  const pk_array &shape = handle.array->shape;
  viewed->array = handle.array;
  viewed->format = shape.format;
  viewed->channels = shape.channels;
  viewed->cubemap = shape.flags & PK_ARRAY_CUBEMAP;
  viewed->layered = shape.flags & PK_ARRAY_LAYERED;
  viewed->dimensions = shape.height == 0 ? 1 : shape.depth && !viewed->cubemap && !viewed->layered ? 3 : 2;
  if (all_levels) {
    viewed->levels = handle.array->levels;
  } else {
    viewed->levels = {handle.array->levels[handle.level]};
  }
}

std::unique_ptr<Texture> MakeTexture(const pk_texture &how, std::shared_ptr<ArrayHandle> handle, Memory *memory,
                                     pk_status *status) {
  auto created = std::make_unique<Texture>();
  created->how = how;
  std::string why;
  if (handle) {
    LookAt(created.get(), *handle, how.resource == PK_RESOURCE_MIPMAPPED);
  } else {
    created->format = how.format;
    created->channels = how.channels;
    created->linear = how.resource == PK_RESOURCE_LINEAR;
    created->dimensions = created->linear ? 1 : 2;
    why = MemoryRefusal(how, memory, created->element_bytes());
    Image image;
    image.elements = reinterpret_cast<char *>(how.memory);
    image.width = how.width;
    image.height = created->linear ? 1 : how.height;
    image.pitch_bytes = created->linear ? how.width * created->element_bytes() : how.pitch_bytes;
    image.slice_bytes = image.pitch_bytes * image.height;
    created->levels = {image};
  }
  const bool wide = created->format == PK_FORMAT_UINT32 || created->format == PK_FORMAT_INT32;
  if (wide) created->how.flags |= PK_TEXTURE_INTEGERS;  // 32 bits are not read as parts of one
  if (why.empty() && how.filter == PK_FILTER_LINEAR && !created->GivesFloats())
    why = "a linear filter needs floats, or integers that are read as normalised floats";
  if (why.empty() && created->levels.size() > 1 && !created->Normalised())
    why = "a mipmapped array needs normalised coordinates";
  *status = why.empty() ? PK_OK : Fail(PK_ERROR_INVALID_VALUE, "texture_create: " + why);
  return why.empty() ? std::move(created) : nullptr;
}

std::unique_ptr<Surface> MakeSurface(const ArrayHandle &handle, pk_status *status) {
  if (!(handle.array->shape.flags & PK_ARRAY_SURFACE)) {
    *status = Fail(PK_ERROR_INVALID_VALUE, "surface_create: the array was not made for surfaces");
    return nullptr;
  }
  auto created = std::make_unique<Surface>();
  LookAt(created.get(), handle, false);
  *status = PK_OK;
  return created;
}

// ---- calls of kernels

namespace {

// What is told next. Of the thread, because the stack that a launch ends on is never unwound.
std::string &Why() {
  thread_local std::string text;
  return text;
}

// Ends the launch with "tex2D(): ... at file:line".
template <class Call>
[[noreturn]] void Refuse(Core &core, const Call &call, pk_status status, const char *kind) {
  Why() = Format("%s(): %s at %s:%d", call.name, Why().c_str(), call.file, call.line);
  core.Abort(status, kind, Why(), call.line);
}

template <class Call>
void CheckShape(Core &core, const Call &call, const Viewed &viewed, bool linear) {
  const bool layered = call.flags & PK_SIM_LAYERED, cubemap = call.flags & PK_SIM_CUBEMAP;
  if (viewed.linear == linear && (linear || (viewed.layered == layered && viewed.cubemap == cubemap &&
                                             (cubemap || viewed.dimensions == call.dimensions))))
    return;
  Why() = "the object is of another shape: " + viewed.Shape();
  Refuse(core, call, PK_ERROR_LAUNCH_FAILED, "wrong object");
}

bool InRange(int64_t at, int64_t extent) { return at >= 0 && at < extent; }

}  // namespace

void FetchTexture(Core &core, const pk_sim_texture_call &call, unsigned *channels) {
  const Texture *texture = state->textures.Find(call.object);
  if (!texture) {
    Why() = Format("0x%llx is no texture object, or one that was closed", call.object);
    Refuse(core, call, PK_ERROR_INVALID_HANDLE, "wrong object");
  }
  const bool integer = call.flags & PK_SIM_INTEGER;
  CheckShape(core, call, *texture, integer);
  if (core.checker()) {
    const unsigned expected = call.type >> 8, bytes = call.type & 255u;
    const unsigned element_kind = texture->GivesFloats() ? 'f' : texture->format >= PK_FORMAT_INT8 ? 'i' : 'u';
    const unsigned count = call.flags & PK_SIM_GATHER ? 4 : texture->channels;
    if (expected != element_kind || (element_kind != 'f' && bytes != pk_format_bytes(texture->format)) ||
        call.channels != count) {
      Why() = "asks for " + TypeName(call.type, call.channels) + ", the texture gives " +
              (element_kind == 'f' ? TypeName('f' << 8 | 4, count) : texture->Element());
      Refuse(core, call, PK_ERROR_LAUNCH_FAILED, "wrong type");
    }
    if (integer && !InRange(call.number, static_cast<int64_t>(texture->levels[0].width))) {
      Why() = Format("element %d of a texture of %llu elements", call.number,
                     static_cast<Number>(texture->levels[0].width));
      Refuse(core, call, PK_ERROR_ILLEGAL_ADDRESS, "out of bounds");
    }
  }
  Texel texel;
  if (!integer) {
    texel = Sample(*texture, call);
  } else if (InRange(call.number, static_cast<int64_t>(texture->levels[0].width))) {
    texel = ReadTexel(*texture, texture->levels[0].elements + int64_t{call.number} * texture->element_bytes());
  }
  for (unsigned i = 0; i < 4; ++i) {
    if (texture->GivesFloats()) {
      const float number = static_cast<float>(texel.value[i]);
      std::memcpy(channels + i, &number, sizeof number);
    } else {
      channels[i] = texel.bits[i];
    }
  }
}

void AccessSurface(Core &core, const pk_sim_surface_call &call, void *element) {
  const Surface *surface = state->surfaces.Find(call.object);
  if (!surface) {
    Why() = Format("0x%llx is no surface object, or one that was closed", call.object);
    Refuse(core, call, PK_ERROR_INVALID_HANDLE, "wrong object");
  }
  CheckShape(core, call, *surface, false);
  const Image &image = surface->levels[0];
  const int64_t bytes = int64_t{call.channels} * (call.type & 255u);
  if (core.checker() && bytes != surface->element_bytes()) {
    Why() = "moves " + TypeName(call.type, call.channels) + ", the surface has " + surface->Element();
    Refuse(core, call, PK_ERROR_LAUNCH_FAILED, "wrong type");
  }
  if (call.at[0] % bytes) {
    Why() = Format("x is byte %d, no multiple of the %d bytes that are moved: x counts bytes", call.at[0],
                   static_cast<int>(bytes));
    Refuse(core, call, PK_ERROR_MISALIGNED_ADDRESS, "misaligned");
  }
  const bool sliced = call.flags & (PK_SIM_LAYERED | PK_SIM_CUBEMAP);
  int64_t at[3] = {call.at[0], call.dimensions > 1 ? call.at[1] : 0, sliced ? call.layer : 0};
  if (call.dimensions > 2) at[2] = call.at[2];
  const int64_t limits[3] = {static_cast<int64_t>(image.pitch_bytes) - bytes, static_cast<int64_t>(image.height) - 1,
                             static_cast<int64_t>(image.depth) - 1};
  for (int axis = 0; axis < 3; ++axis) {
    if (InRange(at[axis], limits[axis] + 1)) continue;
    if (call.mode == PK_SIM_SURFACE_TRAP) {
      Why() = Format("%s %lld of %lld",
                     axis == 0   ? "x is byte"
                     : axis == 1 ? "y is"
                     : sliced    ? "the layer is"
                                 : "z is",
                     static_cast<long long>(at[axis]), static_cast<long long>(limits[axis] + (axis == 0 ? bytes : 1)));
      Refuse(core, call, PK_ERROR_ILLEGAL_ADDRESS, "out of bounds");
    }
    if (call.mode == PK_SIM_SURFACE_ZERO) {
      if (!call.write) memset(element, 0, static_cast<size_t>(bytes));
      return;
    }
    at[axis] = at[axis] < 0 ? 0 : limits[axis];
  }
  char *place = image.elements + at[2] * static_cast<int64_t>(image.slice_bytes) +
                at[1] * static_cast<int64_t>(image.pitch_bytes) + at[0];
  memcpy(call.write ? place : static_cast<char *>(element), call.write ? static_cast<char *>(element) : place,
         static_cast<size_t>(bytes));
}

}  // namespace pygpukit::sim
