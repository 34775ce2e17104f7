// What all tests have in common: none reads the profile of whoever runs it.
#include <cstdlib>

[[gnu::constructor]] static void set_environment() {
  setenv("RIO_PROFILE", "none", 1);
}
