#include "apps/msgrate/skifch_side.hpp"

#include <cerrno>

namespace rio::msgrate {
namespace {

constexpr uint32_t kChannel = 1;
constexpr uint32_t kLooks = 1024;  // in vain, between those at what else may have happened

}  // namespace

SkifChSide::SkifChSide(uint32_t peer)
    : peer_(SkifCh_Addr(peer, kChannel)), bytes_(SKIFCH_MESSAGE_MAX) {}

int SkifChSide::open(const std::string& card, uint32_t peer, std::unique_ptr<Side>* out) {
  std::unique_ptr<SkifChSide> side(new SkifChSide(peer));
  side->channel_.reset(SkifCh_Open(card.c_str(), kChannel, nullptr));
  if (side->channel_ == nullptr) {
    return complain(card, errno);
  }
  *out = std::move(side);
  return 0;
}

inline int SkifChSide::send_one(uint32_t size_bytes) {
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
  return complain("send to", peer_ >> 8, errno == EAGAIN ? ETIMEDOUT : errno);
}

inline int SkifChSide::receive_one(uint32_t size_bytes) {
  iovec cont[SKIFCH_CONT_SIZE];
  int count = 0;
  ssize_t got = SkifCh_Recv(channel_.get(), cont, &count);
  if (got < 0) {
    got = wait_for_one(cont, &count);
  }
  if (got != static_cast<ssize_t>(size_bytes)) [[unlikely]] {
    const int error = errno == EAGAIN ? ETIMEDOUT : errno;
    return complain("receive from", peer_ >> 8, got < 0 ? error : EPROTO);
  }
  return SkifCh_RecvComp(channel_.get());
}

/// As SkifCh_Recv(), but EAGAIN only when it takes too long.
ssize_t SkifChSide::wait_for_one(iovec* cont, int* count) {
  Patience patience;
  ssize_t got = -1;
  do {
    for (uint32_t looks = 0; looks < kLooks && got < 0 && errno == EAGAIN; ++looks) {
      got = SkifCh_Recv(channel_.get(), cont, count);
    }
  } while (got < 0 && errno == EAGAIN && !peer_is_gone() && patience.left(kLooks));
  return got;
}

/// @return true: errno says why.
bool SkifChSide::peer_is_gone() {
  uint32_t dest_id = 0;
  int error = 0;
  while (SkifCh_NextGone(channel_.get(), &dest_id, &error) == 1) {
    if (dest_id == peer_ >> 8) {
      errno = error;
      return true;
    }
  }
  return false;
}

}  // namespace rio::msgrate
