"""Kernels that no process should have to survive, each with what its end is called; and a program that runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

FAULT, COMPILE, RUNS = "DriverError", "CompileError", "runs"  # what the kernel's end is


def _kernel(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(int* o) {{ {body} }}"


C_LIBRARY = {
    "abort": ("void abort()", "abort();"),
    "exit": ("void exit(int)", "exit(3);"),
    "_exit": ("void _exit(int)", "_exit(3);"),
    "_Exit": ("void _Exit(int)", "_Exit(3);"),
    "quick_exit": ("void quick_exit(int)", "quick_exit(3);"),
    "raise": ("int raise(int)", "raise(9);"),
    "kill": ("int kill(int, int)", "kill(0, 9);"),
    "tgkill": ("long syscall(long, ...)", "syscall(231, 1);"),
    "system": ("int system(const char*)", 'system("touch /tmp/pygpukit-hostile");'),
    "popen": ("void* popen(const char*, const char*)", 'popen("true", "r");'),
    "fork": ("int fork()", "o[0] = fork();"),
    "vfork": ("int vfork()", "o[0] = vfork();"),
    "execv": ("int execv(const char*, char* const*)", 'execv("/bin/true", 0);'),
    "posix_spawn": ("int posix_spawn(...)", "posix_spawn();"),
    "longjmp": ("void longjmp(void*, int)", "longjmp(o, 1);"),
    "siglongjmp": ("void siglongjmp(void*, int)", "siglongjmp(o, 1);"),
    "setjmp": ("int _setjmp(void*)", "_setjmp(o);"),
    "pthread_exit": ("void pthread_exit(void*)", "pthread_exit(0);"),
    "pthread_create": ("int pthread_create(...)", "pthread_create();"),
    "signal": ("void (*signal(int, void (*)(int)))(int)", "signal(11, 0);"),
    "sigaction": ("int sigaction(int, const void*, void*)", "sigaction(11, 0, 0);"),
    "sigaltstack": ("int sigaltstack(const void*, void*)", "sigaltstack(0, 0);"),
    "close": ("int close(int)", "for (int i = 0; i < 1000; ++i) close(i);"),
    "mprotect": ("int mprotect(void*, unsigned long, int)", "mprotect(0, 0, 0);"),
    "munmap": ("int munmap(void*, unsigned long)", "munmap(o, 4096);"),
    "dlopen": ("void* dlopen(const char*, int)", 'dlopen("libm.so.6", 1);'),
    "dlsym": ("void* dlsym(void*, const char*)", 'dlsym(0, "abort");'),
    "fopen": ("void* fopen(const char*, const char*)", 'fopen("/tmp/x", "w");'),
    "open": ("int open(const char*, int, ...)", 'open("/etc/passwd", 0);'),
    "write": ("long write(int, const void*, unsigned long)", 'write(1, "x", 1);'),
    "puts": ("int puts(const char*)", 'puts("x");'),
    "realloc": ("void* realloc(void*, unsigned long)", "realloc(o, 10);"),
    "calloc": ("void* calloc(unsigned long, unsigned long)", "o[0] = *(int*)calloc(10, 10);"),
    "mallopt": ("int mallopt(int, int)", "mallopt(1, 1);"),
    "setenv": ("int setenv(const char*, const char*, int)", 'setenv("PATH", "", 1);'),
    "error": ("void __assert_fail(const char*, const char*, unsigned, const char*)", '__assert_fail("", "", 1, "");'),
    "fortify": ("void __chk_fail()", "__chk_fail();"),
    "weak": ("__attribute__((weak)) void ungetc()", "if (ungetc) ungetc();"),
}
_BUILTINS = {
    "abort": "__builtin_abort();",
    "exit": "__builtin_exit(3);",
    "_exit": "__builtin__exit(3);",
    "execl": '__builtin_execl("/bin/true", "true", (char*)0);',
    "fork": "o[0] = __builtin_fork();",
    "puts": '__builtin_puts("x");',
    "malloc": "o[0] = __builtin_malloc(100) == 0;",
    "free": "__builtin_free(o);",
    "realloc": "__builtin_realloc(o, 100);",
    "printf": '__builtin_printf("%d", o[0]);',
}
_FAULTS = {
    "local array, upwards": "int a[8]; for (int i = 0; i < o[1]; ++i) ((volatile int*)a)[i] = i; o[0] = a[3];",
    "local array, downwards": "int a[8]; for (int i = 0; i < o[1]; ++i) ((volatile int*)a)[-i] = i; o[0] = a[3];",
    "local array, a little": "volatile int a[8]; for (int i = 0; i < 64; ++i) a[i] = 0x41414141; o[0] = a[3];",
    "local array, with zeros": "volatile long a[8]; for (int i = 0; i < 40; ++i) a[i] = 0; o[0] = a[3];",
    "local array, far": "volatile int a[8]; a[1 << 26] = 1; o[0] = a[3];",
    "array of a called function": "volatile char a[16]; for (int i = 0; i < 4000; ++i) a[i] = 0x7f; o[0] = a[3];",
    "double free": "void* p = malloc(100); free(p); free(p);",
    "free inside a block": "char* p = (char*)malloc(100); free(p + 16);",
    "free of an array": "free(o);",
    "free of a local": "int a[4]; free(a);",
    "free of nonsense": "free((void*)0x1234567);",
    "delete twice": "int* p = new int[4]; delete[] p; delete[] p;",
    "delete of nonsense": "delete (int*)0x12345670;",
    "null pointer": "*(volatile int*)0 = 1;",
    "null read": "o[0] = *(volatile int*)8;",
    "wild pointer": "*(volatile int*)0x123456789abcull = 1;",
    "no address at all": "*(volatile int*)0xdeadbeefdeadbeefull = 1;",
    "of the kernel's own code": "*(volatile int*)(void*)k = 1;",
    "a constant text": 'char* t = (char*)"text"; *(volatile char*)t = 1;',
    "wild function": "((void (*)())0x12345)();",
    "null function": "void (*volatile f)() = 0; f();",
    "function of a local array": "int a[4] = {1, 2, 3, 4}; ((void (*)())a)();",
    "function of an array": "((void (*)())o)();",
    "function high up": "((void (*)())0xffffffffff600400ull)();",
    "memory from the heap as a function": "void* p = malloc(4096); ((void (*)())p)();",
    "trap": "__trap();",
    "builtin trap": "__builtin_trap();",
    "assert": "assert(o[0] == 77);",
    "division by zero": "o[0] = 5 / o[2];",
    "one by zero": "o[0] = 1 / o[2];",
    "modulo zero": "o[0] = 5 % o[2];",
    "long division by zero": "o[0] = (int)(5ll / (long long)o[2]);",
    "unsigned modulo zero": "o[0] = (int)(5u % (unsigned)o[2]);",
    "memset over everything": "memset(o, 1, 1ull << 40);",
    "memcpy from nowhere": "memcpy(o, (void*)16, 1 << 20);",
    "memcpy past a local array": "int a[4]; memcpy(a, o, o[3]); o[0] = a[1];",
    "printf of a wild text": 'printf("%s\\n", (const char*)12345);',
    "printf of a wild format": "printf((const char*)12345);",
    "builtin longjmp": "void* b[5] = {o, o, o, o, o}; __builtin_longjmp(b, 1);",
    "past the heap": "char* p = (char*)malloc(64); for (long i = 0; i < 1l << 36; ++i) ((volatile char*)p)[i] = 1;",
    "before the heap": "char* p = (char*)malloc(64); for (long i = 0; i < 1l << 36; ++i) ((volatile char*)p)[-i] = 1;",
    "dynamic shared memory": "extern __shared__ int d[]; for (int i = 0; i < 1 << 28; ++i) ((volatile int*)d)[i] = 1;",
    "the array itself": "for (long i = 0; i < 1l << 36; ++i) ((volatile int*)o)[i] = 1;",
    "unreachable": "if (o[0] == 0) *(volatile int*)1 = 0; __builtin_unreachable();",
    "barrier in one branch": "if (threadIdx.x == 0) { for (;;) __syncthreads(); }",
    "shuffle with a wrong mask": "if (threadIdx.x == 0) __shfl_sync(0xffffffffu, 1, 40); else __syncthreads();",
}
_WITH_BEFORE = {
    "recursion": ("__device__ int f(int n) { volatile int a[64]; a[n % 64] = n; return f(n + 1) + a[3]; }", "o[0] = f(0);"),
    "mutual recursion": ("__device__ int g(int); __device__ int f(int n) { volatile int a[4]; a[0] = n; return g(n) + a[0]; } __device__ int g(int n) { return f(n + 1) + 1; }", "o[0] = f(0);"),
    "recursion that prints": ('__device__ int f(int n) { volatile int a[64]; a[n % 64] = n; printf("%d", n); return f(n + 1) + a[3]; }', "o[0] = f(0);"),
    "recursion that takes memory": ("__device__ int f(int n) { volatile int a[64]; a[n % 64] = n; return malloc(16) ? f(n + 1) + a[3] : 0; }", "o[0] = f(0);"),
    "a huge local array": ("", "volatile int a[1 << 20]; for (int i = 0; i < 1 << 20; ++i) a[i] = i; o[0] = a[5];"),
    "a huge local array, touched at its start": ("", "volatile int a[1 << 20]; a[0] = 1; o[0] = a[0];"),
    "alloca": ("", "volatile char* p = (char*)__builtin_alloca(o[1] * 4096l); p[0] = 1; o[0] = p[0];"),
    "a faulting destructor": ("struct S { int* p; __device__ ~S() { *(volatile int*)p = 1; } };", "S s{(int*)16}; o[0] = 1;"),
    "a pure virtual function": ("struct A { __device__ A() { call(); } __device__ void call() { f(); } __device__ virtual void f() = 0; }; struct B : A { __device__ void f() override {} };", "B b; b.call();"),
    "a wild virtual table": ("struct A { __device__ virtual void f() {} };", "A* a = (A*)malloc(64); memset(a, 0x33, 64); a->f();"),
    "a smashed caller": ("__device__ __noinline__ int f(int* o) { volatile int a[4]; for (int i = 0; i < 200; ++i) a[i] = o[3]; return a[1]; }", "o[0] = f(o);"),
    "a smashed thread of many": ("", "volatile int a[4]; __syncthreads(); if (threadIdx.x == 5) for (int i = 0; i < 100000; ++i) a[i] = 7; __syncthreads(); o[0] = a[1];"),
    "a variable of the device": ("__device__ int v[4];", "for (long i = 0; i < 1l << 34; ++i) ((volatile int*)v)[i] = 0x11111111;"),
}  # fmt: skip
_REFUSED = {
    "asm": 'asm volatile("int3");',
    "asm by pasting": "#",
    "throw": "throw 1;",
    "try": "try { o[0] = 1; } catch (...) {}",
    "a local static with a destructor": "#",
    "launching": "k<<<1, 1>>>(o);",
}
_WHOLE = {
    "asm by pasting": (COMPILE, "#define P(a, b) a##b\n" + _kernel('P(__as, m__) volatile("int3");')),
    "constructor": (COMPILE, _kernel("o[0] = 1;", "__attribute__((constructor)) static void f() { *(volatile int*)0 = 1; }")),
    "destructor": (COMPILE, _kernel("o[0] = 1;", "__attribute__((destructor)) static void f() { *(volatile int*)0 = 1; }")),
    "global object": (COMPILE, _kernel("o[0] = g.v;", "struct S { int v; __device__ S() { v = *(volatile int*)0; } }; __device__ S g;")),
    "global object's destructor": (COMPILE, _kernel("o[0] = g.v;", "struct S { int v = 1; constexpr S() {} __device__ ~S() { *(volatile int*)0 = 1; } }; __device__ S g;")),
    "shared object's destructor": (COMPILE, _kernel("o[0] = 1; g.v = 3;", "struct S { int v; __device__ ~S() { *(volatile int*)0 = 1; } }; __shared__ S g;")),
    "local static's destructor": (COMPILE, _kernel("static S s; o[0] = s.v;", "struct S { int v; __device__ S() { v = 1; } __device__ ~S() { *(volatile int*)0 = 1; } };")),
    "chosen at load": (COMPILE, _kernel("o[0] = f();", 'extern "C" { static int one() { return 1; } static int (*choose())() { *(volatile int*)0 = 1; return one; } } static int f() __attribute__((ifunc("choose")));')),
    "main": (COMPILE, "int main() { return 1; }\n" + _kernel("o[0] = 1;")),
    "own stack check": (COMPILE, _kernel("o[0] = 1;", 'extern "C" void __stack_chk_fail() { for (;;); }')),
    "own image table": (COMPILE, _kernel("o[0] = 1;", 'extern "C" int pk_sim_image_v1 = 3;')),
    "a name of the C library": (RUNS, _kernel("o[0] = 1;", 'extern "C" __device__ void abort() {}')),
    "extern C kernel memcpy": (RUNS, 'struct B { int v[64]; };\nextern "C" __global__ void memcpy(int* o) { B a, b; for (int i = 0; i < 64; ++i) a.v[i] = o[i % 4]; b = a; o[0] = b.v[5]; }'),
    "printf that writes": (RUNS, _kernel('int n = 5; printf("%d%n\\n", 3, &n); o[0] = n;')),
    "printf, wide": (RUNS, _kernel('printf("%2000000000d %.2000000000f %*d\\n", 3, 1.5, 2000000000, 4); o[0] = 1;')),
    "too much memory": (RUNS, _kernel("o[0] = malloc(1ull << 50) == 0; o[1] = malloc(~0ull) == 0;")),
    "memory that is never given back": (RUNS, _kernel("for (int i = 0; i < 1000; ++i) *(char*)malloc(100) = 1;")),
    "the least integer": (RUNS, _kernel("int m = (int)0x80000000; int* d = &o[4]; o[0] = m / *d; o[1] = m % o[4]; long long w = (long long)1 << 63; o[2] = (int)(w / (long long)o[4]); o[3] = (int)(w % o[4]);")),
    "all memory": (RUNS, _kernel("long n = 0; while (malloc(1 << 22)) ++n; o[0] = (int)n;")),
}  # fmt: skip
ENDLESS = {
    "empty loop": "for (;;);",
    "loop with an access": "while (((volatile int*)o)[0] == 0);",
    "loop of barriers": "for (;;) __syncthreads();",
    "loop of atomics": "while (atomicAdd(o, 0) == 0);",
    "loop that prints": 'for (;;) printf("x");',
    "loop that takes memory": "for (;;) free(malloc(100));",
}
C_LIBRARY_SOURCE = _kernel(
    " ".join(f"if (o[0] == {n}) {{ {call} }}" for n, (_, call) in enumerate(C_LIBRARY.values())),
    "\n".join(dict.fromkeys(f'extern "C" {declaration};' for declaration, _ in C_LIBRARY.values())),
)


def _cases() -> dict[str, tuple[str, str]]:
    cases = {"calls of the C library": (COMPILE, C_LIBRARY_SOURCE)}
    cases |= {f"builtin {name}": (COMPILE, _kernel(body)) for name, body in _BUILTINS.items()}
    cases |= {name: (FAULT, _kernel(body)) for name, body in _FAULTS.items()}
    cases |= {name: (FAULT, _kernel(body, before)) for name, (before, body) in _WITH_BEFORE.items()}
    cases |= {f"refused: {name}": (COMPILE, _kernel(body)) for name, body in _REFUSED.items() if body != "#"}
    return cases | _WHOLE


CASES = _cases()

_RUNNER = """
import contextlib, io, json, sys
import numpy as np
import pygpukit as gp

def array():
    return gp.from_numpy(np.array([0, 1 << 24, 0, 4096, -1, 0, 0, 0], np.int32))

def ends(source, func, unit):
    o = array()
    try:
        kernel = gp.jit(source, func) if unit is None else unit.kernel(func)
        with contextlib.redirect_stdout(io.StringIO()):
            kernel[1, 32, 64](o)
            gp.synchronize()
    except gp.CompileError as error:
        return "CompileError", str(error) + error.log
    except gp.DriverError as error:
        return "DriverError", str(error)
    return "runs", str(o.tolist())

def works():
    x = gp.from_numpy(np.arange(100, dtype=np.float32))
    twice[1, 100](x)
    return bool((x.to_numpy() == 2 * np.arange(100)).all())

twice = gp.jit("__global__ void twice(float* x) { __shared__ float s[128]; int i = threadIdx.x; s[i] = x[i]; __syncthreads(); x[i] = 2 * s[i]; }")
together, rest = json.loads(sys.stdin.read())
from pygpukit.jit.launch.unit import Unit
unit = Unit("\\n".join(source for _, source, _ in together)) if together else None
for name, source, func in together + rest:
    print(json.dumps(["begins", name, ""]), flush=True)
    kind, text = ends(source, func, unit if [name, source, func] in together else None)
    print(json.dumps([kind if works() else "broken", name, text]), flush=True)
"""


def run_all(names: list[str]) -> dict[str, tuple[str, str]]:
    """How each ends: (kind, text), "died" for those that end the process. All in one process, as long as it lives, and
    those that compile in one image."""
    found: dict[str, tuple[str, str]] = {}
    waiting = list(names)
    while waiting:
        together, rest = [], []
        for number, name in enumerate(waiting):
            kind, source = CASES[name]
            if kind == COMPILE or "extern" in source or "__device__ int v[" in source:
                rest.append([name, source, None])
            else:
                together.append([name, f"namespace n{number} {{ {source} }}", f"n{number}::k"])
        done = subprocess.run(
            [sys.executable, "-c", _RUNNER], input=json.dumps([together, rest]), capture_output=True, text=True,
            timeout=500, check=False, env={**os.environ, "PYGPUKIT_BACKEND": "sim"},
        )  # fmt: skip
        begun = ""
        for line in done.stdout.splitlines():
            kind, begun, text = json.loads(line)
            if kind != "begins":
                found[begun] = kind, text
        if begun not in found:
            found[begun or waiting[0]] = "died", f"exit status {done.returncode}: {done.stderr[-600:]}"
        waiting = [name for name in waiting if name not in found]
    return found


if __name__ == "__main__":
    chosen = [name for name in CASES if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    results = run_all(chosen)
    bad = 0
    for name, (kind, text) in results.items():
        if kind != CASES[name][0]:
            bad += 1
            print(f"{name}: {kind}, not {CASES[name][0]}: {text[:300]}")
    print(f"{bad} of {len(results)} end otherwise")
