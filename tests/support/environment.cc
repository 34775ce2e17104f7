// What all tests have in common: none reads the profile of whoever runs it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/number.hpp"
#include "tests/support/env_number.hpp"

[[gnu::constructor]] static void set_environment() {
  setenv("RIO_PROFILE", "none", 1);
}

namespace rio::test {

uint64_t env_number(const char* name, uint64_t otherwise) {
  uint64_t value = otherwise;
  std::string error;
  if (base::read_setting(name, std::getenv(name), {}, &value, &error) != 0) {
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(1);
  }
  return value;
}

}  // namespace rio::test
