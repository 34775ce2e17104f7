#include "fpga/cardsim/complain.hpp"

#include <cstdarg>
#include <cstdio>

namespace rio::cardsim {
namespace {

[[gnu::format(printf, 2, 0)]] void line(const char* prefix, const char* format, va_list args) {
  char text[1024];
  std::vsnprintf(text, sizeof text, format, args);
  std::fprintf(stderr, "rio-cardsim: %s%s\n", prefix, text);
}

}  // namespace

void complain(const char* format, ...) {
  va_list args;
  va_start(args, format);
  line("error: ", format, args);
  va_end(args);
}

void remark(const char* format, ...) {
  va_list args;
  va_start(args, format);
  line("", format, args);
  va_end(args);
}

}  // namespace rio::cardsim
