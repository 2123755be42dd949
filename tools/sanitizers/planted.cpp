// planted.cpp: one fault of each kind. tools/sanitize.py has each of them found before it believes that others are not
// there.
#include <climits>
#include <thread>

extern "C" int planted_overflow(int number) {
  int *one = new int[4]{};
  int *volatile place = one + number;
  const int found = *place;
  delete[] one;
  return found;
}

extern "C" int planted_undefined(int number) { return INT_MAX + number; }

extern "C" int planted_race(int number) {
  int shared = 0;
  std::thread other([&] { shared += number; });
  shared += number;
  other.join();
  return shared;
}
