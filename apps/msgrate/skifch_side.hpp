/// @file
/// A channel of SkifCh.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/tag_end.hpp"
#include "apps/msgrate/side.hpp"
#include "lib/skifch/skifch.h"

namespace rio::msgrate {

struct CloseChannel {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};

/// A channel, and the address of its peer.
class SkifChSide : public Side<SkifChSide> {
 public:
  explicit SkifChSide(uint32_t peer);
  [[nodiscard]] int open(const std::string& card);

 private:
  friend Side;
  [[nodiscard]] int send_one(uint32_t size_bytes);
  [[nodiscard]] int receive_one(uint32_t size_bytes);
  [[nodiscard]] ssize_t wait_for_one(iovec* cont, int* count);
  [[nodiscard]] bool peer_is_gone();
  /// Report a failed send or receive, of which errno is the cause; EAGAIN: it took too long.
  [[nodiscard]] int complain(const char* verb) const;

  std::unique_ptr<SkifCh, CloseChannel> channel_;
  netaddr_t peer_;
  std::vector<uint8_t> bytes_;
};

inline int SkifChSide::send_one(uint32_t size_bytes) {
  const iovec piece = {bytes_.data(), size_bytes};
  if (SkifCh_Send(channel_.get(), peer_, &piece, 1) >= 0) [[likely]] {
    return 0;
  }
  apps::Patience patience;
  while (errno == EAGAIN && patience.left()) {
    if (SkifCh_Send(channel_.get(), peer_, &piece, 1) >= 0) {
      return 0;
    }
  }
  return complain("send to");
}

inline int SkifChSide::receive_one(uint32_t size_bytes) {
  iovec cont[SKIFCH_CONT_SIZE];
  int count = 0;
  ssize_t got = SkifCh_Recv(channel_.get(), cont, &count);
  if (got < 0) {
    got = wait_for_one(cont, &count);
  }
  if (got != static_cast<ssize_t>(size_bytes)) [[unlikely]] {
    errno = got < 0 ? errno : EPROTO;
    return complain("receive from");
  }
  return SkifCh_RecvComp(channel_.get());
}

}  // namespace rio::msgrate
