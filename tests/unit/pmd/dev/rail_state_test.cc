#include "pmd/dev/rail_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace rio::pmd {
namespace {

using Bytes = std::array<uint8_t, 64>;

/// A status with number 7, by the bytes of docs/registers.md: up, 4 of 4 lanes, 6250 Mbaud.
constexpr Bytes kGood = {7,    0,    0,    0,    3,    0,    0,    0,     //
                         0x10, 0x27, 0,    0,    0,    2,    0,    0,     //
                         0x41, 0x04, 0x6A, 0x18, 0x78, 0x56, 0x34, 0x12,  //
                         0x43, 0x4F, 0x49, 0x52, 0,    0,    0,    0,     //
                         0,    0,    0,    0,    0,    0,    0,    0,     //
                         0,    0,    0,    0,    0,    0,    0,    0,     //
                         0,    0,    0,    0,    0,    0,    0,    0,     //
                         0,    0,    0,    0,    7,    0,    0,    0};

int read(const Bytes& bytes, RailState* out) {
  regs::RailStatus status;
  std::memcpy(&status, bytes.data(), sizeof status);
  return read_rail_state(status, out);
}

TEST(RailState, AStatusIsDecoded) {
  RailState state{};
  ASSERT_EQ(read(kGood, &state), 0);
  EXPECT_EQ(state.sequence, 7u);
  EXPECT_TRUE(state.reading);
  EXPECT_TRUE(state.receiving);
  EXPECT_EQ(state.tx_bytes, 10000u);
  EXPECT_EQ(state.rx_bytes, 512u);
  EXPECT_TRUE(state.link.up);
  EXPECT_EQ(state.link.lanes, 4u);
  EXPECT_EQ(state.link.lanes_max, 4u);
  EXPECT_EQ(state.link.lane_mbaud, 6250u);
  EXPECT_EQ(state.time_ticks, 0x12345678u);
}

TEST(RailState, ATornStatusIsNotTaken) {
  for (const size_t at : {0u, 3u, 60u, 63u}) {
    Bytes torn = kGood;
    torn[at] = static_cast<uint8_t>(torn[at] + 1);
    RailState state{.sequence = 99};
    EXPECT_EQ(read(torn, &state), -EAGAIN) << at;
    EXPECT_EQ(state.sequence, 99u);
  }
}

TEST(RailState, EachNumberIsANumber) {
  for (const uint32_t number : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    Bytes bytes = kGood;
    std::memcpy(bytes.data(), &number, 4);
    std::memcpy(bytes.data() + 60, &number, 4);
    RailState state{};
    EXPECT_EQ(read(bytes, &state), 0);
    EXPECT_EQ(state.sequence, number);
  }
}

TEST(RailState, OtherBytesAreNoStatus) {
  RailState state{.sequence = 99};
  Bytes bytes{};
  EXPECT_EQ(read(bytes, &state), -EPROTO) << "zeros";
  bytes.fill(0xFF);
  EXPECT_EQ(read(bytes, &state), -EPROTO) << "all ones";
  for (size_t at = 24; at < 28; ++at) {
    bytes = kGood;
    bytes[at] ^= 1;
    EXPECT_EQ(read(bytes, &state), -EPROTO) << at;
  }
  EXPECT_EQ(state.sequence, 99u);
}

TEST(RailState, BitsThatALaterCardMaySetChangeNothing) {
  Bytes bytes;
  bytes.fill(0xFF);
  std::copy(kGood.begin() + 24, kGood.begin() + 28, bytes.begin() + 24);
  bytes[4] = 0xFC;
  RailState state{};
  ASSERT_EQ(read(bytes, &state), 0);
  EXPECT_FALSE(state.reading);
  EXPECT_FALSE(state.receiving);
  EXPECT_EQ(state.tx_bytes, 0xFFFFFFFFu);
  EXPECT_EQ(state.rx_bytes, 0xFFFFFFFFu);
  EXPECT_LE(state.link.lanes, 0xFFFFu);
}

TEST(RailState, ARequestReadsTheEndOfTheAddressSpace) {
  const DmaRequest request = rail_request(0x55, 0x1000, 42);
  EXPECT_EQ(request.rio_addr, 0xFFFFFFFFFFFFFFC0u);
  EXPECT_EQ(request.length_bytes, 64u);
  EXPECT_EQ(request.op, regs::DmaOp::kNread);
  EXPECT_EQ(request.dest_id, 0x55u);
  EXPECT_EQ(request.iova, 0x1000u);
  EXPECT_EQ(request.cookie, 42u);
}

TEST(RailState, AnAnswerIsCheckedBeforeItsBytes) {
  regs::RailStatus bytes;
  std::memcpy(&bytes, kGood.data(), sizeof bytes);
  RailState state{};
  const auto read = [&](Status status, uint32_t length) {
    EntryDone done{};
    done.status = status;
    done.bytes = length;
    return read_rail_answer(done, bytes, &state);
  };
  EXPECT_EQ(read(Status::kErrorResponse, 0), -ENOTSUP);
  EXPECT_EQ(read(Status::kResponseTimeout, 0), -ETIMEDOUT);
  EXPECT_EQ(read(Status::kLinkDown, 0), -ENETDOWN);
  EXPECT_EQ(read(Status::kFlushed, 0), -EIO);
  EXPECT_EQ(read(Status::kOk, 32), -EIO) << "too short";
  EXPECT_EQ(state.sequence, 0u);
  EXPECT_EQ(read(Status::kOk, 64), 0);
  EXPECT_EQ(state.sequence, 7u);
  bytes.sequence_end = 8;
  EXPECT_EQ(read(Status::kOk, 64), -EAGAIN);
}

}  // namespace
}  // namespace rio::pmd
