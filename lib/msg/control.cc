#include "lib/msg/control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/msg/grant.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kPage = 4096;

[[nodiscard]] bool all_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

[[nodiscard]] bool is_mailbox(uint8_t mailbox) {
  return mailbox >= 1 && mailbox <= 3;
}

[[nodiscard]] bool is_valid(const GrantBody& body) {
  return body.transfer != 0 && body.attempt < kAttemptsMax && is_mailbox(body.mailbox) &&
         body.rail < kRailsMax && body.total != 0;
}

/// Read a body. @param is_valid checks each field. @return 0, -EPROTO.
template <class Body, class Check>
[[nodiscard]] int read_if(std::span<const uint8_t> bytes, Body* out, Check&& is_valid) {
  Body body;
  if (bytes.size() != sizeof(body)) {
    return -EPROTO;
  }
  std::memcpy(&body, bytes.data(), sizeof(body));
  if (!is_valid(body)) {
    return -EPROTO;
  }
  *out = body;
  return 0;
}

}  // namespace

int read(std::span<const uint8_t> bytes, RequestBody* out) {
  return read_if(bytes, out, [](const RequestBody& body) {
    const bool small = (body.flags & RequestBody::kSmall) != 0;
    const bool immediate = (body.flags & RequestBody::kImmediate) != 0;
    return body.transfer != 0 && body.len_bytes <= kTransferMax && (body.len_bytes != 0 || small) &&
           body.page_offset < kPage &&
           (body.flags & ~(RequestBody::kSmall | RequestBody::kImmediate)) == 0 &&
           !(small && body.offer != 0) && (immediate || body.immediate == 0) &&
           body.edge_bytes <= kEdgeMax && body.edge_bytes <= body.len_bytes &&
           all_zero(std::span(body.edge).subspan(body.edge_bytes)) && body.shown_at % 8 == 0 &&
           (body.shown_at == 0 || !(small || body.offer != 0));
  });
}

int read(std::span<const uint8_t> bytes, GrantBody* out) {
  return read_if(bytes, out,
                 [](const GrantBody& body) { return is_valid(body) && body.stripe == 0; });
}

int read(std::span<const uint8_t> bytes, StripeBody* out) {
  return read_if(bytes, out, [](const StripeBody& body) {
    return is_valid(body.grant) && body.grant.stripe != 0 && body.grant.stripe <= kStripesMax &&
           body.whole_bytes <= kTransferMax && body.first_byte < body.whole_bytes;
  });
}

int read(std::span<const uint8_t> bytes, OfferBody* out) {
  return read_if(bytes, out, [](const OfferBody& body) {
    return body.offer != 0 && body.len_max != 0 && body.len_max <= kTransferMax &&
           body.head_bytes < kPage && body.unit_bytes >= 8 &&
           body.unit_bytes <= pmd::mem::kLandingBytes && std::has_single_bit(body.unit_bytes) &&
           body.window != 0 && is_mailbox(body.mailbox) && body.zero == 0;
  });
}

int read(std::span<const uint8_t> bytes, RevokeBody* out) {
  return read_if(bytes, out, [](const RevokeBody& body) { return body.offer != 0; });
}

int read(std::span<const uint8_t> bytes, Kind kind, TotalBody* out) {
  return read_if(bytes, out, [=](const TotalBody& body) {
    return body.transfer != 0 && body.attempt < kAttemptsMax && body.stripe <= kStripesMax &&
           all_zero(body.zero) && (body.total == 0) == (kind == Kind::kDone);
  });
}

int read(std::span<const uint8_t> bytes, Kind kind, StopBody* out) {
  return read_if(bytes, out, [=](const StopBody& body) {
    return body.transfer != 0 && body.attempt < kAttemptsMax && body.stripe <= kStripesMax &&
           body.again <= (kind == Kind::kClosed ? StopBody::kDoubtful : 1) &&
           (body.again != 0) == (body.reason == 0) && (body.arrived == 0 || kind == Kind::kClosed);
  });
}

int offered_cut(const OfferBody& offer, uint64_t len_bytes, pmd::mem::Cut* out) {
  pmd::mem::AlignRules rules;
  rules.dedicated_size = offer.unit_bytes;
  return pmd::mem::make_cut((kPage - offer.head_bytes) % kPage, len_bytes, rules, out);
}

}  // namespace rio::msg
