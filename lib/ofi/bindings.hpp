/// @file
/// What an endpoint is bound to, and the buffers of calls.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace rio::ofi {

class AddressVector;
class CompletionQueue;
class Counter;

struct Bindings {
  AddressVector* av = nullptr;
  CompletionQueue* tx = nullptr;
  CompletionQueue* rx = nullptr;
  // Null: not counted.
  Counter* sends = nullptr;
  Counter* receives = nullptr;
  Counter* reads = nullptr;
  Counter* writes = nullptr;
  Counter* remote_reads = nullptr;
  Counter* remote_writes = nullptr;
  uint64_t tx_flags = 0;  ///< of operations that name none
  uint64_t rx_flags = 0;
  size_t min_multi = 64;      ///< FI_OPT_MIN_MULTI_RECV, bytes
  bool tx_selective = false;  ///< only what asks for it completes
  bool rx_selective = false;
  bool directed = false;  ///< receives name their source
};

/// The buffers to send from, or to receive into.
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
  /// @param to of bytes(). @return behind the last.
  uint8_t* gather(uint8_t* to) const;
  /// @param bytes that are at `from`, and go as far as there is room.
  void scatter(const uint8_t* from, size_t bytes) const;
};

}  // namespace rio::ofi
