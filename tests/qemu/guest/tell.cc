#include "tests/qemu/guest/tell.hpp"

#include <cstdarg>
#include <cstdio>

namespace rio::guest {

int fail(const char* format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  std::printf("pci-guest: %s\n", text);
  std::fflush(stdout);
  return 1;
}

void fact(const char* key, uint64_t number) {
  std::printf("RIO-FACT %s=%llu\n", key, static_cast<unsigned long long>(number));
  std::fflush(stdout);
}

void ask_host(const char* what) {
  std::printf("RIO-HOST %s\n", what);
  std::fflush(stdout);
}

}  // namespace rio::guest
