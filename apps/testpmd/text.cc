#include "apps/testpmd/text.hpp"

#include <cerrno>
#include <cstdarg>

namespace rio::testpmd {

int fail(std::string* error, const char* text, ...) {
  va_list args;
  va_start(args, text);
  *error = base::formatted_list(text, args);
  va_end(args);
  return -EINVAL;
}

std::string counted(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace rio::testpmd
