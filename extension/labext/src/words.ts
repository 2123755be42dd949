// The words of CUDA C++: what the editor colours, completes and explains. One line of TABLE: names | signature | sentence.

export interface Word {
  readonly name: string;
  readonly signature: string;
  readonly sentence: string;
}

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

export const CONTROL = words(`
alignas auto break case catch class const constexpr consteval continue decltype default delete do else enum explicit extern final for
friend goto if inline mutable namespace new noexcept operator override private protected public register return sizeof static
static_assert static_cast dynamic_cast reinterpret_cast const_cast struct switch template this throw try typedef typename union using
virtual volatile while concept requires asm`);

const TABLE = `
__global__ | __global__ void kernel(...) | A kernel: runs on the GPU and is launched from the host; it returns void.
__device__ | __device__ type function(...) | A function or variable of the GPU; a function is called from device code only.
__host__ | __host__ type function(...) | A function of the host; together with __device__ it is compiled for both.
__shared__ | __shared__ type name[n] | Memory that the threads of one block share; extern __shared__ gets its size at launch.
__constant__ | __constant__ type name | Read-only memory of the whole grid, cached; the host writes it before a launch.
__managed__ | __managed__ type name | A variable that host and device reach at one address.
__restrict__ | type* __restrict__ name | Promises that no other pointer reaches the same elements, so loads may be reordered.
__launch_bounds__ | __launch_bounds__(maxThreads, minBlocks) | Most threads of a block and fewest blocks of a multiprocessor: limits the registers of a thread.
__forceinline__ | __forceinline__ type function(...) | Always put the function into its callers.
__noinline__ | __noinline__ type function(...) | Never put the function into its callers.
threadIdx | const uint3 threadIdx | Index of this thread in its block: .x, .y, .z, from 0.
blockIdx | const uint3 blockIdx | Index of this block in the grid: .x, .y, .z, from 0.
blockDim | const dim3 blockDim | Threads of a block along each axis.
gridDim | const dim3 gridDim | Blocks of the grid along each axis.
warpSize | const int warpSize | Threads of a warp: 32 on every device.
dim3 | dim3(x, y = 1, z = 1) | Three extents, those left out are 1.
__syncthreads | void __syncthreads() | Waits for all threads of the block; what they wrote to memory before is then seen by all of them.
__syncthreads_count | int __syncthreads_count(int predicate) | A __syncthreads() that returns for how many threads the predicate is not zero.
__syncthreads_and | int __syncthreads_and(int predicate) | A __syncthreads() that returns whether the predicate is not zero for all threads.
__syncthreads_or | int __syncthreads_or(int predicate) | A __syncthreads() that returns whether the predicate is not zero for any thread.
__syncwarp | void __syncwarp(unsigned mask = 0xffffffff) | Waits for the warp's threads in the mask and orders their memory accesses.
__activemask | unsigned __activemask() | Mask of the warp's threads that run this instruction now; it is no means to synchronise.
__threadfence | void __threadfence() | Orders this thread's writes before and after it, as seen by the device.
__threadfence_block | void __threadfence_block() | Orders this thread's writes before and after it, as seen by its block.
__threadfence_system | void __threadfence_system() | Orders this thread's writes before and after it, as seen by host and all devices.
__shfl_sync | T __shfl_sync(unsigned mask, T value, int lane, int width = 32) | The value of another lane of the warp.
__shfl_up_sync | T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) | The value of the lane delta below; the first delta lanes keep their own.
__shfl_down_sync | T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) | The value of the lane delta above; the last delta lanes keep their own.
__shfl_xor_sync | T __shfl_xor_sync(unsigned mask, T value, int laneMask, int width = 32) | The value of the lane whose number differs in the bits of laneMask.
__ballot_sync | unsigned __ballot_sync(unsigned mask, int predicate) | A bit for each lane in the mask: whether its predicate is not zero.
__all_sync | int __all_sync(unsigned mask, int predicate) | Whether the predicate is not zero for all lanes in the mask.
__any_sync | int __any_sync(unsigned mask, int predicate) | Whether the predicate is not zero for any lane in the mask.
__match_any_sync | unsigned __match_any_sync(unsigned mask, T value) | Mask of the lanes that have the same value as this one.
__match_all_sync | unsigned __match_all_sync(unsigned mask, T value, int* same) | The mask if all lanes have the same value, else 0; *same says which.
__reduce_add_sync __reduce_min_sync __reduce_max_sync | T name(unsigned mask, T value) | Reduces 32-bit integers over the lanes in the mask (SM 8.0).
__reduce_and_sync __reduce_or_sync __reduce_xor_sync | unsigned name(unsigned mask, unsigned value) | Combines bits over the lanes in the mask (SM 8.0).
atomicAdd | T atomicAdd(T* address, T value) | Adds in one step and returns the old value; sums of floats depend on the order of arrival.
atomicSub | T atomicSub(T* address, T value) | Subtracts in one step and returns the old value.
atomicExch | T atomicExch(T* address, T value) | Stores a value in one step and returns the old one.
atomicMin atomicMax | T name(T* address, T value) | Keeps the smaller or larger value in one step and returns the old one.
atomicInc | unsigned atomicInc(unsigned* address, unsigned limit) | Adds one, from limit on starts again at 0; returns the old value.
atomicDec | unsigned atomicDec(unsigned* address, unsigned limit) | Subtracts one, at 0 or above limit starts again at limit; returns the old value.
atomicCAS | T atomicCAS(T* address, T expected, T value) | Stores the value if the old one is the expected one; returns the old one.
atomicAnd atomicOr atomicXor | T name(T* address, T value) | Combines bits in one step and returns the old value.
__ldg | T __ldg(const T* address) | Loads through the read-only data cache.
__ldcs | T __ldcs(const T* address) | Loads what is likely to be read once: evicted first from the caches.
__ldca | T __ldca(const T* address) | Loads and caches at all levels.
__stcs | void __stcs(T* address, T value) | Stores what is likely to be read once: evicted first from the caches.
__popc __popcll | int name(unsigned value) | Number of bits that are 1, of 32 or 64.
__clz __clzll | int name(int value) | Number of leading bits that are 0, of 32 or 64.
__ffs __ffsll | int name(int value) | Position of the lowest bit that is 1, counted from 1; 0 for none.
__brev | unsigned __brev(unsigned value) | The 32 bits in reverse order.
__mul24 | int __mul24(int x, int y) | Low 32 bits of the product of the low 24 bits.
__fmaf_rn | float __fmaf_rn(float x, float y, float z) | x * y + z, rounded once to the nearest.
__frcp_rn | float __frcp_rn(float x) | 1 / x, rounded to the nearest.
__fdividef | float __fdividef(float x, float y) | x / y, fast and approximate: 0 for very large y.
__expf __logf __log2f __sinf __cosf | float name(float x) | Fast approximation by the special function unit; see the CUDA guide for its error.
__powf | float __powf(float x, float y) | Fast approximation of x to the power of y.
__saturatef | float __saturatef(float x) | x clamped to [0, 1]; NaN becomes 0.
__float2int_rn | int __float2int_rn(float x) | To an integer, rounded to the nearest, ties to even.
__int2float_rn | float __int2float_rn(int x) | To a float, rounded to the nearest, ties to even.
__float_as_int | int __float_as_int(float x) | The bits of a float as an integer.
__int_as_float | float __int_as_float(int x) | The bits of an integer as a float.
__float2half | __half __float2half(float x) | To half precision, rounded to the nearest.
__half2float | float __half2float(__half x) | From half precision, exact.
__float2bfloat16 | __nv_bfloat16 __float2bfloat16(float x) | To bfloat16, rounded to the nearest.
__bfloat162float | float __bfloat162float(__nv_bfloat16 x) | From bfloat16, exact.
__nanosleep | void __nanosleep(unsigned ns) | Suspends the thread for about that many nanoseconds, at most twice as long.
clock clock64 | clock_t name() | The multiprocessor's cycle counter.
printf | int printf(const char* format, ...) | Prints from the kernel; the text appears when the kernel is waited for.
assert | void assert(condition) | Stops the kernel with an error where the condition is false.
sqrtf sqrt | T name(T x) | Square root, correctly rounded.
rsqrtf rsqrt | T name(T x) | 1 / square root.
cbrtf | float cbrtf(float x) | Cube root.
expf exp exp2f expm1f | T name(T x) | Exponential function: to the base e or 2; expm1f is e^x - 1, exact near 0.
logf log log2f log10f log1pf | T name(T x) | Logarithm to the base e, 2 or 10; log1pf is log(1 + x), exact near 0.
powf pow | T name(T x, T y) | x to the power of y.
sinf sin cosf cos tanf tan | T name(T x) | Trigonometric function of an angle in radians.
sincosf | void sincosf(float x, float* sine, float* cosine) | Sine and cosine of one angle in radians.
asinf acosf atanf | float name(float x) | Inverse trigonometric function, in radians.
atan2f | float atan2f(float y, float x) | Angle of the point (x, y), in radians, in (-pi, pi].
sinhf coshf tanhf tanh | T name(T x) | Hyperbolic function.
erff erfcf | float name(float x) | Error function, or 1 minus it.
tgammaf lgammaf | float name(float x) | Gamma function, or the logarithm of its absolute value.
fmaf fma | T name(T x, T y, T z) | x * y + z, rounded once.
fmaxf fmax fminf fmin max min | T name(T x, T y) | The larger or smaller; of a NaN and a number, the number (floats).
fabsf fabs abs | T name(T x) | Absolute value.
floorf floor ceilf ceil roundf round truncf rintf | T name(T x) | To a whole number: down, up, to the nearest (ties away from 0), towards 0, to the nearest (ties to even).
fmodf | float fmodf(float x, float y) | Remainder of x / y with the sign of x.
hypotf | float hypotf(float x, float y) | Square root of x * x + y * y without overflow in between.
copysignf | float copysignf(float x, float y) | The size of x with the sign of y.
isnan isinf | bool name(T x) | Whether x is a NaN, or infinite.
half __half | half | A 16-bit float (IEEE binary16); include cuda_fp16.h.
half2 __half2 | half2 | Two 16-bit floats that are computed with at once; include cuda_fp16.h.
__nv_bfloat16 | __nv_bfloat16 | A 16-bit float with the exponent of a 32-bit one; include cuda_bf16.h.
__nv_bfloat162 | __nv_bfloat162 | Two bfloat16 that are computed with at once; include cuda_bf16.h.
size_t | size_t | An unsigned integer that holds any size in bytes: 64 bits.
int8_t int16_t int32_t int64_t | name | A signed integer of exactly that many bits.
uint8_t uint16_t uint32_t uint64_t | name | An unsigned integer of exactly that many bits.
`;

const VECTORS = 'char uchar short ushort int uint long ulong longlong ulonglong float double'.split(' ');

function* table(): Generator<Word> {
  for (const row of TABLE.trim().split('\n')) {
    const [names = '', signature = '', sentence = ''] = row.split(' | ');
    for (const name of names.split(' ')) yield { name, signature: signature.replace(/\bname\b/, name), sentence };
  }
  for (const base of VECTORS) {
    for (const n of [1, 2, 3, 4]) {
      const type = `${base}${n}`;
      const parts = 'xyzw'.slice(0, n).split('').join(', ');
      yield { name: type, signature: `${type} { ${parts} }`, sentence: `A vector of ${n}: ${parts}; aligned accesses load it in one step.` };
      yield { name: `make_${type}`, signature: `${type} make_${type}(${parts})`, sentence: `Makes a ${type}.` };
    }
  }
}

/** Everything that is explained, by name. */
export const WORDS: ReadonlyMap<string, Word> = new Map([...table()].map((word) => [word.name, word]));

export const QUALIFIERS = words(`
__global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__ __launch_bounds__ __forceinline__ __noinline__`);

export const TYPES: ReadonlySet<string> = new Set([
  ...words('bool char double float int long short signed unsigned void half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 dim3 size_t'),
  ...words('int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t wchar_t char8_t char16_t char32_t'),
  ...VECTORS.flatMap((base) => [1, 2, 3, 4].map((n) => `${base}${n}`)),
]);
