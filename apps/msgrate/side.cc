#include "apps/msgrate/side.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace rio::msgrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kChannel = 1;
constexpr uint32_t kLooksPerClock = 1u << 20;
constexpr std::chrono::seconds kPatience{30};

int complain(const char* what, int error) {
  std::fprintf(stderr, "rio-msgrate: %s: %s\n", what, std::strerror(error));
  return -error;
}

/// Ends a wait that takes too long.
class Patience {
 public:
  /// @return false: it is at its end.
  [[nodiscard]] bool left() {
    if (++looks_ % kLooksPerClock != 0) {
      return true;
    }
    return Clock::now() < end_;
  }

 private:
  uint64_t looks_ = 0;
  Clock::time_point end_ = Clock::now() + kPatience;
};

}  // namespace

Side::Side(uint32_t peer) : peer_(SkifCh_Addr(peer, kChannel)), bytes_(SKIFCH_MESSAGE_MAX) {}

int Side::open(const std::string& card, uint32_t peer, std::unique_ptr<Side>* out) {
  std::unique_ptr<Side> side(new Side(peer));
  side->channel_.reset(SkifCh_Open(card.c_str(), kChannel, nullptr));
  if (side->channel_ == nullptr) {
    return complain(card.c_str(), errno);
  }
  *out = std::move(side);
  return 0;
}

inline int Side::send_one(uint32_t size_bytes) {
  const iovec piece = {bytes_.data(), size_bytes};
  if (SkifCh_Send(channel_.get(), peer_, &piece, 1) >= 0) [[likely]] {
    return 0;
  }
  Patience patience;
  while (errno == EAGAIN && patience.left()) {
    if (SkifCh_Send(channel_.get(), peer_, &piece, 1) >= 0) {
      return 0;
    }
  }
  return complain("send", errno == EAGAIN ? ETIMEDOUT : errno);
}

inline int Side::receive_one(uint32_t size_bytes) {
  iovec cont[SKIFCH_CONT_SIZE];
  int count = 0;
  ssize_t got = SkifCh_Recv(channel_.get(), cont, &count);
  if (got < 0) {
    Patience patience;
    while (got < 0 && errno == EAGAIN && patience.left()) {
      got = SkifCh_Recv(channel_.get(), cont, &count);
    }
  }
  if (got != static_cast<ssize_t>(size_bytes)) [[unlikely]] {
    const int error = errno == EAGAIN ? ETIMEDOUT : errno;
    return complain("receive", got < 0 ? error : EPROTO);
  }
  return SkifCh_RecvComp(channel_.get());
}

int Side::barrier() {
  if (const int rc = send_one(0); rc != 0) {
    return rc;
  }
  return receive_one(0);
}

int Side::send(uint32_t size_bytes, uint32_t count) {
  int rc = 0;
  for (uint32_t i = 0; i < count && rc == 0; ++i) {
    rc = send_one(size_bytes);
  }
  return rc;
}

int Side::receive(uint32_t size_bytes, uint32_t count) {
  int rc = 0;
  for (uint32_t i = 0; i < count && rc == 0; ++i) {
    rc = receive_one(size_bytes);
  }
  return rc;
}

int Side::ping_pong(bool first, uint32_t size_bytes, uint32_t count) {
  int rc = 0;
  for (uint32_t i = 0; i < count && rc == 0; ++i) {
    rc = first ? send_one(size_bytes) : receive_one(size_bytes);
    if (rc == 0) {
      rc = first ? receive_one(size_bytes) : send_one(size_bytes);
    }
  }
  return rc;
}

}  // namespace rio::msgrate
