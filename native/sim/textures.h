// textures.h: texture and surface objects, and what kernels do with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/arrays.h"
#include "sim/include/pk_sim_abi.h"

namespace pygpukit::sim {

class Core;

// What both kinds of objects look at.
struct Viewed {
  std::shared_ptr<Array> array;  // null for linear and pitched memory
  std::vector<Image> levels;
  unsigned format = 0, channels = 0, dimensions = 0;  // without layers and faces
  bool linear = false;                                // memory that tex1Dfetch() reads
  bool layered = false, cubemap = false;

  unsigned element_bytes() const { return channels * pk_format_bytes(format); }
  std::string Shape() const;    // "2-D layered"
  std::string Element() const;  // "float32 x 4"
};

struct Texture : Viewed {
  pk_texture how;
  bool Normalised() const { return how.flags & PK_TEXTURE_NORMALIZED_COORDINATES; }
  // Whether a fetch gives floats; else integers.
  bool GivesFloats() const { return format >= PK_FORMAT_FLOAT16 || !(how.flags & PK_TEXTURE_INTEGERS); }
};
struct Surface : Viewed {};

// Null and a status for what the device would refuse.
std::unique_ptr<Texture> MakeTexture(const pk_texture &how, std::shared_ptr<ArrayHandle> handle, Memory *memory,
                                     pk_status *status);
std::unique_ptr<Surface> MakeSurface(const ArrayHandle &handle, pk_status *status);

// As a kernel's call says; ends the launch where that cannot be done.
void FetchTexture(Core &core, const pk_sim_texture_call &call, unsigned *channels);
void AccessSurface(Core &core, const pk_sim_surface_call &call, void *element);

// Four channels of an element as a texture gives them, those that it does not have as 0: floats, or integers.
struct Texel {
  double value[4] = {};
  uint32_t bits[4] = {};
};
Texel ReadTexel(const Texture &texture, const char *element);
// The same of a place between elements.
Texel Sample(const Texture &texture, const pk_sim_texture_call &call);

// "float32 x 4", of a type of pk_sim_abi.h.
std::string TypeName(unsigned type, unsigned channels);

}  // namespace pygpukit::sim
