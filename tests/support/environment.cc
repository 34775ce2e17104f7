// The environment of all tests: no test reads the user's own profile.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "base/number.hpp"
#include "tests/support/env_number.hpp"
#include "tests/support/seed.hpp"

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
  static const uint32_t kSeed = [] {
    const char* const text = std::getenv("RIO_SEED");
    if (text == nullptr || std::string_view(text) != "random") {
      return static_cast<uint32_t>(env_number("RIO_SEED", 1));
    }
    const uint32_t drawn = std::random_device{}();
    std::printf("RIO_SEED=%u\n", drawn);
    std::fflush(stdout);
    return drawn;
  }();
  return kSeed;
}

}  // namespace rio::test
