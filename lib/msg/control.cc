#include "lib/msg/control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/msg/grant.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kPage = 4096;

/// Copy the bytes into a body, if their number is right.
template <typename Body>
bool copy(std::span<const uint8_t> bytes, Body* out) {
  if (bytes.size() != sizeof(Body)) {
    return false;
  }
  std::memcpy(out, bytes.data(), sizeof(Body));
  return true;
}

/// Set the output once everything was checked.
template <typename Body>
int give(bool ok, const Body& body, Body* out) {
  if (!ok) {
    return -EPROTO;
  }
  *out = body;
  return 0;
}

bool all_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

bool check_total(const TotalBody& body) {
  return body.transfer != 0 && body.attempt < kAttemptsMax && all_zero(body.zero);
}

bool check_stop(const StopBody& body) {
  return body.transfer != 0 && body.attempt < kAttemptsMax && body.zero == 0 && body.again <= 1 &&
         (body.again == 1) == (body.reason == 0);
}

}  // namespace

int read(std::span<const uint8_t> bytes, RequestBody* out) {
  RequestBody body;
  if (!copy(bytes, &body)) {
    return -EPROTO;
  }
  const bool small = (body.flags & RequestBody::kSmall) != 0;
  const bool immediate = (body.flags & RequestBody::kImmediate) != 0;
  const bool ok = body.transfer != 0 && body.len_bytes <= kTransferMax &&
                  (body.len_bytes != 0 || small) && body.page_offset < kPage &&
                  (body.flags & ~(RequestBody::kSmall | RequestBody::kImmediate)) == 0 &&
                  !(small && body.offer != 0) && (immediate || body.immediate == 0) &&
                  body.edge_bytes <= kEdgeMax && body.edge_bytes <= body.len_bytes &&
                  all_zero(std::span<const uint8_t>(body.edge).subspan(
                      std::min<size_t>(body.edge_bytes, sizeof(body.edge))));
  return give(ok, body, out);
}

int read(std::span<const uint8_t> bytes, GrantBody* out) {
  GrantBody body;
  const bool ok = copy(bytes, &body) && body.transfer != 0 && body.attempt < kAttemptsMax &&
                  body.mailbox >= 1 && body.mailbox <= 3 && body.zero == 0 && body.total != 0;
  return give(ok, body, out);
}

int read(std::span<const uint8_t> bytes, OfferBody* out) {
  OfferBody body;
  const bool ok = copy(bytes, &body) && body.offer != 0 && body.len_max != 0 &&
                  body.len_max <= kTransferMax && body.head_bytes < kPage && body.unit_bytes >= 8 &&
                  body.unit_bytes <= pmd::mem::kLandingBytes &&
                  std::has_single_bit(body.unit_bytes) && body.window != 0 && body.mailbox >= 1 &&
                  body.mailbox <= 3 && body.zero == 0;
  return give(ok, body, out);
}

int read(std::span<const uint8_t> bytes, RevokeBody* out) {
  RevokeBody body;
  const bool ok = copy(bytes, &body) && body.offer != 0;
  return give(ok, body, out);
}

int read_extend(std::span<const uint8_t> bytes, TotalBody* out) {
  TotalBody body;
  const bool ok = copy(bytes, &body) && check_total(body) && body.total != 0;
  return give(ok, body, out);
}

int read_done(std::span<const uint8_t> bytes, TotalBody* out) {
  TotalBody body;
  const bool ok = copy(bytes, &body) && check_total(body) && body.total == 0;
  return give(ok, body, out);
}

int read_abort(std::span<const uint8_t> bytes, StopBody* out) {
  StopBody body;
  const bool ok = copy(bytes, &body) && check_stop(body) && body.arrived == 0;
  return give(ok, body, out);
}

int read_closed(std::span<const uint8_t> bytes, StopBody* out) {
  StopBody body;
  const bool ok = copy(bytes, &body) && check_stop(body);
  return give(ok, body, out);
}

int offered_cut(const OfferBody& offer, uint64_t len_bytes, pmd::mem::Cut* out) {
  pmd::mem::AlignRules rules;
  rules.dedicated_size = offer.unit_bytes;
  return pmd::mem::make_cut((kPage - offer.head_bytes) % kPage, len_bytes, rules, out);
}

}  // namespace rio::msg
