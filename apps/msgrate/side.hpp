/// @file
/// One of the two processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

/// Says it on stderr. @param error errno. @return -error.
int complain(const std::string& what, int error);
/// Report a failed send or receive. @param verb "send to". @param peer destID.
int complain(const char* verb, uint32_t peer, int error);

/// Ends a wait that takes too long.
class Patience {
 public:
  /// @param looks since the last call. @return false: it is at its end.
  [[nodiscard]] bool left(uint32_t looks = 1) {
    looks_ += looks;
    if (looks_ < kLooksPerClock) {
      return true;
    }
    looks_ = 0;
    return std::chrono::steady_clock::now() < end_;
  }

 private:
  static constexpr uint32_t kLooksPerClock = 1u << 20;
  static constexpr std::chrono::seconds kPatience{30};

  uint32_t looks_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kPatience;
};

}  // namespace rio::msgrate
