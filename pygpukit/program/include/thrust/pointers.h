// pointers.h: pointers to the device's memory, and what they point to as the host sees it.
#pragma once
#include <ostream>

#include "core.h"

namespace thrust {

template <class Value>
class device_reference;

// On the host what it points to is read and written by copies; in a kernel it is a plain pointer.
template <class Value>
class device_ptr {
 public:
  typedef typename pk_detail::plain<Value>::type value_type;
  typedef device_ptr pointer;
  typedef long long difference_type;
#ifdef __CUDA_ARCH__
  typedef Value &reference;
#else
  typedef device_reference<Value> reference;
  typedef std::random_access_iterator_tag iterator_category;
#endif
  static constexpr int pk_system = 2;  // DEVICE_SYSTEM

  PK_BOTH device_ptr() : place_(nullptr) {}
  PK_BOTH device_ptr(decltype(nullptr)) : place_(nullptr) {}
  PK_BOTH explicit device_ptr(Value *place) : place_(place) {}
  template <class Other>
  PK_BOTH device_ptr(const device_ptr<Other> &other) : place_(other.get()) {}
  PK_BOTH Value *get() const { return place_; }
  PK_BOTH reference operator*() const { return reference(*place_); }
  PK_BOTH reference operator[](long long i) const { return reference(place_[i]); }
  PK_BOTH device_ptr operator+(long long i) const { return device_ptr(place_ + i); }
  PK_BOTH device_ptr operator-(long long i) const { return device_ptr(place_ - i); }
  PK_BOTH long long operator-(const device_ptr &other) const { return place_ - other.place_; }
  PK_BOTH device_ptr &operator+=(long long i) {
    place_ += i;
    return *this;
  }
  PK_BOTH device_ptr &operator-=(long long i) {
    place_ -= i;
    return *this;
  }
  PK_BOTH device_ptr &operator++() {
    ++place_;
    return *this;
  }
  PK_BOTH device_ptr &operator--() {
    --place_;
    return *this;
  }
  PK_BOTH device_ptr operator++(int) { return device_ptr(place_++); }
  PK_BOTH device_ptr operator--(int) { return device_ptr(place_--); }
  PK_BOTH bool operator==(const device_ptr &other) const { return place_ == other.place_; }
  PK_BOTH bool operator!=(const device_ptr &other) const { return place_ != other.place_; }
  PK_BOTH bool operator<(const device_ptr &other) const { return place_ < other.place_; }
  PK_BOTH explicit operator bool() const { return place_ != nullptr; }

 private:
  Value *place_;
};
template <class Value>
PK_BOTH device_ptr<Value> operator+(long long i, const device_ptr<Value> &pointer) {
  return pointer + i;
}

#ifndef __CUDA_ARCH__
// One value of the device's memory on the host.
template <class Value>
class device_reference {
 public:
  typedef typename pk_detail::plain<Value>::type value_type;
  explicit device_reference(Value &at) : place_(__builtin_addressof(at)) {}
  device_reference(const device_reference &other) = default;
  operator value_type() const {
    value_type value;
    pk_detail::check(cudaMemcpy((void *)&value, (const void *)place_, sizeof value, cudaMemcpyDeviceToHost),
                     "a reference");
    return value;
  }
  const device_reference &operator=(const value_type &value) const {
    pk_detail::check(cudaMemcpy((void *)place_, (const void *)&value, sizeof value, cudaMemcpyHostToDevice),
                     "a reference");
    return *this;
  }
  const device_reference &operator=(const device_reference &other) const { return *this = value_type(other); }
  device_reference &operator=(const device_reference &other) {
    static_cast<const device_reference &>(*this) = value_type(other);
    return *this;
  }
  device_ptr<Value> operator&() const { return device_ptr<Value>(place_); }
  template <class Other>
  value_type operator+=(const Other &other) const {
    return set(value_type(*this) + other);
  }
  template <class Other>
  value_type operator-=(const Other &other) const {
    return set(value_type(*this) - other);
  }
  template <class Other>
  value_type operator*=(const Other &other) const {
    return set(value_type(*this) * other);
  }
  template <class Other>
  value_type operator/=(const Other &other) const {
    return set(value_type(*this) / other);
  }
  value_type operator++() const { return set(value_type(*this) + 1); }
  value_type operator--() const { return set(value_type(*this) - 1); }
  value_type operator++(int) const { return set(value_type(*this) + 1) - 1; }
  value_type operator--(int) const { return set(value_type(*this) - 1) + 1; }

 private:
  value_type set(const value_type &value) const {
    *this = value;
    return value;
  }
  Value *place_;
};
template <class Value>
std::ostream &operator<<(std::ostream &out, const device_reference<Value> &reference) {
  return out << typename device_reference<Value>::value_type(reference);
}
template <class Value>
void swap(device_reference<Value> a, device_reference<Value> b) {
  const typename device_reference<Value>::value_type kept = a;
  a = b;
  b = kept;
}

namespace pk_detail {
template <class Value>
struct raw_iterator<device_ptr<Value>> {
  typedef Value *type;
  static type of(const device_ptr<Value> &it) { return it.get(); }
};
}  // namespace pk_detail
#endif

template <class Value>
PK_BOTH Value *raw_pointer_cast(const device_ptr<Value> &pointer) {
  return pointer.get();
}
template <class Value>
PK_BOTH Value *raw_pointer_cast(Value *pointer) {
  return pointer;
}
template <class Value>
PK_BOTH device_ptr<Value> device_pointer_cast(Value *pointer) {
  return device_ptr<Value>(pointer);
}
template <class Value>
PK_BOTH device_ptr<Value> device_pointer_cast(const device_ptr<Value> &pointer) {
  return pointer;
}
#ifndef __CUDA_ARCH__
template <class Value>
Value &raw_reference_cast(const device_reference<Value> &reference) {
  return *(&reference).get();
}
template <class Value>
device_ptr<Value> device_malloc(size_t count) {
  return device_ptr<Value>(static_cast<Value *>(pk_detail::take(count * sizeof(Value))));
}
inline device_ptr<char> device_malloc(size_t bytes) { return device_malloc<char>(bytes); }
template <class Value>
void device_free(const device_ptr<Value> &pointer) {
  pk_detail::check(cudaFree((void *)pointer.get()), "device_free()");
}
#endif

}  // namespace thrust
