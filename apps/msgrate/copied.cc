#include "apps/msgrate/copied.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rio::msgrate {
namespace {

constexpr uint32_t kPage = TagCard::kPageBytes;
constexpr uint32_t kStride = 1597;  // odd

}  // namespace

int CopiedSide::send(uint64_t bits, const void* data, uint64_t size_bytes) {
  tag::SendRequest request;
  return card_.end().wait(card_.end().send(bits, data, size_bytes, request), request);
}

int CopiedSide::receive(uint64_t bits, void* data, uint64_t size_bytes) {
  tag::RecvRequest request;
  return card_.end().wait(card_.end().receive(bits, data, size_bytes, request), request);
}

void CopiedSide::stamp(uint8_t* at, uint64_t number) const {
  std::memcpy(at, &number, sizeof(number));
  std::memcpy(at + size_bytes_ - sizeof(number), &number, sizeof(number));
}

bool CopiedSide::stamped(const uint8_t* at, uint64_t number) const {
  return std::memcmp(at, &number, sizeof(number)) == 0 &&
         std::memcmp(at + size_bytes_ - sizeof(number), &number, sizeof(number)) == 0;
}

/// One message. @param own, others offsets of this side's and of the receiver's memory.
int CopiedSide::measure(uint32_t own, uint32_t others, uint64_t* copied_bytes) {
  const Order order = {++number_, others};
  Report report{};
  int rc = send(kOrder, &order, sizeof(order));
  stamp(page_ + own, number_);
  const uint64_t before = card_.port().stats().copied;
  rc = rc != 0 ? rc : send(kMessage, page_ + own, size_bytes_);
  const uint64_t copied = card_.port().stats().copied - before;
  rc = rc != 0 ? rc : receive(kReport, &report, sizeof(report));
  if (rc != 0) {
    return rc;
  }
  *copied_bytes = copied + report.copied_bytes;
  return report.number == number_ ? 0 : apps::complain("the message came back changed", EPROTO);
}

int CopiedSide::lead(Copied* out) {
  Report hello{};
  const Order first = {0, 0};
  int rc = send(kOrder, &first, sizeof(first));
  rc = rc != 0 ? rc : receive(kReport, &hello, sizeof(hello));
  // The offsets that the receiver's card can tell apart, and the part in which addresses have to
  // agree.
  const uint32_t offsets = std::clamp(hello.dedicated_addr_align, 1u, kPage);
  const uint32_t modulus = std::clamp(card_.port().endpoint().caps().tx_addr_align, 1u, kPage);
  const uint32_t steps = std::max(offsets / modulus, 1u);
  for (uint32_t i = 0; i < std::min(count_, offsets) && rc == 0; ++i) {
    // All of them if there are enough; the first has the longest head.
    const uint32_t theirs = (1 + i * kStride) % offsets;
    const uint32_t step = i % steps * modulus;
    uint64_t copied = 0;
    rc = measure(step + theirs % modulus, theirs, &copied);
    out->same_bytes = std::max(out->same_bytes, copied);
    ++out->same_pairs;
    if (rc == 0 && modulus > 1) {
      const uint32_t apart = 1 + i % (modulus - 1);
      rc = measure(step + (theirs + apart) % modulus, theirs, &copied);
      out->other_bytes = std::max(out->other_bytes, copied);
      ++out->other_pairs;
    }
  }
  const Order last = {0, 0};
  return rc != 0 ? rc : send(kOrder, &last, sizeof(last));
}

int CopiedSide::follow() {
  const uint32_t align = card_.port().endpoint().caps().dedicated_addr_align;
  Order order{};
  int rc = receive(kOrder, &order, sizeof(order));
  Report report = {0, 0, align};
  rc = rc != 0 ? rc : send(kReport, &report, sizeof(report));
  while (rc == 0) {
    rc = receive(kOrder, &order, sizeof(order));
    if (rc != 0 || order.number == 0) {
      break;
    }
    uint8_t* const at = page_ + order.offset % kPage;
    stamp(at, 0);
    const uint64_t before = card_.port().stats().copied;
    rc = receive(kMessage, at, size_bytes_);
    report.copied_bytes = card_.port().stats().copied - before;
    report.number = stamped(at, order.number) ? order.number : 0;
    rc = rc != 0 ? rc : send(kReport, &report, sizeof(report));
  }
  return rc;
}

}  // namespace rio::msgrate
