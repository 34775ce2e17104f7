// What all tests have in common: none reads the profile of whoever runs it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

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

uint32_t first_seed() {
  static const uint32_t seed = [] {
    const char* text = std::getenv("RIO_SEED");
    const bool draw = text != nullptr && std::string_view(text) == "random";
    return draw ? std::random_device{}() : static_cast<uint32_t>(env_number("RIO_SEED", 20260401));
  }();
  std::printf("RIO_SEED=%u\n", seed);
  return seed;
}

}  // namespace rio::test
