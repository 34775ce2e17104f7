#include "apps/msgrate/tag_side.hpp"

namespace rio::msgrate {

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
