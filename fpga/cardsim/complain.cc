#include "fpga/cardsim/complain.hpp"

#include <cstdarg>
#include <cstdio>

#include "base/formatted.hpp"

namespace rio::cardsim {

void complain(const char* format, ...) {
  va_list args;
  va_start(args, format);
  const std::string text = base::formatted_list(format, args);
  va_end(args);
  std::fprintf(stderr, "rio-cardsim: error: %s\n", text.c_str());
}

}  // namespace rio::cardsim
