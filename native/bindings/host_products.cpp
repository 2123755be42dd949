// host_products.cpp: out[r, n] = sum over k of x[r, k] * w[n, k], with an order of additions that depends on K alone.
//
// Each sum has 32 partial sums, of every 32nd element, which are added pairwise at the end; products are rounded before
// they are added. So a sum has the same bits whatever other rows are computed with it, on any number of threads, and on
// every processor. Rows of w are dealt out in small parts: a thread that the system has put aside holds nobody up for
// longer than one of them takes.
#include "bindings/host_products.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "bindings/gil.h"

namespace py = pybind11;

namespace pk {
namespace {

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define PK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PK_CLONES
#endif

constexpr int kLanes = 16;            // of a partial result; there are two of them
constexpr int kStep = 2 * kLanes;     // elements of a row that are read at once
constexpr int64_t kPart = 128 << 10;  // bytes of w that a thread takes at a time

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t)), aligned(2), may_alias));
typedef uint32_t Words __attribute__((vector_size(kLanes * sizeof(uint32_t))));

enum class Kind { kFloat32, kBFloat16, kFloat16 };

struct Product {
  const float *x;
  const char *w;
  float *out;
  int64_t rows, n, k;
  Kind kind;
};

inline __attribute__((always_inline)) Lanes load(const float *from) { return *reinterpret_cast<const Lanes *>(from); }
inline __attribute__((always_inline)) Lanes load_bfloat16(const uint16_t *from) {
  const Words bits = __builtin_convertvector(*reinterpret_cast<const Halves *>(from), Words) << 16;
  return reinterpret_cast<const Lanes &>(bits);
}
// Exact for every float16: the exponent is moved, and what became too small by that is scaled back.
inline __attribute__((always_inline)) Lanes load_float16(const uint16_t *from) {
  const Words wide = __builtin_convertvector(*reinterpret_cast<const Halves *>(from), Words);
  const Words magnitude = (wide & 0x7fffu) << 13;
  const Lanes scaled = reinterpret_cast<const Lanes &>(magnitude) * 0x1p112f;
  const Words special = (magnitude >= (0x7c00u << 13)) & 0x7f800000u;  // infinities and NaN
  const Words bits = reinterpret_cast<const Words &>(scaled) | special | ((wide & 0x8000u) << 16);
  return reinterpret_cast<const Lanes &>(bits);
}

template <Kind kKind>
inline __attribute__((always_inline)) Lanes weight(const char *row, int64_t at) {
  if constexpr (kKind == Kind::kFloat32)
    return load(reinterpret_cast<const float *>(row) + at);
  else if constexpr (kKind == Kind::kBFloat16)
    return load_bfloat16(reinterpret_cast<const uint16_t *>(row) + at);
  else
    return load_float16(reinterpret_cast<const uint16_t *>(row) + at);
}

inline __attribute__((always_inline)) float added(const Lanes &a, const Lanes &b) {
  float sum[kLanes];
  for (int i = 0; i < kLanes; ++i) sum[i] = a[i] + b[i];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sum[i] += sum[i + width];
  return sum[0];
}

// kRows rows of x with one row of w. `padded`: the last, incomplete step of that row of w, followed by zeros.
template <Kind kKind, int kRows>
inline __attribute__((always_inline)) void dots(const Product &p, const float *x, const float *x_end, const char *w,
                                                const char *w_end, float *out) {
  Lanes first[kRows] = {}, second[kRows] = {};
  const int64_t whole = p.k / kStep * kStep;
  for (int64_t k = 0; k < whole; k += kStep) {
    const Lanes a = weight<kKind>(w, k), b = weight<kKind>(w, k + kLanes);
    for (int r = 0; r < kRows; ++r) {
      first[r] += a * load(x + r * p.k + k);
      second[r] += b * load(x + r * p.k + k + kLanes);
    }
  }
  if (whole < p.k) {
    const Lanes a = weight<kKind>(w_end, 0), b = weight<kKind>(w_end, kLanes);
    for (int r = 0; r < kRows; ++r) {
      first[r] += a * load(x_end + r * kStep);
      second[r] += b * load(x_end + r * kStep + kLanes);
    }
  }
  for (int r = 0; r < kRows; ++r) out[r * p.n] = added(first[r], second[r]);
}

template <Kind kKind>
inline __attribute__((always_inline)) void part(const Product &p, const float *ends, int64_t begin, int64_t end) {
  const int64_t size = kKind == Kind::kFloat32 ? 4 : 2, left = p.k % kStep;
  alignas(64) char padded[kStep * sizeof(float)] = {};
  for (int64_t row = begin; row < end; ++row) {
    const char *w = p.w + row * p.k * size;
    if (left != 0) std::memcpy(padded, w + (p.k - left) * size, static_cast<size_t>(left * size));
    int64_t r = 0;
    for (; r + 4 <= p.rows; r += 4)
      dots<kKind, 4>(p, p.x + r * p.k, ends + r * kStep, w, padded, p.out + r * p.n + row);
    for (; r < p.rows; ++r) dots<kKind, 1>(p, p.x + r * p.k, ends + r * kStep, w, padded, p.out + r * p.n + row);
  }
}

PK_CLONES void part_float32(const Product &p, const float *ends, int64_t begin, int64_t end) {
  part<Kind::kFloat32>(p, ends, begin, end);
}
PK_CLONES void part_bfloat16(const Product &p, const float *ends, int64_t begin, int64_t end) {
  part<Kind::kBFloat16>(p, ends, begin, end);
}
PK_CLONES void part_float16(const Product &p, const float *ends, int64_t begin, int64_t end) {
  part<Kind::kFloat16>(p, ends, begin, end);
}

// Parts of one product, dealt out to the threads that ask.
class Job {
 public:
  Job(const Product &product, const float *ends) : product_(product), ends_(ends) {
    const int64_t row_bytes = product.k * (product.kind == Kind::kFloat32 ? 4 : 2);
    rows_ = row_bytes > 0 ? std::max<int64_t>(1, kPart / row_bytes) : product.n;
  }
  void work() {
    for (;;) {
      const int64_t begin = next_.fetch_add(rows_);
      if (begin >= product_.n) return;
      const int64_t end = std::min(begin + rows_, product_.n);
      switch (product_.kind) {
        case Kind::kFloat32:
          part_float32(product_, ends_, begin, end);
          break;
        case Kind::kBFloat16:
          part_bfloat16(product_, ends_, begin, end);
          break;
        case Kind::kFloat16:
          part_float16(product_, ends_, begin, end);
          break;
      }
    }
  }
  bool small() const { return product_.n <= rows_; }

 private:
  Product product_;
  const float *ends_;
  int64_t rows_;
  std::atomic<int64_t> next_{0};
};

// Threads that help whoever computes; one job at a time has them, others compute alone meanwhile. They live as long as
// the process, and a forked child starts its own.
class Helpers {
 public:
  explicit Helpers(unsigned count) {
    for (unsigned i = 0; i < count; ++i) std::thread([this] { run(); }).detach();
  }
  void compute(Job &job) {
    bool mine = false;
    if (!job.small()) {
      std::lock_guard<std::mutex> hold(lock_);
      if (job_ == nullptr) {
        job_ = &job;
        mine = true;
        ++number_;
      }
    }
    if (mine) come_.notify_all();
    job.work();
    if (!mine) return;
    std::unique_lock<std::mutex> hold(lock_);
    job_ = nullptr;
    gone_.wait(hold, [this] { return busy_ == 0; });
  }

 private:
  void run() {
    uint64_t seen = 0;
    for (;;) {
      std::unique_lock<std::mutex> hold(lock_);
      come_.wait(hold, [&] { return job_ != nullptr && number_ != seen; });
      seen = number_;
      Job *job = job_;
      ++busy_;
      hold.unlock();
      job->work();
      hold.lock();
      if (--busy_ == 0) gone_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable come_, gone_;
  Job *job_ = nullptr;
  uint64_t number_ = 0;
  int busy_ = 0;
};

std::atomic<Helpers *> g_helpers{nullptr};
std::mutex g_making;

Helpers &helpers() {
  if (Helpers *found = g_helpers.load()) return *found;
  std::lock_guard<std::mutex> hold(g_making);
  if (g_helpers.load() == nullptr) {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { g_helpers.store(nullptr); });
    (void)registered;
    const unsigned cores = std::thread::hardware_concurrency();
    g_helpers.store(new Helpers(cores > 1 ? cores - 1 : 0));  // never freed: its threads may still look at it
  }
  return *g_helpers.load();
}

Kind kind_of(const py::buffer_info &w) {
  if (w.format == "f") return Kind::kFloat32;
  if (w.format == "H") return Kind::kBFloat16;
  if (w.format == "e") return Kind::kFloat16;
  throw py::type_error("w must be float32, float16, or bfloat16 as uint16");
}

bool dense(const py::buffer_info &a) {
  return a.ndim == 2 && (a.shape[1] <= 1 || a.strides[1] == a.itemsize) &&
         (a.shape[0] <= 1 || a.strides[0] == a.itemsize * a.shape[1]);
}

void host_products(const py::buffer &x, const py::buffer &w, const py::buffer &out) {
  const py::buffer_info xs = x.request(), ws = w.request(), outs = out.request(true);
  if (xs.format != "f" || outs.format != "f") throw py::type_error("x and out must be float32");
  if (!dense(xs) || !dense(ws) || !dense(outs)) throw py::value_error("x, w and out must be matrices, C-contiguous");
  if (xs.shape[1] != ws.shape[1] || outs.shape[0] != xs.shape[0] || outs.shape[1] != ws.shape[0])
    throw py::value_error("x must be (rows, k), w (n, k) and out (rows, n)");
  const Product product{static_cast<const float *>(xs.ptr),
                        static_cast<const char *>(ws.ptr),
                        static_cast<float *>(outs.ptr),
                        xs.shape[0],
                        ws.shape[0],
                        ws.shape[1],
                        kind_of(ws)};
  const int64_t left = product.k % kStep;
  std::vector<float> ends(static_cast<size_t>(left != 0 ? product.rows * kStep : 0));
  for (int64_t r = 0; left != 0 && r < product.rows; ++r)
    std::memcpy(&ends[static_cast<size_t>(r * kStep)], product.x + (r + 1) * product.k - left,
                static_cast<size_t>(left) * sizeof(float));
  const NoGil released;
  Job job(product, ends.data());
  helpers().compute(job);
}

}  // namespace

void bind_host_products(py::module_ &m) {
  m.def("host_products", host_products, py::arg("x"), py::arg("w"), py::arg("out"));
}

}  // namespace pk
