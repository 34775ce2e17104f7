#include "fpga/cardsim/complain.hpp"

#include <cstdarg>
#include <cstdio>

namespace rio::cardsim {

void complain(const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  std::fprintf(stderr, "rio-cardsim: error: %s\n", text);
}

}  // namespace rio::cardsim
