// textures.cpp: making, filling and ending arrays, textures and surfaces.
#include "bindings/textures.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bindings/copy.h"
#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/owner.h"
#include "bindings/recorder.h"
#include "bindings/stream.h"
#include "bindings/text.h"
#include "launch/submit.h"

namespace py = pybind11;

namespace pk {
namespace {

uint64_t level_bytes(const pk_array &shape, uint32_t level) {
  const auto halved = [level](uint64_t extent) { return std::max<uint64_t>(extent >> level, 1); };
  const bool layered = shape.flags & (PK_ARRAY_LAYERED | PK_ARRAY_CUBEMAP);
  return halved(shape.width) * halved(shape.height) * (layered ? shape.depth : halved(shape.depth)) * shape.channels *
         pk_format_bytes(shape.format);
}

// What a driver lays out itself lies outside the pool's segments; it counts there all the same.
uint64_t counted(uint64_t pool, uint64_t bytes, const std::string &name) {
  pk_owner owner = current_owner();
  owner.name = pk_intern(name.data(), name.size());
  uint64_t block = 0;
  const auto take = [&] {
    NoGil released;
    return pk_pool_take_outside(pool, bytes, &owner, &block);
  };
  int32_t status = take();
  if (status == PK_POOL_OUT_OF_MEMORY && (collect_late(true) || PyGC_Collect() > 0)) status = take();
  pk_pool_tell(pool);
  if (status == PK_POOL_OK) return block;
  pk_pool_raise();
  throw py::error_already_set();
}

}  // namespace

// ---- arrays

DeviceArray::DeviceArray(const pk_array &requested, const std::string &name)
    : shape(requested), device((need_backend(), t_state.device)) {
  for (uint32_t i = 0; i < std::max(shape.levels, 1u); ++i) bytes += level_bytes(shape, i);
  collect_late(false);
  pool_ = default_pool();
  if (pool_ == 0) {
    pk_pool_raise();
    throw py::error_already_set();
  }
  block_ = counted(pool_, bytes, name);
  need_backend();
  pk_status status = g_driver->array_create(&shape, &handle);
  if (status == PK_ERROR_OUT_OF_MEMORY && collect_late(true)) {
    need_backend();
    status = g_driver->array_create(&shape, &handle);
  }
  if (status == PK_OK) return;
  raise_driver_error(status, "making a device array of " + std::to_string(bytes) + " bytes");
  pk_pool_give_outside(pool_, block_);
  throw py::error_already_set();
}

void DeviceArray::close() {
  if (handle == 0) return;
  uses.end(device, [handle = std::exchange(handle, 0), levels = shape.levels, pool = pool_, block = block_] {
    g_driver->array_destroy(handle, levels);
    pk_pool_give_outside(pool, block);
  });
}

uint64_t DeviceArray::level(uint32_t number) {
  if (shape.levels == 0) return handle;
  while (levels_.size() <= number) {
    uint64_t array = 0;
    check(g_driver->array_level(handle, static_cast<uint32_t>(levels_.size()), &array), "looking up a mipmap's level");
    levels_.push_back(array);
  }
  return levels_[number];
}

void DeviceArray::copy(const py::object &object, uint32_t number, bool into) {
  need_backend();
  const char *doing = into ? "copying into a texture or surface" : "copying out of a surface";
  if (!is_array(object.ptr())) throw py::type_error("a device array is copied from and to GPUArrays");
  ArrayObject *array = as_array(object.ptr());
  const uint64_t whole = level_bytes(shape, number);
  if (!array->contiguous || static_cast<uint64_t>(nbytes_of(array)) != whole || array->storage->device != device ||
      handle == 0)
    throw py::value_error("the array must be contiguous, on the same device and of " + std::to_string(whole) +
                          " bytes, and the device array open");
  spoil_record();
  const StreamRef stream = stream_or_current(nullptr);
  need(refuse_captured(stream.handle, doing));
  Pins pins;
  need(pins.add(array, stream.handle));
  uses.on(stream.handle);
  pk_array_copy copy = {level(number), address_of(array), 0, 1, 1, into ? 1u : 0u, 0};
  copy.rows = std::max<uint64_t>(shape.height >> number, 1);
  copy.slices =
      shape.flags & (PK_ARRAY_LAYERED | PK_ARRAY_CUBEMAP) ? shape.depth : std::max<uint64_t>(shape.depth >> number, 1);
  copy.row_bytes = whole / copy.rows / copy.slices;
  static const uint32_t name = pk_intern("copy", 4);
  const auto work = [copy, on = stream.handle] { return g_raw_driver->array_copy(&copy, on); };
  check(paced(stream.handle, PK_WORK_TRANSFER, name, whole, work), doing);
  record_copy(kD2D, whole, stream.id);
}

// ---- objects

void DeviceObject::close() {
  if (handle != 0) {
    uses.end(device, [handle = std::exchange(handle, 0), surface = surface] {
      surface ? g_driver->surface_destroy(handle) : g_driver->texture_destroy(handle);
    });
  }
  memory.reset();
  view = py::none();
}

DeviceObject *device_object(PyObject *value) {
  const py::handle object(value);
  return py::isinstance<DeviceObject>(object) ? object.cast<DeviceObject *>() : nullptr;
}

bool use_object(DeviceObject *object, uint64_t stream, Pins *pins) {
  object->uses.on(stream);
  if (object->memory) object->memory->uses.on(stream);
  return !is_array(object->view.ptr()) || pins->add(as_array(object->view.ptr()), stream);
}

// How a texture reads, in the order of pk_texture.
struct Reading {
  uint32_t flags, filter, mipmap_filter;
  std::array<uint32_t, 3> address_modes;
  std::array<float, 3> levels;  // bias, least, most
  std::array<float, 4> border;

  pk_texture on(uint32_t resource, uint64_t memory) const {
    pk_texture how = {};
    how.resource = resource;
    how.memory = memory;
    how.flags = flags;
    how.filter = filter;
    how.mipmap_filter = mipmap_filter;
    std::copy(address_modes.begin(), address_modes.end(), how.address_modes);
    how.level_bias = levels[0];
    how.least_level = levels[1];
    how.most_level = levels[2];
    std::copy(border.begin(), border.end(), how.border);
    return how;
  }
};

static void make_texture(DeviceObject *object, const pk_texture &how) {
  collect_late(false);
  need_backend();
  check(g_driver->texture_create(&how, &object->handle), "making a texture");
}

static std::unique_ptr<DeviceObject> texture_of_array(const std::shared_ptr<DeviceArray> &array, const Reading &how) {
  auto created = std::make_unique<DeviceObject>(false, array->device);
  created->memory = array;
  make_texture(created.get(),
               how.on(array->shape.levels > 0 ? PK_RESOURCE_MIPMAPPED : PK_RESOURCE_ARRAY, array->handle));
  return created;
}

// Rows of device memory, without a copy; height 0: linear.
static std::unique_ptr<DeviceObject> texture_of_memory(const py::object &array, uint32_t format, uint32_t channels,
                                                       std::array<uint64_t, 3> extents, const Reading &how) {
  need_backend();
  if (!is_array(array.ptr())) throw py::type_error("a texture of device memory needs a GPUArray");
  const ArrayObject *memory = as_array(array.ptr());
  auto created = std::make_unique<DeviceObject>(false, memory->storage->device);
  created->view = array;
  pk_texture sampled = how.on(extents[1] > 0 ? PK_RESOURCE_PITCHED : PK_RESOURCE_LINEAR, address_of(memory));
  sampled.format = format;
  sampled.channels = channels;
  sampled.width = extents[0];
  sampled.height = extents[1];
  sampled.pitch_bytes = extents[2];
  Pins pins;  // the device looks at the memory
  need(pins.add(as_array(array.ptr()), t_state.stream));
  make_texture(created.get(), sampled);
  return created;
}

static std::unique_ptr<DeviceObject> surface_of_array(const std::shared_ptr<DeviceArray> &array, uint32_t level) {
  auto created = std::make_unique<DeviceObject>(true, array->device);
  created->memory = array;
  collect_late(false);
  need_backend();
  check(g_driver->surface_create(array->level(level), &created->handle), "making a surface");
  return created;
}

void bind_textures(py::module_ &m) {
  py::class_<DeviceArray, std::shared_ptr<DeviceArray>>(m, "DeviceArray", "Memory in the device's own layout.")
      .def(py::init([](std::array<uint64_t, 3> extents, uint32_t format, uint32_t channels, uint32_t flags,
                       uint32_t levels, const Text &name) {
             const pk_array shape = {extents[0], extents[1], extents[2], format, channels, flags, levels};
             return std::make_shared<DeviceArray>(shape, name.utf8);
           }),
           py::arg("extents"), py::arg("format"), py::arg("channels"), py::arg("flags"), py::arg("levels"),
           py::arg("name"))
      .def_readonly("nbytes", &DeviceArray::bytes)
      .def("copy", &DeviceArray::copy, py::arg("array"), py::arg("level"), py::arg("into"));
  py::class_<Reading>(m, "TextureReading", "How a texture reads.")
      .def(py::init([](uint32_t flags, uint32_t filter, uint32_t mipmap_filter, std::array<uint32_t, 3> address_modes,
                       std::array<float, 3> levels, std::array<float, 4> border) {
             return Reading{flags, filter, mipmap_filter, address_modes, levels, border};
           }),
           py::arg("flags"), py::arg("filter"), py::arg("mipmap_filter"), py::arg("address_modes"), py::arg("levels"),
           py::arg("border"));
  py::class_<DeviceObject>(m, "DeviceObject", "A texture or surface as kernels take it.")
      .def(py::init(&texture_of_array), py::arg("array"), py::arg("reading"))
      .def(py::init(&texture_of_memory), py::arg("array"), py::arg("format"), py::arg("channels"), py::arg("extents"),
           py::arg("reading"))
      .def(py::init(&surface_of_array), py::arg("array"), py::arg("level"))
      .def_readonly("handle", &DeviceObject::handle)
      .def_readonly("device", &DeviceObject::device)
      .def("close", [](DeviceObject &self) {
        if (self.uses.held_by_graph()) {
          raise_named("GPUError", std::string("the ") + self.what() + " is part of a graph; close the graph first");
          throw py::error_already_set();
        }
        self.close();
      });
}

}  // namespace pk
