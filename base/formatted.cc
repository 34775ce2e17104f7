#include "base/formatted.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace rio::base {

std::string formatted_list(const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  std::string text(static_cast<size_t>(std::max(std::vsnprintf(nullptr, 0, format, again), 0)),
                   ' ');
  va_end(again);
  (void)std::vsnprintf(text.data(), text.size() + 1, format, args);
  return text;
}

std::string formatted(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = formatted_list(format, args);
  va_end(args);
  return text;
}

int fail(std::string* error, const char* format, ...) {
  va_list args;
  va_start(args, format);
  *error = formatted_list(format, args);
  va_end(args);
  return -EINVAL;
}

}  // namespace rio::base
