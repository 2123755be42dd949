// pk_sim_types.h: the element types of a kernel's parameters as the compiler knows them, told in the image's section
// pk_sim_types: "float32", "float32x4", with a * in front for a pointer; "" or "*" for types that no array has.
#pragma once
#pragma GCC system_header

struct pk_sim_text {
  char text[24];
};
constexpr pk_sim_text pk_sim_joined(const char *first, const char *second) {
  pk_sim_text all = {};
  int at = 0;
  for (; *first; ++first) all.text[at++] = *first;
  for (; *second; ++second) all.text[at++] = *second;
  return all;
}
// One kernel's record. A byte that no name has comes first; name and types end at zeros.
template <unsigned long Parameters, unsigned long Characters>
struct pk_sim_told {
  char mark;
  char name[Characters];
  pk_sim_text types[Parameters + 1];
};

// Of anything but numbers: "". Headers of other number types have more of these.
template <class T>
struct pk_sim_plain {
  typedef T type;
};
template <class T>
struct pk_sim_plain<const T> : pk_sim_plain<T> {};
template <class T>
struct pk_sim_plain<volatile T> : pk_sim_plain<T> {};
template <class T>
struct pk_sim_plain<const volatile T> : pk_sim_plain<T> {};
template <class T>
struct pk_sim_plain<T[]> : pk_sim_plain<T> {};
template <class T, unsigned long N>
struct pk_sim_plain<T[N]> : pk_sim_plain<T> {};
template <class T, unsigned long N>
struct pk_sim_plain<const T[N]> : pk_sim_plain<T> {};
template <class T, bool Enumeration = __is_enum(T)>
struct pk_sim_underlying {
  typedef T type;
};
template <class T>
struct pk_sim_underlying<T, true> {
  typedef __underlying_type(T) type;
};
template <class T>
struct pk_sim_element {
  static constexpr const char *name = "";
};
#define PK_SIM_ELEMENT(T, text)               \
  template <>                                 \
  struct pk_sim_element<T> {                  \
    static constexpr const char *name = text; \
  };
#define PK_SIM_ELEMENTS(T, V, text) \
  PK_SIM_ELEMENT(T, text)           \
  PK_SIM_ELEMENT(V##1, text "x1")   \
  PK_SIM_ELEMENT(V##2, text "x2")   \
  PK_SIM_ELEMENT(V##3, text "x3")   \
  PK_SIM_ELEMENT(V##4, text "x4")
PK_SIM_ELEMENT(bool, "bool")
PK_SIM_ELEMENT(char, "int8")
PK_SIM_ELEMENTS(signed char, char, "int8")
PK_SIM_ELEMENTS(unsigned char, uchar, "uint8")
PK_SIM_ELEMENTS(short, short, "int16")
PK_SIM_ELEMENTS(unsigned short, ushort, "uint16")
PK_SIM_ELEMENTS(int, int, "int32")
PK_SIM_ELEMENTS(unsigned, uint, "uint32")
PK_SIM_ELEMENTS(long, long, "int64")
PK_SIM_ELEMENTS(unsigned long, ulong, "uint64")
PK_SIM_ELEMENTS(long long, longlong, "int64")
PK_SIM_ELEMENTS(unsigned long long, ulonglong, "uint64")
PK_SIM_ELEMENTS(float, float, "float32")
PK_SIM_ELEMENTS(double, double, "float64")
PK_SIM_ELEMENT(wchar_t, "int32")
PK_SIM_ELEMENT(char16_t, "uint16")
PK_SIM_ELEMENT(char32_t, "uint32")
#undef PK_SIM_ELEMENTS

// A parameter as a launch has it: its bytes, and what a kernel makes of them. A reference is an address, as on a
// device.
template <class T>
struct pk_sim_parameter {
  typedef T held;
  typedef T &given;
  PK_SIM_UNCHECKED PK_SIM_INLINE T &in(void *bytes) { return *(T *)bytes; }
};
template <class T>
struct pk_sim_parameter<T &> {
  typedef T *held;
  typedef T &given;
  PK_SIM_UNCHECKED PK_SIM_INLINE T &in(void *bytes) { return **(T **)bytes; }
};
// What sim_parameters.py makes of __grid_constant__ ones: the bytes themselves.
template <class T>
struct pk_sim_parameter<T &&> {
  typedef T held;
  typedef T &&given;
  PK_SIM_UNCHECKED PK_SIM_INLINE T &&in(void *bytes) { return (T &&) * (T *)bytes; }
};

template <class T>
struct pk_sim_type_name {
  static constexpr pk_sim_text value =
      pk_sim_joined("", pk_sim_element<typename pk_sim_underlying<typename pk_sim_plain<T>::type>::type>::name);
};
template <class T>
struct pk_sim_type_name<T *> {
  static constexpr pk_sim_text value =
      pk_sim_joined("*", pk_sim_element<typename pk_sim_underlying<typename pk_sim_plain<T>::type>::type>::name);
};
template <class T>
struct pk_sim_type_name<T &> : pk_sim_type_name<T *> {};
template <class T>
struct pk_sim_type_name<T &&> : pk_sim_type_name<typename pk_sim_plain<T>::type> {};
