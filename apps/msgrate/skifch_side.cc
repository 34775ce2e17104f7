#include "apps/msgrate/skifch_side.hpp"

namespace rio::msgrate {
namespace {

constexpr uint32_t kChannel = 1;
constexpr uint32_t kLooks = 1024;  // in vain, between those at what else may have happened

}  // namespace

SkifChSide::SkifChSide(uint32_t peer)
    : peer_(SkifCh_Addr(peer, kChannel)), bytes_(SKIFCH_MESSAGE_MAX) {}

int SkifChSide::open(const std::string& card) {
  channel_.reset(SkifCh_Open(card.c_str(), kChannel, nullptr));
  return channel_ != nullptr ? 0 : apps::complain(card, errno);
}

/// As SkifCh_Recv(), but EAGAIN only when it takes too long.
ssize_t SkifChSide::wait_for_one(iovec* cont, int* count) {
  apps::Patience patience;
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

int SkifChSide::complain(const char* verb) const {
  const int error = errno == EAGAIN ? ETIMEDOUT : errno;
  return apps::complain(std::string(verb) + " destID " + std::to_string(peer_ >> 8), error);
}

}  // namespace rio::msgrate
