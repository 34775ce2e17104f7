#include "lib/ofi/bindings.hpp"

#include <algorithm>
#include <cstring>

namespace rio::ofi {

uint8_t* Buffers::gather(uint8_t* to) const {
  for (size_t i = 0; i < count; ++i) {
    to = std::copy_n(static_cast<const uint8_t*>(pieces[i].iov_base), pieces[i].iov_len, to);
  }
  return to;
}

void Buffers::scatter(const uint8_t* from, size_t bytes) const {
  for (size_t i = 0; i < count && bytes != 0; ++i) {
    const size_t part = std::min(pieces[i].iov_len, bytes);
    std::memcpy(pieces[i].iov_base, from, part);
    from += part;
    bytes -= part;
  }
}

}  // namespace rio::ofi
