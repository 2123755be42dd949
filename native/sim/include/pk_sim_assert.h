// pk_sim_assert.h: assert, as NDEBUG says at the last #include. A source that has an assert of its own gets a function.
#pragma GCC system_header

#undef assert
#ifdef PK_SIM_ASSERT_OF_OWN
#ifndef PK_SIM_ASSERT_DECLARED
#define PK_SIM_ASSERT_DECLARED
namespace pk_sim_library {
PK_SIM_INLINE void assert(bool pk_sim_holds, PK_SIM_HERE, const char *pk_sim_function = __builtin_FUNCTION()) {
#ifndef NDEBUG
  if (!pk_sim_holds) pk_sim_fail(PK_SIM_FAIL_ASSERT, "assert()", pk_sim_function, pk_sim_file, pk_sim_line);
#endif
}
}  // namespace pk_sim_library
#endif
#elif defined(NDEBUG)
#define assert(...) ((void)0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? (void)0 : pk_sim_fail(PK_SIM_FAIL_ASSERT, #__VA_ARGS__, __PRETTY_FUNCTION__, __FILE__, __LINE__))
#endif
