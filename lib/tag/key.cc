#include "lib/tag/key.hpp"

#include <sys/random.h>

#include <cerrno>

namespace rio::tag {

int HashSeed::draw(HashSeed* out) {
  HashSeed seed;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof(seed), 0);  // so few bytes come whole, or not at all
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(seed))) {
    return got < 0 ? -errno : -EIO;
  }
  seed.for_both |= 1;
  *out = seed;
  return 0;
}

}  // namespace rio::tag
