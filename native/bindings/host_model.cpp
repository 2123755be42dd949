// host_model.cpp: arrays to what native/host computes with, checked; the work itself is a host launch, so that it is
// ordered, counted and captured like any other.
#include "bindings/host_model.h"

#include <cstring>
#include <string>
#include <vector>

#include "bindings/array.h"
#include "bindings/copy.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/text.h"
#include "host/attention.h"
#include "host/crew.h"
#include "host/linear.h"

namespace py = pybind11;

namespace pk {
namespace {

using Arrays = std::vector<py::object>;

// An array of these dimensions (-1: any length), contiguous. Kept for the launch.
const ArrayObject *checked_array(const py::handle &object, int8_t dtype, std::initializer_list<int64_t> shape,
                                 const char *what, Arrays *kept) {
  if (!is_array(object.ptr())) throw py::type_error(std::string(what) + " must be a GPUArray");
  const ArrayObject *array = as_array(object.ptr());
  bool fits = array->dtype == dtype && array->contiguous && array->ndim == static_cast<int>(shape.size());
  int axis = 0;
  for (const int64_t length : shape) {
    fits = fits && (length < 0 || array->shape[axis] == length);
    ++axis;
  }
  if (!fits) throw py::value_error(std::string(what) + " has another type or shape, or is not contiguous");
  kept->push_back(py::reinterpret_borrow<py::object>(object));
  return array;
}

template <typename T = float>
T *at(const ArrayObject *array) {
  return reinterpret_cast<T *>(address_of(array));
}

host::Kind kind_of(const std::string &name) {
  for (int i = 0; i < static_cast<int>(host::Kind::kCount); ++i)
    if (name == host::format_of(static_cast<host::Kind>(i)).name) return static_cast<host::Kind>(i);
  throw py::value_error("the host has no products with weights of " + name);
}

// (name of the type, array): uint8 (rows, bytes) for blocks, else an array of that type.
host::Part part_of(const py::handle &object, int64_t k, Arrays *kept) {
  const auto pair = py::cast<py::tuple>(object);
  const host::Kind kind = kind_of(py::cast<std::string>(pair[0]));
  const host::Format &format = host::format_of(kind);
  host::Part part{{kind, nullptr, k}, 0};
  if (k % format.elements != 0) throw py::value_error("rows of that length are no whole blocks");
  const bool plain = format.elements == 1;
  const int8_t dtype = kind == host::Kind::kF32    ? PK_FLOAT32
                       : kind == host::Kind::kF16  ? PK_FLOAT16
                       : kind == host::Kind::kBF16 ? PK_BFLOAT16
                                                   : PK_UINT8;
  const ArrayObject *array = checked_array(pair[1], dtype, {-1, plain ? k : part.weight.row_bytes()}, "a weight", kept);
  part.weight.at = at<const uint8_t>(array);
  part.rows = array->shape[0];
  return part;
}

// (weight, bias or None, epsilon, centered), or None.
host::Norm norm_of(const py::object &object, int64_t size, Arrays *kept) {
  host::Norm norm;
  if (object.is_none()) return norm;
  const auto all = py::cast<py::tuple>(object);
  norm.weight = at(checked_array(all[0], PK_FLOAT32, {size}, "a norm's weight", kept));
  if (!all[1].is_none()) norm.bias = at(checked_array(all[1], PK_FLOAT32, {size}, "a norm's bias", kept));
  norm.epsilon = py::cast<float>(all[2]);
  norm.centered = py::cast<bool>(all[3]);
  return norm;
}

host::After after_of(const std::string &name) {
  static const char *const names[] = {"store", "add", "gelu", "gelu_erf", "silu"};
  for (int i = 0; i < 5; ++i)
    if (name == names[i]) return static_cast<host::After>(i);
  throw py::value_error("after is " + name);
}

void host_linear(const py::object &x, const py::object &out, const py::sequence &parts, const py::object &bias,
                 const py::object &norm, const std::string &after) {
  Arrays kept;
  host::Linear linear{};
  const ArrayObject *rows = checked_array(x, PK_FLOAT32, {-1, -1}, "x", &kept);
  linear.x = at(rows);
  linear.rows = rows->shape[0];
  linear.k = rows->shape[1];
  linear.norm = norm_of(norm, linear.k, &kept);
  linear.after = after_of(after);
  int64_t columns = 0;
  for (py::handle part : parts) {
    linear.parts.push_back(part_of(part, linear.k, &kept));
    columns += linear.parts.back().rows;
  }
  if (linear.after == host::After::kSilu && columns % 2 != 0) throw py::value_error("silu needs two halves");
  if (!bias.is_none()) linear.bias = at(checked_array(bias, PK_FLOAT32, {columns}, "a bias", &kept));
  linear.out = at(checked_array(out, PK_FLOAT32, {linear.rows, linear.columns()}, "out", &kept));
  host_work(
      "linear",
      [linear] {
        const NoGil released;
        linear.run();
        return true;
      },
      kept);
}

// Where rows stand, and what they are turned with.
host::Attention attention_of(const py::object &qkv, const py::object &positions, const py::object &slots,
                             const py::object &k, const py::object &v, Arrays *kept) {
  host::Attention attention{};
  const ArrayObject *keys = checked_array(k, PK_FLOAT32, {-1, -1, -1, -1}, "k", kept);
  attention.slot_count = keys->shape[0];
  attention.kv_heads = keys->shape[1];
  attention.size = keys->shape[2];
  attention.dim = keys->shape[3];
  attention.k = at(keys);
  attention.v = at(checked_array(v, PK_FLOAT32,
                                 {attention.slot_count, attention.kv_heads, attention.size, attention.dim}, "v", kept));
  const ArrayObject *rows = checked_array(qkv, PK_FLOAT32, {-1, -1}, "qkv", kept);
  attention.qkv = at(rows);
  attention.rows = rows->shape[0];
  attention.width = rows->shape[1];
  attention.heads = attention.dim > 0 ? rows->shape[1] / attention.dim - 2 * attention.kv_heads : 0;
  if (attention.heads < 1 || (attention.heads + 2 * attention.kv_heads) * attention.dim != rows->shape[1] ||
      attention.heads % attention.kv_heads != 0)
    throw py::value_error("qkv has another width than queries, keys and values of that cache");
  attention.positions = at<const int32_t>(checked_array(positions, PK_INT32, {attention.rows}, "positions", kept));
  const bool is_table = is_array(slots.ptr()) && as_array(slots.ptr())->ndim == 2;
  const ArrayObject *table = is_table ? checked_array(slots, PK_INT32, {attention.rows, -1}, "slots", kept)
                                      : checked_array(slots, PK_INT32, {attention.rows}, "slots", kept);
  attention.slots = at<const int32_t>(table);
  attention.blocks = is_table ? table->shape[1] : 1;
  return attention;
}

template <typename Work>
void attention_work(const char *name, const host::Attention &attention, const Arrays &kept, const Work &work) {
  host_work(
      name,
      [attention, work] {
        if (!attention.sound()) {
          raise_named("InvalidSpecError", "a row stands at a position or in a slot that the cache does not have");
          return false;
        }
        const NoGil released;
        work(attention);
        return true;
      },
      kept);
}

void host_place(const py::object &qkv, const py::object &positions, const py::object &slots, const py::object &k,
                const py::object &v, const py::object &tables, const py::object &q_norm, const py::object &k_norm) {
  Arrays kept;
  host::Attention all = attention_of(qkv, positions, slots, k, v, &kept);
  if (!tables.is_none()) {
    const auto pair = py::cast<py::tuple>(tables);
    const ArrayObject *cos = checked_array(pair[0], PK_FLOAT32, {-1, -1}, "a table of cosines", &kept);
    all.table_rows = cos->shape[0];
    all.half = cos->shape[1];
    if (2 * all.half > all.dim) throw py::value_error("a table of cosines has more angles than a head has pairs");
    all.cos = at(cos);
    all.sin = at(checked_array(pair[1], PK_FLOAT32, {all.table_rows, all.half}, "a table of sines", &kept));
  }
  all.q_norm = norm_of(q_norm, all.dim, &kept);
  all.k_norm = norm_of(k_norm, all.dim, &kept);
  attention_work("rope", all, kept, [](const host::Attention &attention) { attention.place(); });
}

void host_attention(const py::object &qkv, const py::object &positions, const py::object &slots, const py::object &k,
                    const py::object &v, const py::object &out, float scale, int64_t window, float cap,
                    const py::object &sinks, int64_t chunk) {
  Arrays kept;
  host::Attention all = attention_of(qkv, positions, slots, k, v, &kept);
  all.out = at(checked_array(out, PK_FLOAT32, {all.rows, all.heads * all.dim}, "out", &kept));
  all.window = window;
  all.chunk = chunk;
  all.scale = scale;
  all.cap = cap;
  if (!sinks.is_none()) all.sinks = at(checked_array(sinks, PK_FLOAT32, {all.heads}, "sinks", &kept));
  attention_work("attention", all, kept, [](const host::Attention &attention) { attention.step(); });
}

// Rows of a weight as float32: out[i] = row number[i].
void host_rows(const py::object &numbers, const py::object &part, const py::object &out) {
  Arrays kept;
  const ArrayObject *to = checked_array(out, PK_FLOAT32, {-1, -1}, "out", &kept);
  const int64_t count = to->shape[0], k = to->shape[1];
  const host::Part table = part_of(part, k, &kept);
  const int32_t *which = at<const int32_t>(checked_array(numbers, PK_INT32, {count}, "numbers", &kept));
  float *target = at(to);
  host_work(
      "embed",
      [=] {
        std::vector<float> row(static_cast<size_t>(host::padded(k)));
        for (int64_t i = 0; i < count; ++i) {
          if (which[i] < 0 || which[i] >= table.rows) {
            raise_named("InvalidSpecError", "there is no token " + std::to_string(which[i]));
            return false;
          }
          host::kernels().expand(table.weight, which[i], row.data());
          std::memcpy(target + i * k, row.data(), static_cast<size_t>(k) * sizeof(float));
        }
        return true;
      },
      kept);
}

bool dense(const py::buffer_info &a) {
  return a.ndim == 2 && (a.shape[1] <= 1 || a.strides[1] == a.itemsize) &&
         (a.shape[0] <= 1 || a.strides[0] == a.itemsize * a.shape[1]);
}

// The weight of a product with rows of k elements: rows of float32, float16, bfloat16 as uint16, or blocks of that
// kind.
host::Part dense_part(const py::buffer_info &w, const std::string &named, int64_t k) {
  const host::Kind kind = !named.empty()    ? kind_of(named)
                          : w.format == "f" ? host::Kind::kF32
                          : w.format == "H" ? host::Kind::kBF16
                          : w.format == "e" ? host::Kind::kF16
                                            : host::Kind::kCount;
  if (kind == host::Kind::kCount) throw py::type_error("w must be float32, float16, or bfloat16 as uint16");
  const host::Format &format = host::format_of(kind);
  const host::Part part{{kind, static_cast<const uint8_t *>(w.ptr), k}, w.shape[0]};
  if (k % format.elements != 0) throw py::value_error("rows of that length are no whole blocks");
  if (!named.empty() && format.elements > 1 && w.format != "B") throw py::type_error("blocks must be uint8");
  if (w.shape[1] * w.itemsize != part.weight.row_bytes())
    throw py::value_error("x must be (rows, k), w (n, k) and out (rows, n)");
  return part;
}

void host_products(const py::buffer &x, const py::buffer &w, const py::buffer &out, const std::string &kind) {
  const py::buffer_info xs = x.request(), ws = w.request(), outs = out.request(true);
  if (xs.format != "f" || outs.format != "f") throw py::type_error("x and out must be float32");
  if (!dense(xs) || !dense(ws) || !dense(outs)) throw py::value_error("x, w and out must be matrices, C-contiguous");
  if (outs.shape[0] != xs.shape[0] || outs.shape[1] != ws.shape[0])
    throw py::value_error("x must be (rows, k), w (n, k) and out (rows, n)");
  host::Linear linear{};
  linear.x = static_cast<const float *>(xs.ptr);
  linear.rows = xs.shape[0];
  linear.k = xs.shape[1];
  linear.parts = {dense_part(ws, kind, linear.k)};
  linear.out = static_cast<float *>(outs.ptr);
  const NoGil released;
  linear.run();
}

// The buffer of C-contiguous elements of that format and number of axes.
py::buffer_info checked_buffer(const py::buffer &buffer, const char *format, int64_t axes, const char *what) {
  py::buffer_info info = buffer.request();
  int64_t step = info.itemsize;
  bool fits = info.format == format && info.ndim == axes;
  for (int64_t axis = info.ndim - 1; fits && axis >= 0; --axis) {
    fits = info.shape[axis] <= 1 || info.strides[axis] == step;
    step *= info.shape[axis];
  }
  if (!fits) throw py::value_error(std::string(what) + " has another type or shape, or is not contiguous");
  return info;
}

// As host_attention(), on memory of NumPy and at once. q: (rows, heads dim), slots: (rows, blocks).
void host_attend(const py::buffer &q, const py::buffer &positions, const py::buffer &slots, const py::buffer &k,
                 const py::buffer &v, const py::buffer &out, float scale, int64_t window, float cap,
                 const py::object &sinks, int64_t chunk) {
  const py::buffer_info queries = checked_buffer(q, "f", 2, "q"),
                        where = checked_buffer(positions, "i", 1, "positions"),
                        table = checked_buffer(slots, "i", 2, "slots"), keys = checked_buffer(k, "f", 4, "k"),
                        values = checked_buffer(v, "f", 4, "v"), result = checked_buffer(out, "f", 2, "out");
  host::Attention all{};
  all.qkv = static_cast<float *>(queries.ptr);
  all.positions = static_cast<const int32_t *>(where.ptr);
  all.slots = static_cast<const int32_t *>(table.ptr);
  all.k = static_cast<float *>(keys.ptr);
  all.v = static_cast<float *>(values.ptr);
  all.out = static_cast<float *>(result.ptr);
  all.rows = queries.shape[0];
  all.width = queries.shape[1];
  all.slot_count = keys.shape[0];
  all.kv_heads = keys.shape[1];
  all.size = keys.shape[2];
  all.dim = keys.shape[3];
  all.blocks = table.shape[1];
  all.heads = all.dim > 0 ? all.width / all.dim : 0;
  all.window = window;
  all.chunk = chunk;
  all.scale = scale;
  all.cap = cap;
  if (all.heads < 1 || all.kv_heads < 1 || all.heads * all.dim != all.width || all.heads % all.kv_heads != 0 ||
      keys.shape != values.shape || queries.shape != result.shape || where.shape[0] != all.rows ||
      table.shape[0] != all.rows)
    throw py::value_error("q, positions, slots, k, v and out do not fit each other");
  if (!sinks.is_none()) {
    const py::buffer_info each = checked_buffer(py::cast<py::buffer>(sinks), "f", 1, "sinks");
    if (each.shape[0] != all.heads) throw py::value_error("sinks are not one for each head");
    all.sinks = static_cast<const float *>(each.ptr);
  }
  if (!all.sound()) raise_named("InvalidSpecError", "a row stands at a position or in a slot that the cache has not");
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  const NoGil released;
  all.step();
}

}  // namespace

void bind_host_model(py::module_ &m) {
  m.def("host_products", host_products, py::arg("x"), py::arg("w"), py::arg("out"), py::arg("kind") = "");
  m.def("host_linear", host_linear, py::arg("x"), py::arg("out"), py::arg("parts"), py::arg("bias") = py::none(),
        py::arg("norm") = py::none(), py::arg("after") = "store");
  m.def("host_place", host_place, py::arg("qkv"), py::arg("positions"), py::arg("slots"), py::arg("k"), py::arg("v"),
        py::arg("tables") = py::none(), py::arg("q_norm") = py::none(), py::arg("k_norm") = py::none());
  m.def("host_attention", host_attention, py::arg("qkv"), py::arg("positions"), py::arg("slots"), py::arg("k"),
        py::arg("v"), py::arg("out"), py::arg("scale"), py::arg("window") = 0, py::arg("cap") = 0.0F,
        py::arg("sinks") = py::none(), py::arg("chunk") = 0);
  m.def("host_attend", host_attend, py::arg("q"), py::arg("positions"), py::arg("slots"), py::arg("k"), py::arg("v"),
        py::arg("out"), py::arg("scale"), py::arg("window") = 0, py::arg("cap") = 0.0F, py::arg("sinks") = py::none(),
        py::arg("chunk") = 0);
  m.def("host_rows", host_rows, py::arg("numbers"), py::arg("part"), py::arg("out"));
  m.def("host_kernels", [] { return host::kernels().name; });
  m.def("host_threads", [] { return crew_size(); });
}

}  // namespace pk
