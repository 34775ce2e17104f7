// The ring of frames: wraps, a full ring, and invalid contents by a hostile writer.
#include "fpga/model/frame_ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

namespace rio::test {
namespace {

using model::Frame;
using model::FrameType;

constexpr uint32_t kBytes = 8192;

class FrameRing : public testing::Test {
 protected:
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  uint8_t* memory() { return reinterpret_cast<uint8_t*>(lines_.data()); }
  Frame* frame_at(uint32_t at) { return reinterpret_cast<Frame*>(memory() + at); }
  bool put(uint32_t number, uint32_t payload) {
    Frame* frame = writer_.reserve(model::frame_bytes(payload));
    if (frame == nullptr) {
      return false;
    }
    frame->clear();
    frame->type = FrameType::kDoorbell;
    frame->address = number;
    frame->length = static_cast<uint16_t>(payload);
    std::memset(frame->payload(), static_cast<int>(number & 0xFF), payload);
    writer_.commit(frame, model::frame_bytes(payload));
    return true;
  }
  bool put_line(uint32_t number, uint32_t payload) {
    const uint64_t type = static_cast<uint64_t>(FrameType::kDoorbell) << 32;
    const std::vector<uint8_t> bytes(256, static_cast<uint8_t>(number));
    return writer_.send_short({type, 0, payload, number}, bytes.data(), payload);
  }
  /// Fills memory so that each 32 bytes begin like a short frame of the lap after the one with this
  /// tag.
  static void fill_with_frames(uint8_t* to, uint32_t payload, uint32_t tag) {
    const uint32_t word = model::frame_bytes(8) | (tag + (1u << model::kTagShift));
    for (uint32_t at = 0; at + sizeof(word) <= payload; at += 32) {
      std::memcpy(to + at, &word, sizeof(word));
    }
  }
  bool take(uint32_t number, uint32_t payload) {
    const model::InFrame* frame = reader_.peek();
    if (frame == nullptr) {
      return false;
    }
    EXPECT_EQ(frame->address, number);
    EXPECT_EQ(frame->length, payload);
    for (uint32_t i = 0; i < payload; ++i) {
      EXPECT_EQ(frame->payload()[i], number & 0xFF);
    }
    reader_.pop(frame);
    return true;
  }

  std::vector<Line> lines_ = std::vector<Line>(kBytes / 64);
  model::FrameRingShared shared_;
  model::FrameWriter writer_{&shared_, memory(), kBytes};
  model::FrameReader reader_{&shared_, memory(), kBytes};
};

TEST_F(FrameRing, TheRoomOfAHeldFrameIsNotReleased) {
  ASSERT_TRUE(put(1, 8));
  ASSERT_TRUE(put(2, 8));
  writer_.publish();
  const model::InFrame* frame = reader_.peek();
  ASSERT_NE(frame, nullptr);
  ASSERT_TRUE(reader_.hold(*frame));
  reader_.pop(frame);
  ASSERT_TRUE(take(2, 8)) << "later frames can be read";
  reader_.release_unheld();
  EXPECT_FALSE(writer_.passed(model::frame_bytes(8)));
  EXPECT_EQ(reader_.held()[0].frame.address, 1u);
  reader_.end_held(1);
  EXPECT_FALSE(reader_.holds());
  reader_.release_unheld();
  EXPECT_TRUE(writer_.passed(2 * model::frame_bytes(8)));
}

TEST_F(FrameRing, OnlySoManyFramesAreHeld) {
  for (uint32_t i = 0; i <= model::FrameReader::kHeldMax; ++i) {
    ASSERT_TRUE(put(i, 8));
    writer_.publish();
    const model::InFrame* frame = reader_.peek();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(reader_.hold(*frame), i != model::FrameReader::kHeldMax);
    reader_.pop(frame);
  }
}

TEST_F(FrameRing, NothingIsSeenBeforePublish) {
  ASSERT_TRUE(put(1, 8));
  ASSERT_TRUE(put(2, 8));
  EXPECT_EQ(reader_.peek(), nullptr);
  writer_.publish();
  EXPECT_TRUE(take(1, 8));
  EXPECT_TRUE(take(2, 8));
  EXPECT_EQ(reader_.peek(), nullptr);
}

TEST_F(FrameRing, AnyMixtureOfSizesForManyLaps) {
  std::deque<std::pair<uint32_t, uint32_t>> inside;
  uint32_t x = 7;
  uint32_t number = 0;
  uint32_t lines = 0;
  for (int i = 0; i < 200'000; ++i) {
    x = x * 1664525u + 1013904223u;
    const uint32_t payload = (x >> 9) % ((x >> 20) % 7 == 0 ? 4097 : 300);
    if ((x >> 28) % 4 == 0) {
      if (put_line(number, payload % 33)) {
        inside.emplace_back(number++, payload % 33);
        ++lines;
      }
    } else if ((x >> 28) % 2 == 0) {
      if (put(number, payload)) {
        inside.emplace_back(number++, payload);
      }
      if ((x >> 24) % 3 != 0) {
        writer_.publish();
      }
    } else if (!inside.empty()) {
      writer_.publish();
      ASSERT_TRUE(take(inside.front().first, inside.front().second)) << i;
      inside.pop_front();
      if ((x >> 23) % 2 == 0) {
        reader_.release();
      }
    }
    if (inside.empty()) {
      writer_.publish();
      ASSERT_EQ(reader_.peek(), nullptr) << i;
      reader_.release();
    }
  }
  EXPECT_GT(number, 10'000u);
  EXPECT_GT(lines, 1'000u);
}

TEST_F(FrameRing, ALineIsSeenAtOnceBehindEarlierFrames) {
  ASSERT_TRUE(put(1, 32));
  ASSERT_TRUE(put_line(2, 8));
  EXPECT_TRUE(take(1, 32));
  EXPECT_TRUE(take(2, 8));
  EXPECT_EQ(reader_.peek(), nullptr);
}

TEST_F(FrameRing, AFrameThatIsFilledAndNotPublishedIsNeverSeen) {
  for (const bool by_window : {false, true}) {
    ASSERT_TRUE(put_line(1, 8));
    uint8_t* left = by_window
                        ? writer_.window(1024).bytes
                        : reinterpret_cast<uint8_t*>(writer_.reserve(model::frame_bytes(256)));
    ASSERT_NE(left, nullptr);
    for (uint32_t at = 4; at < 288; at += 4) {
      const uint32_t length = 64;  // a valid length, at each place where a frame may begin
      std::memcpy(left + at, &length, sizeof(length));
    }
    ASSERT_TRUE(put_line(2, 8));
    EXPECT_TRUE(take(1, 8));
    EXPECT_TRUE(take(2, 8));
    EXPECT_EQ(reader_.peek(), nullptr);
  }
}

// Payloads look like frames of the next lap at each place where a frame may begin. The laps use up
// all tags, and then the first ones again.
TEST_F(FrameRing, BytesOfAnEarlierLapAreNoFrameOfTheNext) {
  constexpr uint32_t kTags = 1u << (32 - model::kTagShift);
  uint32_t position = 0;  // lower bound of the ring's position: fillers are not counted
  uint32_t number = 0;
  for (uint32_t x = 1; position / kBytes < kTags + 8;) {
    x = x * 1664525u + 1013904223u;
    const uint32_t payload = 1 + (x >> 24);
    const uint32_t bytes = model::frame_bytes(payload);
    const bool shortly = (x >> 20) % 2 == 0;
    Frame* const frame = shortly ? nullptr : writer_.reserve(bytes);
    if (frame != nullptr) {
      frame->clear();
      frame->type = FrameType::kDoorbell;
      frame->address = number;
      fill_with_frames(frame->payload(), payload, reader_.tag());
      writer_.commit(frame, bytes);
      writer_.publish();
    } else {
      std::vector<uint8_t> like(256);
      fill_with_frames(like.data(), payload, reader_.tag());
      const uint64_t type = static_cast<uint64_t>(FrameType::kDoorbell) << 32;
      if (!writer_.send_short({type, 0, payload, number}, like.data(), payload)) {
        continue;  // the ring ends here: reserve() puts a filler
      }
    }
    const model::InFrame* const come = reader_.peek();
    ASSERT_NE(come, nullptr);
    ASSERT_EQ(come->address, number++);
    reader_.pop(come);
    reader_.release();
    ASSERT_EQ(reader_.peek(), nullptr) << number;
    position += bytes;
  }
}

TEST_F(FrameRing, ShortFramesOfAllSizesWhereverTheyBegin) {
  for (uint32_t payload = 1; payload <= 256; ++payload) {
    if (!put_line(payload, payload)) {  // not contiguous, since the ring ends here
      ASSERT_TRUE(put(payload, payload));
      writer_.publish();
    }
    EXPECT_TRUE(take(payload, payload));
    EXPECT_EQ(reader_.peek(), nullptr);
    reader_.release();
  }
}

TEST_F(FrameRing, AHeldBackFrameComesBeforeAShortOne) {
  ASSERT_TRUE(put(1, 0));  // 32 bytes: the next begins in the middle of a line
  EXPECT_EQ(reader_.peek(), nullptr);
  ASSERT_TRUE(put_line(2, 8));
  EXPECT_TRUE(take(1, 0));
  EXPECT_TRUE(take(2, 8));
  EXPECT_EQ(reader_.peek(), nullptr);
}

TEST_F(FrameRing, LinesUntilFullThenFreeAgain) {
  for (uint32_t lap = 0; lap < 3; ++lap) {
    uint32_t n = 0;
    // send_short() cannot use the last line of the memory, since the next lap has another tag;
    // reserve() can.
    while (put_line(n, 8) || put(n, 8)) {
      ++n;
    }
    writer_.publish();
    EXPECT_GE(n, kBytes / 64 - 4);
    for (uint32_t i = 0; i < n; ++i) {
      ASSERT_TRUE(take(i, 8));
    }
    EXPECT_EQ(reader_.peek(), nullptr);
    reader_.release();
  }
}

TEST_F(FrameRing, FullThenFreeAgain) {
  uint32_t n = 0;
  while (put(n, 224)) {
    ++n;
  }
  EXPECT_EQ(n, kBytes / 256 - 1) << "all but room for the end mark";
  writer_.publish();
  for (uint32_t i = 0; i < n; ++i) {
    ASSERT_TRUE(take(i, 224));
  }
  EXPECT_FALSE(put(n, 224)) << "not released yet";
  reader_.release();
  EXPECT_TRUE(put(n, 224));
}

TEST_F(FrameRing, AFrameIsRevokedUntilItIsReleased) {
  ASSERT_TRUE(put(1, 8));
  ASSERT_TRUE(put(2, 8));
  writer_.publish();
  writer_.revoke(0);
  EXPECT_EQ(frame_at(0)->type, FrameType::kRevoked);
  ASSERT_TRUE(take(1, 8));
  reader_.release();
  frame_at(0)->type = FrameType::kDoorbell;
  writer_.revoke(0);
  EXPECT_EQ(frame_at(0)->type, FrameType::kDoorbell);
}

/// After 2^31 bytes, whether the reader has passed a position cannot be told from the difference of
/// both. The frame that is in its place by then is another one.
TEST_F(FrameRing, TheRevocationOfAnOldFrameLeavesLaterOnesAlone) {
  constexpr uint32_t kHalf = kBytes / 2;
  for (uint32_t end = (1u << 31) + kBytes; writer_.tail() != end;) {
    Frame* const frame = writer_.reserve(kHalf);
    ASSERT_NE(frame, nullptr);
    frame->type = FrameType::kDoorbell;
    writer_.commit(frame, kHalf);
    writer_.publish();
    const model::InFrame* const taken = reader_.peek();
    ASSERT_NE(taken, nullptr);
    reader_.pop(taken);
    reader_.release();
  }
  ASSERT_TRUE(put(1, 8));
  writer_.publish();
  writer_.revoke(0);
  EXPECT_TRUE(take(1, 8));
  EXPECT_EQ(frame_at(0)->type, FrameType::kDoorbell);
}

TEST_F(FrameRing, ImpossibleLengthsAreNotRead) {
  for (const uint32_t bytes : {1u, 31u, 33u, kBytes + 32, model::kFrameRingBytesMax - 32}) {
    model::FrameReader reader{&shared_, memory(), kBytes};
    frame_at(0)->bytes = bytes;
    frame_at(0)->type = FrameType::kMessage;
    EXPECT_EQ(reader.peek(), nullptr) << bytes;
    EXPECT_TRUE(reader.foul()) << bytes;
  }
  frame_at(0)->bytes = 0xFFFFFFE0u;  // a length of another lap: no frame is there yet
  EXPECT_EQ(reader_.peek(), nullptr);
  EXPECT_FALSE(reader_.foul());
}

TEST_F(FrameRing, FillerOfAWholeRingIsNoEndlessLoop) {
  frame_at(0)->bytes = kBytes;
  frame_at(0)->type = FrameType::kSkip;
  EXPECT_EQ(reader_.peek(), nullptr);
  frame_at(0)->bytes = 64;  // a filler is valid only at the end of the ring
  EXPECT_EQ(reader_.peek(), nullptr);
}

}  // namespace
}  // namespace rio::test
