// embedding.cu: rows of a table by number; moves words of the largest size that table, rows and output allow.
#include "numeric.cuh"
#include "report.cuh"

namespace pk {

struct EmbeddingCall {
  long long ids, rows;              // how many ids there are, and rows in the table
  long long words;                  // of a row
  long long start, row_step, step;  // of the table, in words
  long long ids_start, ids_step;
};

struct alignas(16) Word16 {
  unsigned long long v[2];
};

template <class W, class I>
__global__ void __launch_bounds__(256)
    embedding(const W *table, const I *ids, W *out, long long *report, const __grid_constant__ EmbeddingCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.ids * call.words) return;
  long long which, word;
  if (call.ids * call.words <= 0x7fffffffLL) {
    which = static_cast<unsigned>(i) / static_cast<unsigned>(call.words);
    word = static_cast<unsigned>(i) % static_cast<unsigned>(call.words);
  } else {
    which = i / call.words;
    word = i % call.words;
  }
  const long long row = static_cast<long long>(ids[call.ids_start + which * call.ids_step]);
  if (row >= 0 && row < call.rows) {
    out[i] = table[call.start + row * call.row_step + word * call.step];
  } else {
    out[i] = W{};
    report_index(report, row, 0, call.rows);
  }
}

}  // namespace pk
