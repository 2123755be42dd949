// pages.cpp: the one file of the simulator that knows which system it runs on (Linux; other POSIX systems by fallback).
#include "sim/pages.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// A file without a name: nobody else sees it, and it goes away with its last descriptor and mapping.
int NamelessFile() {
#ifdef __linux__
  return memfd_create("pygpukit-sim", MFD_CLOEXEC);
#else
  char name[64];
  static int number = 0;
  snprintf(name, sizeof name, "/pygpukit-%ld-%d", static_cast<long>(getpid()),
           __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
  const int descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor >= 0) shm_unlink(name);
  return descriptor;
#endif
}

bool WriteAll(int descriptor, const void *data, uint64_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes) {
    const ssize_t written = write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<uint64_t>(written);
  }
  return true;
}

void *Open(const char *path, std::string *why) {
  // Local: nothing of one image is seen by another. Now: no symbol is looked up while a kernel runs.
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) *why = dlerror();
  return handle;
}

// Near the address, if it is not 0 and the system has it free.
char *Reserve(uint64_t near, uint64_t bytes) {
  void *start =
      mmap(reinterpret_cast<void *>(near), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<char *>(start);
}

// Addresses that the system gives to nobody who did not ask for them, and how far from one another ranges lie there:
// what an index of 32 bits reaches in numbers of 8 bytes. Not a power of two: steps of such a size are common, and
// would lead from one range into another.
constexpr uint64_t kApartFrom = uint64_t{1} << 45, kApartTo = uint64_t{5} << 44, kApart = 8209 * (uint64_t{2} << 20);
constexpr int kApartTries = 64;

#ifdef __linux__
// The loader answers with an image it already has when either the inode or the spelling of the path is the same, and
// descriptors are reused: so every load spells the path differently, in slashes and dots.
std::string UniquePath(int descriptor) {
  static unsigned number = 0;
  std::string path = "/proc/self/fd/";
  for (unsigned bits = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED); bits; bits >>= 1)
    path += bits & 1 ? "./" : "/";
  return path + Format("%d", descriptor);
}
#endif

}  // namespace

char *ReserveRange(uint64_t bytes) { return Reserve(0, bytes); }

char *ReserveApart(uint64_t bytes) {
  static std::atomic<uint64_t> next{kApartFrom};
  for (int tries = 0; tries < kApartTries && bytes < kApartTo - kApartFrom; ++tries) {
    const uint64_t step = bytes + kApart;
    const uint64_t place = next.fetch_add(step);
    if (place > kApartTo - step) {
      next = kApartFrom;
      continue;
    }
    char *start = Reserve(place, bytes);
    if (!start || reinterpret_cast<uint64_t>(start) == place) return start;
    ReleaseRange(start, bytes);
  }
  return ReserveRange(bytes);
}

void ReleaseRange(char *start, uint64_t bytes) { munmap(start, bytes); }

int CreateMemory(uint64_t bytes) {
  const int descriptor = NamelessFile();
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

int DuplicateDescriptor(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }
void CloseDescriptor(int descriptor) { close(descriptor); }

uint64_t DescriptorBytes(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_size > 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool MapMemory(char *address, uint64_t bytes, int descriptor) {
  return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == address;
}

bool MapPages(char *address, uint64_t bytes, int descriptor, uint64_t offset) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), lead = offset % page;
  char *start = address - lead;
  return mmap(start, lead + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
              static_cast<off_t>(offset - lead)) == start;
}

void *ReserveZeros(uint64_t bytes) {
  void *start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(start, bytes, MADV_HUGEPAGE);
#endif
  return start;
}

void ForgetPages(void *start, uint64_t bytes) { madvise(start, bytes, MADV_DONTNEED); }

bool UnmapMemory(char *address, uint64_t bytes) {
  return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == address;
}

void *LoadImage(const void *image, uint64_t bytes, std::string *why) {
#ifdef __linux__
  const int descriptor = NamelessFile();
  if (descriptor >= 0) {
    void *handle = nullptr;
    const bool written = WriteAll(descriptor, image, bytes);
    if (written) handle = Open(UniquePath(descriptor).c_str(), why);
    close(descriptor);
    if (handle || (written && access("/proc/self/fd", X_OK) == 0)) return handle;
  }
#endif
  const char *directory = getenv("TMPDIR");
  std::string path = std::string(directory && *directory ? directory : "/tmp") + "/pygpukit-sim-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) {
    *why = "cannot create " + path + ": " + strerror(errno);
    return nullptr;
  }
  void *handle = nullptr;
  if (WriteAll(file, image, bytes)) {
    handle = Open(path.c_str(), why);
  } else {
    *why = "cannot write " + path + ": " + strerror(errno);
  }
  close(file);
  unlink(path.c_str());
  return handle;
}

}  // namespace pygpukit::sim
