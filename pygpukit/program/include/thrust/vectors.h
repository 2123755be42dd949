// vectors.h: vectors of the host and of the device.
#pragma once
#include <initializer_list>

#include "copies.h"
#include "pointers.h"

#ifndef __CUDA_ARCH__
namespace thrust {

// std::vector with pointers for iterators, and of what any range holds.
template <class Value, class Allocator = std::allocator<Value>>
class host_vector : public std::vector<Value, Allocator> {
  typedef std::vector<Value, Allocator> Base;

 public:
  typedef Value *iterator;
  typedef const Value *const_iterator;
  typedef Value *pointer;
  host_vector() = default;
  explicit host_vector(size_t count) : Base(count) {}
  host_vector(size_t count, const Value &value) : Base(count, value) {}
  host_vector(std::initializer_list<Value> values) : Base(values) {}
  template <class It, class = pk_detail::iterator_only<It>>
  host_vector(It first, It last) {
    assign(first, last);
  }
  template <class Vector, class = decltype(std::declval<const Vector &>().begin())>
  host_vector(const Vector &other) {
    assign(other.begin(), other.end());
  }
  template <class Vector, class = decltype(std::declval<const Vector &>().begin())>
  host_vector &operator=(const Vector &other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class It, class = pk_detail::iterator_only<It>>
  void assign(It first, It last) {
    this->resize(std::distance(first, last));
    thrust::copy(first, last, begin());
  }
  void assign(size_t count, const Value &value) { Base::assign(count, value); }
  iterator begin() { return this->data(); }
  iterator end() { return this->data() + this->size(); }
  const_iterator begin() const { return this->data(); }
  const_iterator end() const { return this->data() + this->size(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  iterator erase(const_iterator first, const_iterator last) {
    const size_t at = first - begin();
    Base::erase(Base::begin() + at, Base::begin() + (last - begin()));
    return begin() + at;
  }
  iterator erase(const_iterator place) { return erase(place, place + 1); }
};

template <class Value, class Allocator = void>
class device_vector {
 public:
  typedef Value value_type;
  typedef device_ptr<Value> iterator;
  typedef device_ptr<const Value> const_iterator;
  typedef device_ptr<Value> pointer;
  typedef device_ptr<const Value> const_pointer;
  typedef device_reference<Value> reference;
  typedef device_reference<const Value> const_reference;
  typedef size_t size_type;
  typedef long long difference_type;

  device_vector() = default;
  explicit device_vector(size_t count) { resize(count); }
  device_vector(size_t count, const Value &value) { resize(count, value); }
  device_vector(std::initializer_list<Value> values) { assign(values.begin(), values.end()); }
  device_vector(const device_vector &other) { assign(other.begin(), other.end()); }
  device_vector(device_vector &&other) { swap(other); }
  template <class It, class = pk_detail::iterator_only<It>>
  device_vector(It first, It last) {
    assign(first, last);
  }
  template <class Vector, class = decltype(std::declval<const Vector &>().begin())>
  device_vector(const Vector &other) {
    assign(other.begin(), other.end());
  }
  ~device_vector() { cudaFree((void *)values_); }
  device_vector &operator=(const device_vector &other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  device_vector &operator=(device_vector &&other) {
    swap(other);
    return *this;
  }
  device_vector &operator=(std::initializer_list<Value> values) {
    assign(values.begin(), values.end());
    return *this;
  }
  template <class Vector, class = decltype(std::declval<const Vector &>().begin())>
  device_vector &operator=(const Vector &other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class It, class = pk_detail::iterator_only<It>>
  void assign(It first, It last) {
    const size_t count = std::distance(first, last);
    room(count, false);
    size_ = count;
    thrust::copy(first, last, begin());
  }
  void assign(size_t count, const Value &value) {
    size_ = 0;
    resize(count, value);
  }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  iterator data() { return iterator(values_); }
  const_iterator data() const { return const_iterator(values_); }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  const_iterator cbegin() const { return data(); }
  const_iterator cend() const { return data() + size_; }
  reference operator[](size_t i) { return data()[i]; }
  const_reference operator[](size_t i) const { return data()[i]; }
  reference front() { return data()[0]; }
  const_reference front() const { return data()[0]; }
  reference back() { return data()[size_ - 1]; }
  const_reference back() const { return data()[size_ - 1]; }

  void reserve(size_t count) { room(count, true); }
  void resize(size_t count) {
    const size_t before = size_;
    grow(count);
    if (count <= before) return;
    if constexpr (std::is_arithmetic<Value>::value || std::is_pointer<Value>::value)
      pk_detail::check(cudaMemset((void *)(values_ + before), 0, (count - before) * sizeof(Value)), "a vector");
    else
      thrust::fill(begin() + before, end(), Value());
  }
  void resize(size_t count, const Value &value) {
    const size_t before = size_;
    grow(count);
    if (count > before) thrust::fill(begin() + before, end(), value);
  }
  void clear() { size_ = 0; }
  void shrink_to_fit() {}
  void push_back(const Value &value) {
    grow(size_ + 1);
    back() = value;
  }
  void pop_back() { --size_; }
  iterator erase(const_iterator first, const_iterator last) {
    const long long at = first - begin(), past = last - begin();
    const device_vector rest(last, const_iterator(end()));
    thrust::copy(rest.begin(), rest.end(), begin() + at);
    size_ -= past - at;
    return begin() + at;
  }
  iterator erase(const_iterator place) { return erase(place, place + 1); }
  template <class It, class = pk_detail::iterator_only<It>>
  void insert(const_iterator place, It first, It last) {
    const long long at = place - begin(), count = last - first;
    const device_vector added(first, last), rest(begin() + at, end());
    grow(size_ + count);
    thrust::copy(added.begin(), added.end(), begin() + at);
    thrust::copy(rest.begin(), rest.end(), begin() + at + count);
  }
  iterator insert(const_iterator place, const Value &value) {
    const long long at = place - begin();
    insert(place, &value, &value + 1);
    return begin() + at;
  }
  void swap(device_vector &other) {
    std::swap(values_, other.values_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void room(size_t count, bool keep) {
    if (count <= capacity_) return;
    Value *const taken = static_cast<Value *>(pk_detail::take(count * sizeof(Value)));
    if (keep && size_ != 0)
      pk_detail::check(
          cudaMemcpy((void *)taken, (const void *)values_, size_ * sizeof(Value), cudaMemcpyDeviceToDevice),
          "a vector");
    cudaFree((void *)values_);
    values_ = taken;
    capacity_ = count;
  }
  void grow(size_t count) {
    if (count > capacity_) room(count < 2 * capacity_ ? 2 * capacity_ : count, true);
    size_ = count;
  }
  Value *values_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

namespace pk_detail {
template <class Value>
std::vector<Value> on_host(const device_vector<Value> &vector) {
  std::vector<Value> values(vector.size());
  thrust::copy(vector.begin(), vector.end(), values.data());
  return values;
}
template <class Value>
const std::vector<Value> &on_host(const host_vector<Value> &vector) {
  return vector;
}
template <class Value>
const std::vector<Value> &on_host(const std::vector<Value> &vector) {
  return vector;
}
}  // namespace pk_detail
template <class Value, class Vector>
bool operator==(const device_vector<Value> &a, const Vector &b) {
  return pk_detail::on_host(a) == pk_detail::on_host(b);
}
template <class Value, class Vector>
bool operator!=(const device_vector<Value> &a, const Vector &b) {
  return !(a == b);
}
template <class Value>
bool operator==(const host_vector<Value> &a, const device_vector<Value> &b) {
  return b == a;
}
template <class Value>
bool operator!=(const host_vector<Value> &a, const device_vector<Value> &b) {
  return !(b == a);
}
template <class Value>
void swap(device_vector<Value> &a, device_vector<Value> &b) {
  a.swap(b);
}
template <class Value>
Value *raw_pointer_cast(const host_vector<Value> &vector) {
  return const_cast<Value *>(vector.data());
}

}  // namespace thrust
#endif
