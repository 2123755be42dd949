// copies.h: moving bytes between host and device, in rows.
#pragma once
#include "program/streams.h"

namespace pk::program {

// Rows of rows: a side of a copy or a fill.
struct Box {
  uint64_t address = 0;
  uint64_t pitch = 0, slice_pitch = 0;  // from row to row and from slice to slice, in bytes
};
struct Extent {
  uint64_t width_bytes = 0, rows = 1, slices = 1;
};

// On the stream. The kind is compared with where the addresses are.
cudaError_t copy(Stream &stream, const Box &to, const Box &from, const Extent &extent, cudaMemcpyKind kind,
                 const char *call);
cudaError_t fill(Stream &stream, const Box &to, const Extent &extent, uint32_t pattern, uint32_t width_bytes,
                 const char *call);

// arrays.cpp: between memory and arrays, of up to three dimensions.
cudaError_t copy_3d(Stream &stream, const cudaMemcpy3DParms &copy);

}  // namespace pk::program
