/// @file
/// One of the two processes.
#pragma once

#include <cstdint>

namespace rio::msgrate {

/// The tests, by send_one() and receive_one() of `Each`. Functions return 0 or -errno; what failed
/// is on stderr.
template <class Each>
class Side {
 public:
  /// Both sides are there: each has heard of the other.
  [[nodiscard]] int barrier() {
    const int rc = each().send_one(0);
    return rc != 0 ? rc : each().receive_one(0);
  }
  [[nodiscard]] int send(uint32_t size_bytes, uint32_t count) {
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; ++i) {
      rc = each().send_one(size_bytes);
    }
    return rc;
  }
  [[nodiscard]] int receive(uint32_t size_bytes, uint32_t count) {
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; ++i) {
      rc = each().receive_one(size_bytes);
    }
    return rc;
  }
  /// @param first this side sends first.
  [[nodiscard]] int ping_pong(bool first, uint32_t size_bytes, uint32_t count) {
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; ++i) {
      rc = first ? each().send_one(size_bytes) : each().receive_one(size_bytes);
      if (rc == 0) {
        rc = first ? each().receive_one(size_bytes) : each().send_one(size_bytes);
      }
    }
    return rc;
  }

 private:
  [[nodiscard]] Each& each() { return static_cast<Each&>(*this); }
};

}  // namespace rio::msgrate
