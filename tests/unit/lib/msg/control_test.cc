#include "lib/msg/control.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rio::msg {
namespace {

using Bytes = std::vector<uint8_t>;

// Control messages as they are on the wire.
const Bytes kRequest = {1, 0, 0, 0, 2, 0, 0, 0, 0, 0,    1,    0, 0, 0,   0,   0,   8, 7, 6,
                        5, 4, 3, 2, 1, 9, 0, 0, 0, 0xfd, 0x0f, 2, 3, 0xa, 0xb, 0xc, 0, 0, 0,
                        0, 0, 7, 0, 0, 0, 0, 0, 0, 9,    0,    0, 0, 0,   0,   0,   0, 0};
const Bytes kGrant = {5, 0, 0, 0, 1, 3, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 16, 0, 0, 2, 0, 0, 0};
const Bytes kStripe = {5, 0, 0, 0, 0, 3, 1, 250, 4, 0, 0, 0, 1, 0, 0, 0, 0, 16, 0, 0,
                       2, 0, 0, 0, 1, 0, 0, 0,   0, 0, 0, 0, 2, 0, 0, 0, 0, 0,  0, 0};
const Bytes kExtend = {5, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0};
const Bytes kDone = {5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
const Bytes kAbort = {5, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0, 0};
const Bytes kClosed = {5, 0, 0, 0, 3, 0, 0, 0, 1, 0, 1, 0};
const Bytes kOffer = {1, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0x10, 0, 0,    0, 0, 0, 1,  0, 0, 0,
                      0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0,    0, 0x80, 0, 0, 1, 16, 0, 2, 0};

template <typename Body>
int read_bytes(const Bytes& bytes, Body* out) {
  return read(bytes, out);
}

/// A copy of the bytes with one of them changed.
Bytes with(Bytes bytes, size_t at, uint8_t value) {
  bytes.at(at) = value;
  return bytes;
}

TEST(Control, ReadsValidMessages) {
  RequestBody request{};
  ASSERT_EQ(read_bytes(kRequest, &request), 0);
  EXPECT_EQ(request.transfer, 1u);
  EXPECT_EQ(request.offer, 2u);
  EXPECT_EQ(request.len_bytes, 65536u);
  EXPECT_EQ(request.match_bits, 0x0102030405060708u);
  EXPECT_EQ(request.message_number, 9u);
  EXPECT_EQ(request.page_offset, 4093);
  EXPECT_EQ(request.edge_bytes, 3);
  EXPECT_EQ(request.edge[2], 0xc);
  EXPECT_EQ(request.flags, RequestBody::kImmediate);
  EXPECT_EQ(request.immediate, 0x0900000000000007u);
  const Bytes shown = with(with(kRequest, 4, 0), 55, 0x80);  // without an offer
  ASSERT_EQ(read_bytes(shown, &request), 0);
  EXPECT_EQ(request.shown_at, 0x8000000000000000u);
  GrantBody grant{};
  ASSERT_EQ(read_bytes(kGrant, &grant), 0);
  EXPECT_EQ(grant.transfer, 5u);
  EXPECT_EQ(grant.attempt, 1);
  EXPECT_EQ(grant.mailbox, 3);
  EXPECT_EQ(grant.total, 4u);
  pmd::mem::Cut cut;
  ASSERT_EQ(pmd::mem::decode_cut(grant.cut, 8192, {}, &cut), 0);
  EXPECT_EQ(cut.middle_messages, 2u);
  TotalBody total{};
  ASSERT_EQ(read(kExtend, Kind::kExtend, &total), 0);
  EXPECT_EQ(total.total, 8u);
  ASSERT_EQ(read(kDone, Kind::kDone, &total), 0);
  StopBody stop{};
  ASSERT_EQ(read(kAbort, Kind::kAbort, &stop), 0);
  EXPECT_EQ(stop.reason, 7);
  ASSERT_EQ(read(kClosed, Kind::kClosed, &stop), 0);
  EXPECT_EQ(stop.arrived, 3u);
  EXPECT_EQ(stop.again, 1);
  OfferBody offer{};
  ASSERT_EQ(read_bytes(kOffer, &offer), 0);
  EXPECT_EQ(offer.message_number, 2u);
  EXPECT_EQ(offer.len_max, 1u << 20);
  EXPECT_EQ(offer.ignore_bits, 0xffu);
  EXPECT_EQ(offer.head_bytes, 128);
  EXPECT_EQ(offer.unit_bytes, 256);
  EXPECT_EQ(offer.window, 16);
  EXPECT_EQ(offer.mailbox, 2);
  RevokeBody revoke{};
  ASSERT_EQ(read_bytes(Bytes{4, 0, 0, 0}, &revoke), 0);
  EXPECT_EQ(revoke.offer, 4u);
}

TEST(Control, TheEdgeEndsOnEightBytes) {
  EXPECT_EQ(edge_bytes(4096, 100), 0u);
  EXPECT_EQ(edge_bytes(4097, 100), 7u);
  EXPECT_EQ(edge_bytes(4103, 100), 1u);
  EXPECT_EQ(edge_bytes(4097, 3), 3u);
}

/// A body of any other length is refused, and the result is not touched.
TEST(Control, RefusesAnyOtherLength) {
  Bytes longer = kRequest;
  longer.push_back(0);
  for (size_t len = 0; len <= longer.size(); ++len) {
    const Bytes bytes(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(len));
    RequestBody request{};
    EXPECT_EQ(read_bytes(bytes, &request), len == kRequest.size() ? 0 : -EPROTO) << len;
    EXPECT_EQ(request.transfer, len == kRequest.size() ? 1u : 0u);
  }
}

TEST(Control, RefusesValuesOutOfRange) {
  struct Case {
    size_t at;
    uint8_t value;
  };
  const auto refused = [](const Bytes& bytes, auto* body) { return read_bytes(bytes, body); };
  RequestBody request{};
  for (const Case one : {Case{0, 0}, Case{13, 1}, Case{29, 0x10}, Case{30, 4}, Case{30, 1},
                         Case{30, 0}, Case{31, 8}, Case{31, 2}, Case{39, 1}}) {
    EXPECT_EQ(refused(with(kRequest, one.at, one.value), &request), -EPROTO) << one.at;
  }
  EXPECT_EQ(refused(with(with(kRequest, 10, 0), 8, 2), &request), -EPROTO);  // edge above length
  EXPECT_EQ(refused(with(kRequest, 48, 8), &request), -EPROTO);  // shown, and an offer accepted
  EXPECT_EQ(refused(with(with(kRequest, 4, 0), 48, 4), &request), -EPROTO);  // not on 8 bytes
  const Bytes small = with(with(kRequest, 4, 0), 30, 3);
  ASSERT_EQ(read_bytes(small, &request), 0);
  EXPECT_EQ(refused(with(small, 48, 8), &request), -EPROTO);
  GrantBody grant{};
  for (const Case one :
       {Case{0, 0}, Case{4, 250}, Case{5, 4}, Case{5, 0}, Case{6, 8}, Case{7, 1}, Case{8, 0}}) {
    EXPECT_EQ(refused(with(kGrant, one.at, one.value), &grant), -EPROTO) << one.at;
  }
  StripeBody stripe{};
  ASSERT_EQ(read_bytes(kStripe, &stripe), 0);
  EXPECT_EQ(stripe.first_byte, 1u);
  EXPECT_EQ(stripe.whole_bytes, 2u);
  // Besides those of GRANT: no such stripe, one behind the end, a transfer that is too long.
  for (const Case one : {Case{0, 0}, Case{4, 250}, Case{5, 4}, Case{6, 8}, Case{7, 0}, Case{7, 251},
                         Case{8, 0}, Case{24, 2}, Case{39, 1}}) {
    EXPECT_EQ(refused(with(kStripe, one.at, one.value), &stripe), -EPROTO) << one.at;
  }
  OfferBody offer{};
  for (const Case one : {Case{0, 0}, Case{10, 0}, Case{15, 1}, Case{33, 0x10}, Case{35, 2},
                         Case{34, 1}, Case{36, 0}, Case{38, 0}, Case{38, 4}, Case{39, 1}}) {
    EXPECT_EQ(refused(with(kOffer, one.at, one.value), &offer), -EPROTO) << one.at;
  }
  RevokeBody revoke{};
  EXPECT_EQ(refused(Bytes{0, 0, 0, 0}, &revoke), -EPROTO);
}

TEST(Control, RefusesStopsAndTotalsThatMeanNothing) {
  TotalBody total{};
  EXPECT_EQ(read(kDone, Kind::kExtend, &total), -EPROTO);
  EXPECT_EQ(read(kExtend, Kind::kDone, &total), -EPROTO);
  EXPECT_EQ(read(with(kExtend, 8, 250), Kind::kExtend, &total), -EPROTO);
  EXPECT_EQ(read(with(kExtend, 9, 251), Kind::kExtend, &total), -EPROTO);  // such a stripe
  EXPECT_EQ(read(with(kExtend, 11, 1), Kind::kExtend, &total), -EPROTO);
  StopBody stop{};
  EXPECT_EQ(read(with(kAbort, 4, 1), Kind::kAbort, &stop), -EPROTO);   // ABORT counts nothing
  EXPECT_EQ(read(with(kAbort, 9, 0), Kind::kAbort, &stop), -EPROTO);   // no reason
  EXPECT_EQ(read(with(kAbort, 10, 1), Kind::kAbort, &stop), -EPROTO);  // a reason, and again
  EXPECT_EQ(read(with(kClosed, 10, 2), Kind::kClosed, &stop), 0);
  EXPECT_EQ(read(with(kClosed, 10, 3), Kind::kClosed, &stop), -EPROTO);
  EXPECT_EQ(read(with(with(kAbort, 9, 0), 10, 1), Kind::kAbort, &stop), 0);
  EXPECT_EQ(read(with(with(kAbort, 9, 0), 10, 2), Kind::kAbort, &stop), -EPROTO);
  EXPECT_EQ(read(with(kClosed, 11, 251), Kind::kClosed, &stop), -EPROTO);  // such a stripe
  EXPECT_EQ(read(with(kClosed, 0, 0), Kind::kClosed, &stop), -EPROTO);
}

/// The receiver cuts a transfer of the true length as the sender does, which knows the offer only.
TEST(Control, BothSidesOfAnOfferCutAlike) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    pmd::mem::AlignRules rules;
    rules.dedicated_size = 8u << random() % 6;
    rules.dedicated_addr = 256u << random() % 5;
    const auto offset = static_cast<uint32_t>(random() % 4096);
    const uint64_t len_bytes = 1 + random() % 100'000;
    pmd::mem::Cut mine;
    ASSERT_EQ(pmd::mem::make_cut(offset, len_bytes, rules, &mine), 0);
    OfferBody offer{};
    offer.head_bytes = static_cast<uint16_t>(
        (rules.dedicated_addr - offset % rules.dedicated_addr) % rules.dedicated_addr);
    offer.unit_bytes = static_cast<uint16_t>(rules.dedicated_size);
    pmd::mem::Cut theirs;
    ASSERT_EQ(offered_cut(offer, len_bytes, &theirs), 0);
    ASSERT_EQ(mine, theirs);
  }
}

}  // namespace
}  // namespace rio::msg
