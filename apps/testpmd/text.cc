#include "apps/testpmd/text.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace rio::testpmd {
namespace {

[[gnu::format(printf, 1, 0)]] std::string format_list(const char* text, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, text, again);
  va_end(again);
  std::string out(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(out.data(), out.size() + 1, text, args);
  return out;
}

}  // namespace

std::string format(const char* text, ...) {
  va_list args;
  va_start(args, text);
  std::string out = format_list(text, args);
  va_end(args);
  return out;
}

int fail(std::string* error, const char* text, ...) {
  va_list args;
  va_start(args, text);
  *error = format_list(text, args);
  va_end(args);
  return -EINVAL;
}

std::string counted(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace rio::testpmd
