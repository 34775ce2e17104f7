#include "apps/msgrate/tag_side.hpp"

#include <algorithm>
#include <cerrno>

namespace rio::msgrate {
namespace {

constexpr uint16_t kContext = 1;
constexpr uint32_t kFlushMs = 5000;
constexpr uint32_t kPageBytes = 4096;

}  // namespace

TagSide::TagSide(uint32_t peer, uint32_t size_bytes)
    : peer_(tag::address(peer, kContext)), memory_(size_bytes + kPageBytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  bytes_ = memory_.data() + (kPageBytes - begin % kPageBytes) % kPageBytes;
}

TagSide::~TagSide() {
  if (endpoint_ != nullptr) {
    static_cast<void>(endpoint_->flush(kFlushMs));
  }
}

int TagSide::open(const std::string& card, uint32_t peer, uint32_t size_bytes,
                  std::unique_ptr<Side>* out) {
  std::unique_ptr<TagSide> side(new TagSide(peer, size_bytes));
  msg::PortConfig config;
  config.card = card;
  int rc = msg::Port::open(config, &side->port_);
  rc = rc != 0 ? rc : tag::Endpoint::create(*side->port_, kContext, {}, &side->endpoint_);
  if (rc != 0) {
    return complain(card, -rc);
  }
  *out = std::move(side);
  return 0;
}

inline int TagSide::wait(int begun, tag::Request& request) {
  if (begun == 1) {
    return request.status == 0 ? 0 : complain("exchange with", peer_ >> 8, -request.status);
  }
  if (begun < 0) {
    return complain("exchange with", peer_ >> 8, -begun);
  }
  if (!endpoint_->test(request)) {
    Patience patience;
    do {
      endpoint_->progress();
      if (endpoint_->test(request)) {
        return request.status == 0 ? 0 : complain("exchange with", peer_ >> 8, -request.status);
      }
    } while (patience.left());
    return complain("exchange with", peer_ >> 8, ETIMEDOUT);
  }
  return request.status == 0 ? 0 : complain("exchange with", peer_ >> 8, -request.status);
}

inline int TagSide::send_one(uint32_t size_bytes) {
  return wait(endpoint_->send(peer_, kBits, bytes_, size_bytes, sends_[0]), sends_[0]);
}

inline int TagSide::receive_one(uint32_t size_bytes) {
  const int begun = endpoint_->receive({kBits, 0, peer_}, bytes_, size_bytes, receives_[0]);
  return wait(begun, receives_[0]);
}

int TagSide::barrier() {
  const int rc = send_one(0);
  return rc != 0 ? rc : receive_one(0);
}

int TagSide::send(uint32_t size_bytes, uint32_t count) {
  std::array<int, kAhead> begun;
  for (uint32_t i = 0; i < count + kAhead; ++i) {
    const uint32_t at = i % kAhead;
    // Those of a round ago are waited for, each in its turn.
    if (i >= kAhead && i - kAhead < count) {
      if (const int rc = wait(begun[at], sends_[at]); rc != 0) {
        return rc;
      }
    }
    if (i < count) {
      begun[at] = endpoint_->send(peer_, kBits, bytes_, size_bytes, sends_[at]);
    }
  }
  return 0;
}

int TagSide::receive(uint32_t size_bytes, uint32_t count) {
  std::array<int, kAhead> begun;
  for (uint32_t i = 0; i < count + kAhead; ++i) {
    const uint32_t at = i % kAhead;
    if (i >= kAhead && i - kAhead < count) {
      if (const int rc = wait(begun[at], receives_[at]); rc != 0) {
        return rc;
      }
    }
    if (i < count) {
      begun[at] = endpoint_->receive({kBits, 0, peer_}, bytes_, size_bytes, receives_[at]);
    }
  }
  return 0;
}

int TagSide::ping_pong(bool first, uint32_t size_bytes, uint32_t count) {
  return take_turns(*this, first, size_bytes, count);
}

}  // namespace rio::msgrate
