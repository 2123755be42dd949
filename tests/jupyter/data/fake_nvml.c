/* A stand-in for NVIDIA's management library: one device, fixed readings, and what its environment says is missing. */
#include <stdlib.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

static int missing(const char *what) {
  const char *list = getenv("FAKE_NVML_MISSING");
  return list && strstr(list, what) ? NOT_SUPPORTED : OK;
}

int nvmlInit_v2(void) { return getenv("FAKE_NVML_BROKEN") ? 9 : OK; }

const char *nvmlErrorString(int code) {
  return code == NOT_SUPPORTED ? "Not Supported" : code == NOT_FOUND ? "Not Found" : code == 9 ? "Driver Not Loaded" : "Unknown";
}

int nvmlSystemGetDriverVersion(char *text, u32 size) {
  strncpy(text, "570.1", size);
  return OK;
}

static int mig(const char *mode) {
  const char *now = getenv("FAKE_NVML_MIG"); /* "on", "instance" */
  return now && strcmp(now, mode) == 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  const char *kind = mig("instance") ? "MIG-" : "GPU-";
  *device = (void *)0x55;
  return strncmp(uuid, kind, 4) == 0 && strcmp(uuid + 4, "00010203-0405-0607-0809-0a0b0c0d0e0f") == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(void *device, u32 *is) {
  *is = (u32)mig("instance");
  return device ? OK : NOT_FOUND;
}

/* Of a divided card: the instances 0 and 2 of at most three, by handles of their own. */
static int part(void *device) { return device == (void *)0x60 || device == (void *)0x62; }

int nvmlDeviceGetMaxMigDeviceCount(void *device, u32 *count) {
  *count = mig("on") ? 3 : 0;
  return device ? missing("instances") : NOT_FOUND;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, u32 index, void **instance) {
  if (!device || !mig("on") || index == 1 || index > 2) return NOT_FOUND;
  *instance = (void *)(u64)(0x60 + index);
  return OK;
}

int nvmlDeviceGetUUID(void *device, char *text, u32 size) {
  if (!part(device)) return NOT_SUPPORTED;
  strncpy(text, device == (void *)0x60 ? "MIG-0a" : "MIG-2c", size);
  return missing("names");
}

int nvmlDeviceGetName(void *device, char *text, u32 size) {
  if (!part(device)) return NOT_SUPPORTED;
  strncpy(text, "NVIDIA H100 MIG 1g.10gb", size);
  return OK;
}

int nvmlDeviceGetGpuInstanceId(void *device, u32 *number) {
  *number = part(device) ? (u32)(u64)device - 0x60 + 9 : 7;
  return part(device) || (device && mig("instance")) ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeInstanceId(void *device, u32 *number) {
  *number = part(device) ? 0 : 1;
  return part(device) || (device && mig("instance")) ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(void *device, u32 *now, u32 *pending) {
  *now = *pending = (u32)mig("on");
  return device ? missing("mig") : NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(void *device, u32 *rates) {
  rates[0] = 61;
  rates[1] = 17;
  return device == (void *)0x55 ? missing("utilization") : NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo(void *device, u64 *sizes) {
  sizes[0] = 8ull << 30;
  sizes[1] = 5ull << 30;
  sizes[2] = 3ull << 30;
  return device ? missing("memory") : NOT_FOUND;
}

int nvmlDeviceGetCpuAffinity(void *device, u32 words, unsigned long *near) {
  for (u32 n = 0; n < words; n++) near[n] = 0;
  near[0] = 5;
  near[1] = 1;
  near[words - 1] = 1ul << 63;
  return device ? missing("affinity") : NOT_FOUND;
}

int nvmlDeviceGetClockInfo(void *device, int which, u32 *mhz) {
  *mhz = which == 1 ? 1410 : 2619;
  return device ? missing("clock") : NOT_FOUND;
}

int nvmlDeviceGetMaxClockInfo(void *device, int which, u32 *mhz) {
  *mhz = which == 1 ? 1980 : 2619;
  return device ? OK : NOT_FOUND;
}

int nvmlDeviceGetPowerUsage(void *device, u32 *milliwatts) {
  *milliwatts = 312500;
  return device ? missing("power") : NOT_FOUND;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, u32 *milliwatts) {
  *milliwatts = 700000;
  return device ? OK : NOT_FOUND;
}

int nvmlDeviceGetTemperature(void *device, int sensor, u32 *celsius) {
  *celsius = 57 + (u32)sensor;
  return device ? missing("temperature") : NOT_FOUND;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *reasons) {
  *reasons = 0x1 | 0x4 | 0x40;
  return device ? missing("throttle") : NOT_FOUND;
}

int nvmlDeviceGetPcieThroughput(void *device, int counter, u32 *kilobytes) {
  *kilobytes = counter == 0 ? 100 : 200;
  return device ? missing("pcie") : NOT_FOUND;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, u32 *generation) {
  *generation = 5;
  return device ? OK : NOT_FOUND;
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, u32 *lanes) {
  *lanes = 16;
  return device ? OK : NOT_FOUND;
}

struct process {
  u32 pid;
  u64 used;
  u32 gpu_instance, compute_instance;
};

/* 100 processes: more than a first guess of 64 holds. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, u32 *count, struct process *rows) {
  u32 room = *count;
  *count = 100;
  if (missing("process") || !device) return NOT_SUPPORTED;
  if (room < 100) return TOO_SMALL;
  for (u32 i = 0; i < 100; i++) {
    rows[i].pid = i + 1;
    rows[i].used = i == 1 ? ~0ull : (u64)i << 20;
  }
  return OK;
}
