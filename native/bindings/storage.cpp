// storage.cpp: storages of arrays: taken from the pool, counted, and given back.
#include "bindings/storage.h"

#include <utility>

#include "bindings/checked.h"
#include "bindings/foreign.h"
#include "bindings/gil.h"
#include "bindings/owner.h"
#include "bindings/transfers.h"
#include "launch/ordered.h"

namespace pk {

static Storage *g_free_storage[64];
static int g_free_storage_count = 0;
static Storage *g_storages = nullptr;

Storage *all_storages() { return g_storages; }

Storage *new_storage() {
  Storage *storage = g_free_storage_count > 0 ? g_free_storage[--g_free_storage_count] : new Storage;
  *storage = Storage{};
  storage->refs = 1;
  storage->next = g_storages;
  if (g_storages != nullptr) g_storages->previous = storage;
  g_storages = storage;
  return storage;
}

void drop_storage(Storage *storage) {
  if (--storage->refs > 0) return;
  (storage->previous != nullptr ? storage->previous->next : g_storages) = storage->next;
  if (storage->next != nullptr) storage->next->previous = storage->previous;
  if (storage->moving) forget_transfers(storage);
  // In a forked child it is the parent's, and a thread that the child does not have may hold the pool's lock.
  if (storage->block != 0 && !forked() && !quarantine(*storage)) pk_pool_free(storage->pool, storage->block);
  let_go(std::exchange(storage->keeper, nullptr), storage->device);
  if (g_free_storage_count < 64) {
    g_free_storage[g_free_storage_count++] = storage;
  } else {
    delete storage;
  }
}

static int32_t alloc_slowly(uint64_t pool, uint64_t bytes, uint64_t stream, const pk_owner &owner, pk_allocation *out) {
  int32_t status;
  {
    NoGil released;
    status = pk_pool_alloc(pool, bytes, stream, &owner, out);
  }
  pk_pool_tell(pool);
  return status;
}

Storage *allocate(uint64_t bytes) {
  const uint64_t pool = default_pool(), whole = bytes + guard_of(bytes);
  if (pool == 0) {
    pk_pool_raise();
    return nullptr;
  }
  const pk_owner owner = current_owner();
  const uint64_t stream = t_state.stream;
  pk_allocation allocation;
  int32_t status = pk_pool_try_alloc(pool, whole, stream, &owner, &allocation);
  if (status == PK_POOL_MISS) status = alloc_slowly(pool, whole, stream, owner, &allocation);
  if (status == PK_POOL_OUT_OF_MEMORY && release_quarantine())
    status = alloc_slowly(pool, whole, stream, owner, &allocation);
  // Arrays in reference cycles are freed by Python's collector alone, which knows nothing of device memory.
  if (status == PK_POOL_OUT_OF_MEMORY && PyGC_Collect() > 0)
    status = alloc_slowly(pool, whole, stream, owner, &allocation);
  if (status != PK_POOL_OK) {
    pk_pool_raise();
    return nullptr;
  }
  Storage *storage = new_storage();
  storage->address = allocation.address;
  storage->bytes = bytes;
  storage->pool = pool;
  storage->block = allocation.block;
  storage->state = allocation.state;
  storage->stream = stream;
  storage->stream_id = t_state.stream_id;
  storage->device = t_state.device;
  return storage;
}

}  // namespace pk
