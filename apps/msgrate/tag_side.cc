#include "apps/msgrate/tag_side.hpp"

namespace rio::msgrate {

int TagSide::open(const std::string& card, uint32_t peer, uint32_t size_bytes,
                  std::unique_ptr<Side>* out) {
  std::unique_ptr<TagSide> side(new TagSide(peer, size_bytes));
  const int rc = side->end_.open(card);
  if (rc == 0) {
    *out = std::move(side);
  }
  return rc;
}

template <class Request>
int TagSide::stream(uint32_t size_bytes, uint32_t count, std::array<Request, kAhead>& requests) {
  std::array<int, kAhead> begun;
  for (uint32_t i = 0; i < count + kAhead; ++i) {
    const uint32_t at = i % kAhead;
    // Wait for the receives of the last round, one after another.
    if (i >= kAhead && i - kAhead < count) {
      if (const int rc = end_.wait(begun[at], requests[at]); rc != 0) {
        return rc;
      }
    }
    if (i < count) {
      begun[at] = begin(size_bytes, requests[at]);
    }
  }
  return 0;
}

int TagSide::send(uint32_t size_bytes, uint32_t count) {
  return stream(size_bytes, count, sends_);
}

int TagSide::receive(uint32_t size_bytes, uint32_t count) {
  return stream(size_bytes, count, receives_);
}

}  // namespace rio::msgrate
