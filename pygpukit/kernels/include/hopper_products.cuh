// hopper_products.cuh: products that a group of four warps of SM 9.0 makes of tiles in shared memory while it goes on:
// 64 rows of one times 64 to 256 columns of another, 32 bytes along k. Inline PTX.
#pragma once
#include "hopper.cuh"

namespace pk::hopper {

#define PK_NUMBERS_32                                                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PK_NUMBERS_64                                                                            \
  PK_NUMBERS_32                                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PK_NUMBERS_80 PK_NUMBERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define PK_NUMBERS_96 \
  PK_NUMBERS_80       \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PK_NUMBERS_128                                                                             \
  PK_NUMBERS_96                                                                                    \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PK_EIGHT(s, i)                                                                                        \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), \
      "+f"(s[i + 7])
#define PK_THIRTY_TWO(s, i) PK_EIGHT(s, i), PK_EIGHT(s, i + 8), PK_EIGHT(s, i + 16), PK_EIGHT(s, i + 24)
#define PK_SUMS_32(s) PK_THIRTY_TWO(s, 0)
#define PK_SUMS_64(s) PK_SUMS_32(s), PK_THIRTY_TWO(s, 32)
#define PK_SUMS_80(s) PK_SUMS_64(s), PK_EIGHT(s, 64), PK_EIGHT(s, 72)
#define PK_SUMS_96(s) PK_SUMS_64(s), PK_THIRTY_TWO(s, 64)
#define PK_SUMS_128(s) PK_SUMS_96(s), PK_THIRTY_TWO(s, 96)
// left, right, add, turns: numbers of the operands that follow the sums.
#define PK_PRODUCT(Element, columns, kind, numbers, outputs, left, right, add, turns)                              \
  template <int ATransposed, int BTransposed>                                                                      \
  __device__ __forceinline__ void start_product(Element, Sums<columns> &sums, unsigned long long a,                \
                                                unsigned long long b, int more) {                                  \
    asm volatile(                                                                                                  \
        "{\n"                                                                                                      \
        ".reg .pred add;\n"                                                                                        \
        "setp.ne.b32 add, %" add                                                                                   \
        ", 0;\n"                                                                                                   \
        "wgmma.mma_async.sync.aligned.m64n" #columns kind " {" numbers "}, %" left ", %" right ", add, 1, 1" turns \
        ";\n"                                                                                                      \
        "}"                                                                                                        \
        : outputs(sums)                                                                                            \
        : "l"(a), "l"(b), "r"(more), "n"(ATransposed), "n"(BTransposed));                                          \
  }
#define PK_PRODUCT_128(Element, kind, turns) \
  PK_PRODUCT(Element, 128, kind, PK_NUMBERS_64, PK_SUMS_64, "64", "65", "66", turns)
#define PK_PRODUCT_192(Element, kind, turns) \
  PK_PRODUCT(Element, 192, kind, PK_NUMBERS_96, PK_SUMS_96, "96", "97", "98", turns)
#define PK_PRODUCT_256(Element, kind, turns) \
  PK_PRODUCT(Element, 256, kind, PK_NUMBERS_128, PK_SUMS_128, "128", "129", "130", turns)
#define PK_HALF_PRODUCTS(Element, kind)                                                     \
  PK_PRODUCT(Element, 64, kind, PK_NUMBERS_32, PK_SUMS_32, "32", "33", "34", ", %35, %36")  \
  PK_PRODUCT_128(Element, kind, ", %67, %68")                                               \
  PK_PRODUCT(Element, 160, kind, PK_NUMBERS_80, PK_SUMS_80, "80", "81", "82", ", %83, %84") \
  PK_PRODUCT_192(Element, kind, ", %99, %100")                                              \
  PK_PRODUCT_256(Element, kind, ", %131, %132")
PK_HALF_PRODUCTS(half_t, "k16.f32.f16.f16")
PK_HALF_PRODUCTS(bfloat16_t, "k16.f32.bf16.bf16")
PK_PRODUCT_128(e4m3_t, "k32.f32.e4m3.e4m3", "")
PK_PRODUCT_256(e4m3_t, "k32.f32.e4m3.e4m3", "")
PK_PRODUCT_128(e5m2_t, "k32.f32.e5m2.e5m2", "")
PK_PRODUCT_256(e5m2_t, "k32.f32.e5m2.e5m2", "")
PK_PRODUCT_128(float, "k8.f32.tf32.tf32", "")  // of the upper 19 bits
PK_PRODUCT_192(float, "k8.f32.tf32.tf32", "")
PK_PRODUCT_256(float, "k8.f32.tf32.tf32", "")
// 64 rows of floats that are in registers, as tf32, of k lane % 4: of row lane / 4 of the warp's 16 and of row 8
// further, then those of k 4 further.
#define PK_HELD_PRODUCT(columns, numbers, outputs, left, right, add)                                              \
  __device__ __forceinline__ void start_product(Sums<columns> &sums, const unsigned(&a)[4], unsigned long long b, \
                                                int more) {                                                       \
    asm volatile(                                                                                                 \
        "{\n"                                                                                                     \
        ".reg .pred add;\n"                                                                                       \
        "setp.ne.b32 add, %" add                                                                                  \
        ", 0;\n"                                                                                                  \
        "wgmma.mma_async.sync.aligned.m64n" #columns "k8.f32.tf32.tf32 {" numbers "}, {" left "}, %" right        \
        ", add, 1, 1;\n"                                                                                          \
        "}"                                                                                                       \
        : outputs(sums)                                                                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));                                         \
  }
PK_HELD_PRODUCT(64, PK_NUMBERS_32, PK_SUMS_32, "%32, %33, %34, %35", "36", "37")
PK_HELD_PRODUCT(128, PK_NUMBERS_64, PK_SUMS_64, "%64, %65, %66, %67", "68", "69")
#undef PK_HELD_PRODUCT
#undef PK_HALF_PRODUCTS
#undef PK_PRODUCT_256
#undef PK_PRODUCT_192
#undef PK_PRODUCT_128
#undef PK_PRODUCT
#undef PK_SUMS_128
#undef PK_SUMS_96
#undef PK_SUMS_80
#undef PK_SUMS_64
#undef PK_SUMS_32
#undef PK_THIRTY_TWO
#undef PK_EIGHT
#undef PK_NUMBERS_128
#undef PK_NUMBERS_96
#undef PK_NUMBERS_80
#undef PK_NUMBERS_64
#undef PK_NUMBERS_32

// Products of a warp group that are on their way, of tiles that are transposed or not. All its threads call each of
// these functions.
template <class Element, bool ATransposed, bool BTransposed>
struct Products {
  // Before the first product of a batch: sums that were written or read are left to it.
  __device__ __forceinline__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  // sums (+)= a @ b^T, from two descriptors. add: 0 forgets what the sums were. They may not be touched before wait().
  template <int Count>
  __device__ __forceinline__ void start(float (&sums)[Count], unsigned long long a, unsigned long long b, int add) {
    start_product<ATransposed, BTransposed>(Element{}, sums, a, b, add);
  }
  // The same with rows of floats in registers, as start_product() has them; they stay as they are until wait().
  template <int Count>
  __device__ __forceinline__ void start(float (&sums)[Count], const unsigned (&a)[4], unsigned long long b, int add) {
    start_product(sums, a, b, add);
  }
  // Ends a batch.
  __device__ __forceinline__ void end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  // Waits for all batches but the latest few.
  template <int Latest>
  __device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Latest) : "memory");
  }
  // Waits for all. The sums can be read from here on, and by no statement that was moved before it.
  template <int Count>
  __device__ __forceinline__ void wait_for(float (&sums)[Count]) {
    wait<0>();
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
  }
};

}  // namespace pk::hopper
