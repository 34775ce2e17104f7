#include "apps/msgrate/side.hpp"

#include <cstdio>

#include "pmd/api/riopmd.h"

namespace rio::msgrate {

int complain(const std::string& what, int error) {
  std::fprintf(stderr, "rio-msgrate: %s: %s\n", what.c_str(), rio_strerror(-error));
  return -error;
}

int complain(const char* verb, uint32_t peer, int error) {
  return complain(std::string(verb) + " destID " + std::to_string(peer), error);
}

}  // namespace rio::msgrate
