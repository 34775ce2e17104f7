/// @file
/// The objects that an endpoint is bound to, and the buffers of calls.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace rio::ofi {

class AddressVector;
class CompletionQueue;
class FiCounter;

struct Bindings {
  AddressVector* av = nullptr;
  CompletionQueue* tx = nullptr;
  CompletionQueue* rx = nullptr;
  // Null: this kind of operation is not counted.
  FiCounter* sends = nullptr;
  FiCounter* receives = nullptr;
  FiCounter* reads = nullptr;
  FiCounter* writes = nullptr;
  FiCounter* remote_reads = nullptr;
  FiCounter* remote_writes = nullptr;
  uint64_t tx_flags = 0;  ///< of operations that name none
  uint64_t rx_flags = 0;
  size_t min_multi = 64;      ///< FI_OPT_MIN_MULTI_RECV, bytes
  bool tx_selective = false;  ///< only operations that ask for a completion get one
  bool rx_selective = false;
  bool directed = false;  ///< a receive names its source
};

/// @return room for at least one byte; null: no memory.
[[nodiscard]] inline std::unique_ptr<uint8_t[]> make_bytes(uint64_t bytes) {
  return std::unique_ptr<uint8_t[]>(new (std::nothrow) uint8_t[std::max<uint64_t>(bytes, 1)]);
}

/// The buffers of a call: of a send its data, of a receive its space.
struct Buffers {
  const iovec* pieces;
  size_t count;

  [[nodiscard]] size_t bytes() const {
    size_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      sum += pieces[i].iov_len;
    }
    return sum;
  }
  /// Copies the buffers into one piece. @param to room for bytes(). @return the end of the copy.
  uint8_t* gather(uint8_t* to) const {
    for (size_t i = 0; i < count; ++i) {
      to = std::copy_n(static_cast<const uint8_t*>(pieces[i].iov_base), pieces[i].iov_len, to);
    }
    return to;
  }
  /// Copies from one piece into the buffers. @param bytes at `from`; those beyond the buffers' room
  /// are dropped.
  void scatter(const uint8_t* from, size_t bytes) const {
    for (size_t i = 0; i < count && bytes != 0; ++i) {
      const size_t part = std::min(pieces[i].iov_len, bytes);
      std::memcpy(pieces[i].iov_base, from, part);
      from += part;
      bytes -= part;
    }
  }
};

}  // namespace rio::ofi
