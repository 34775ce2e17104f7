#include "apps/msgrate/side.hpp"

#include <cstdio>
#include <cstring>

namespace rio::msgrate {

int complain(const char* what, int error) {
  std::fprintf(stderr, "rio-msgrate: %s: %s\n", what, std::strerror(error));
  return -error;
}

}  // namespace rio::msgrate
