// known_stack.h: what the compiler's sanitizers must be told of stacks that a thread switches between. Empty in a plain
// build.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define PK_SIM_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define PK_SIM_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PK_SIM_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define PK_SIM_THREAD_SANITIZER 1
#endif
#endif

#if defined(PK_SIM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(PK_SIM_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace pygpukit::sim {

// A stack as the sanitizer knows it. New() for one that nothing runs on; Leave() just before a switch, from null when
// nobody comes back to where it was; Arrive() just after it, on the stack that was switched to.

#if defined(PK_SIM_ADDRESS_SANITIZER)

// It looks at frames between the ends of the running stack only.
class KnownStack {
 public:
  void New(char *stack, size_t bytes) {
    Clear(stack, bytes);
    bottom_ = stack;
    bytes_ = bytes;
    fake_ = nullptr;
  }
  static void Leave(KnownStack *from, KnownStack *to) {
    SetSwitching(true);
    to->left_ = from;
    __sanitizer_start_switch_fiber(from ? &from->fake_ : nullptr, to->bottom_, to->bytes_);
  }
  // The ends of a thread's own stack are found out here, when it has been left.
  void Arrive() {
    const void *bottom = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_, &bottom, &bytes);
    if (left_) {
      left_->bottom_ = bottom;
      left_->bytes_ = bytes;
    }
    SetSwitching(false);
  }
  // Whether the thread is between the two: an interrupt that leaves by another switch has to wait.
  static bool Switching() { return switching_; }
  // Before the memory is used for something else: frames that were never unwound have left their marks.
  static void Clear(char *stack, size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }

 private:
  // Not inlined: a stack may go on on another thread, whose variable lies elsewhere.
  [[gnu::noinline]] static void SetSwitching(bool switching) { switching_ = switching; }
  static inline thread_local volatile bool switching_ = false;
  const void *bottom_ = nullptr;
  size_t bytes_ = 0;
  void *fake_ = nullptr;  // its own record of the frames
  KnownStack *left_ = nullptr;
};

#elif defined(PK_SIM_THREAD_SANITIZER)

// Its record of calls belongs to a stack. To it each stack is a thread of its own, and a switch orders the two.
class KnownStack {
 public:
  KnownStack() = default;
  KnownStack(const KnownStack &) = delete;
  KnownStack &operator=(const KnownStack &) = delete;
  ~KnownStack() { Forget(); }
  void New(char *, size_t) {
    Forget();
    fiber_ = __tsan_create_fiber(0);
    own_ = true;
  }
  static void Leave(KnownStack *from, KnownStack *to) {
    if (from && !from->own_) from->fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->fiber_, 0);
  }
  void Arrive() {}
  static bool Switching() { return false; }
  static void Clear(char *, size_t) {}

 private:
  void Forget() {
    if (own_) __tsan_destroy_fiber(fiber_);
  }
  void *fiber_ = nullptr;
  bool own_ = false;  // else a thread's
};

#else

class KnownStack {
 public:
  void New(char *, size_t) {}
  static void Leave(KnownStack *, KnownStack *) {}
  void Arrive() {}
  static bool Switching() { return false; }
  static void Clear(char *, size_t) {}
};

#endif

}  // namespace pygpukit::sim
