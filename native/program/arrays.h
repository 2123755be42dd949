// arrays.h: arrays, which textures and surfaces read and write.
#pragma once
#include "program/state.h"

namespace pk::program {

struct Array {
  uint64_t handle = 0;  // the driver's
  pk_array shape = {};  // of this level, where it is one
  cudaChannelFormatDesc format = {};
  bool is_level = false;  // goes with its mipmapped array
  std::vector<Array *> levels;
  uint32_t element_bytes() const { return shape.channels * pk_format_bytes(shape.format); }
  uint64_t rows() const { return shape.height > 0 ? shape.height : 1; }
  uint64_t slices() const { return shape.depth > 0 ? shape.depth : 1; }
  uint64_t row_bytes() const { return shape.width * element_bytes(); }
};
// Null: no such array.
Array *find_array(const void *array);
// The driver's format and number of channels; false for what no array has.
bool format_of(const cudaChannelFormatDesc &description, uint32_t *format, uint32_t *channels);
void forget_arrays();

}  // namespace pk::program
