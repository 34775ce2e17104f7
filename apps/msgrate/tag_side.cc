#include "apps/msgrate/tag_side.hpp"

#include <utility>

namespace rio::msgrate {
namespace {

constexpr uint32_t kPageBytes = 4096;

}  // namespace

TagSide::TagSide(uint32_t peer, uint32_t size_bytes)
    : end_(peer), memory_(size_bytes + kPageBytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  bytes_ = memory_.data() + (kPageBytes - begin % kPageBytes) % kPageBytes;
}

int TagSide::open(const std::string& card, uint32_t peer, uint32_t size_bytes,
                  std::unique_ptr<Side>* out) {
  std::unique_ptr<TagSide> side(new TagSide(peer, size_bytes));
  const int rc = side->end_.open(card);
  if (rc == 0) {
    *out = std::move(side);
  }
  return rc;
}

inline int TagSide::send_one(uint32_t size_bytes) {
  return end_.wait(end_.send(kBits, bytes_, size_bytes, sends_[0]), sends_[0]);
}

inline int TagSide::receive_one(uint32_t size_bytes) {
  return end_.wait(end_.receive(kBits, bytes_, size_bytes, receives_[0]), receives_[0]);
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
      if (const int rc = end_.wait(begun[at], sends_[at]); rc != 0) {
        return rc;
      }
    }
    if (i < count) {
      begun[at] = end_.send(kBits, bytes_, size_bytes, sends_[at]);
    }
  }
  return 0;
}

int TagSide::receive(uint32_t size_bytes, uint32_t count) {
  std::array<int, kAhead> begun;
  for (uint32_t i = 0; i < count + kAhead; ++i) {
    const uint32_t at = i % kAhead;
    if (i >= kAhead && i - kAhead < count) {
      if (const int rc = end_.wait(begun[at], receives_[at]); rc != 0) {
        return rc;
      }
    }
    if (i < count) {
      begun[at] = end_.receive(kBits, bytes_, size_bytes, receives_[at]);
    }
  }
  return 0;
}

int TagSide::ping_pong(bool first, uint32_t size_bytes, uint32_t count) {
  return take_turns(*this, first, size_bytes, count);
}

}  // namespace rio::msgrate
