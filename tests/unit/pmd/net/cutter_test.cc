#include "pmd/net/cutter.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace rio::pmd {
namespace {

/// A frame without memory: none of its bytes is touched.
class Chain {
 public:
  struct Segment {
    uint64_t iova;
    uint16_t length_bytes;
  };
  explicit Chain(const std::vector<Segment>& segments)
      : mbufs_(new rte_mbuf[segments.size()]()), segments_(segments) {
    for (size_t i = 0; i < segments.size(); ++i) {
      mbufs_[i].buf_iova = segments[i].iova;
      mbufs_[i].data_len = segments[i].length_bytes;
      mbufs_[i].next = i + 1 < segments.size() ? &mbufs_[i + 1] : nullptr;
      mbufs_[0].pkt_len += segments[i].length_bytes;
    }
    mbufs_[0].nb_segs = static_cast<uint16_t>(segments.size());
  }
  [[nodiscard]] const rte_mbuf& frame() const { return mbufs_[0]; }
  [[nodiscard]] uint32_t bytes() const { return mbufs_[0].pkt_len; }
  /// Bus address of a byte of the frame.
  [[nodiscard]] uint64_t iova_of(uint32_t at) const {
    for (const Segment& segment : segments_) {
      if (at < segment.length_bytes) {
        return segment.iova + at;
      }
      at -= segment.length_bytes;
    }
    return UINT64_MAX;
  }

 private:
  std::unique_ptr<rte_mbuf[]> mbufs_;
  std::vector<Segment> segments_;
};

std::vector<Piece> pieces(const Chain& chain, uint64_t misaligned, bool copied = false) {
  Cutter cutter(chain.frame(), misaligned, copied);
  std::vector<Piece> all;
  for (Piece piece; all.size() <= chain.bytes() && cutter.next(&piece);) {
    all.push_back(piece);
  }
  return all;
}

/// Checks the rules of the card and of the receiver for all pieces.
void expect_right(const Chain& chain, uint64_t misaligned, bool copied) {
  uint32_t at = 0;
  CutSize wanted;
  const auto all = pieces(chain, misaligned, copied);
  for (const Piece& piece : all) {
    ASSERT_GE(piece.bytes, 1u);
    ASSERT_LE(piece.bytes, 4080u);
    ASSERT_LE(piece.places, 3u);
    uint32_t in_places = 0;
    for (uint32_t i = 0; i < piece.places; ++i) {
      ASSERT_FALSE(copied);
      ASSERT_EQ(piece.iova[i] & misaligned, 0u) << at;
      ASSERT_EQ(piece.iova[i], chain.iova_of(at + in_places));
      ASSERT_EQ(piece.iova[i] + piece.length_bytes[i] - 1,
                chain.iova_of(at + in_places + piece.length_bytes[i] - 1));
      ASSERT_TRUE(piece.length_bytes[i] % 8 == 0 || i + 1 == piece.places);
      in_places += piece.length_bytes[i];
    }
    ASSERT_TRUE(piece.places == 0 || in_places == piece.bytes);
    ASSERT_TRUE(at != 0 || piece.bytes >= std::min(chain.bytes(), 128u)) << "the headers";
    at += piece.bytes;
    ++wanted.messages;
    wanted.entries += piece.places == 0 ? 1 : 2;
    wanted.in_place += piece.places == 0 ? 0 : 1;
  }
  ASSERT_EQ(at, chain.bytes()) << "each byte once";
  const CutSize size = size_of(Cutter(chain.frame(), misaligned, copied));
  EXPECT_EQ(size.messages, wanted.messages);
  EXPECT_EQ(size.entries, wanted.in_place == 0 ? wanted.entries : with_skips(wanted.entries));
  EXPECT_EQ(size.in_place, wanted.in_place);
}

TEST(Cutter, OnePlaceYieldsOnePiece) {
  const Chain chain({{0x1000, 1500}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].places, 1u);
  EXPECT_EQ(all[0].iova[0], 0x1000u);
  EXPECT_EQ(all[0].length_bytes[0], 1500);
}

TEST(Cutter, NoPieceIsLongerThanAnItem) {
  const Chain chain({{0x1000, 65535}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 17u);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(all[i].bytes, 4080u);
    EXPECT_EQ(all[i].iova[0], 0x1000u + i * 4080);
  }
  EXPECT_EQ(all[16].bytes, 255u);
}

TEST(Cutter, UpToThreePlacesShareAMessage) {
  const Chain chain({{0x1000, 800}, {0x9000, 1600}, {0x5000, 77}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].places, 3u);
  EXPECT_EQ(all[0].bytes, 2477u);
  EXPECT_EQ(all[0].length_bytes[2], 77);
}

TEST(Cutter, AFourthPlaceTakesAnotherMessage) {
  const Chain chain({{0x1000, 208}, {0x2000, 16}, {0x3000, 8}, {0x4000, 24}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].bytes, 232u);
  EXPECT_EQ(all[1].bytes, 24u);
}

TEST(Cutter, AnOddLengthEndsAMessage) {
  const Chain chain({{0x1000, 133}, {0x2000, 800}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].bytes, 133u);
  EXPECT_EQ(all[1].bytes, 800u);
}

TEST(Cutter, UnalignedBytesAreCopied) {
  const Chain chain({{0x1004, 200}, {0x2000, 800}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].places, 0u);
  EXPECT_EQ(all[0].bytes, 200u);
  EXPECT_EQ(all[1].places, 1u);
}

TEST(Cutter, HeadersAreInTheFirstPiece) {
  // Ethernet's header alone is copied, plus as many bytes as it takes until the rest can stay in
  // place.
  const Chain chain({{0x1000, 14}, {0x2000, 9000}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].places, 0u);
  EXPECT_EQ(all[0].bytes, 14u + 120);
  EXPECT_EQ(all[1].iova[0], 0x2000u + 120);
  EXPECT_EQ(all[1].bytes, 4080u);
  const auto odd = pieces(Chain({{0x1000, 5}, {0x2000, 7}, {0x3000, 2}, {0x4000, 800}}), 7);
  ASSERT_EQ(odd.size(), 2u);
  EXPECT_EQ(odd[0].bytes, 14u + 120);
  const auto shorter = pieces(Chain({{0x1000, 14}, {0x2000, 46}}), 7);
  ASSERT_EQ(shorter.size(), 1u);
  EXPECT_EQ(shorter[0].bytes, 60u);
  const auto even = pieces(Chain({{0x1000, 16}, {0x2000, 8}, {0x3000, 8}, {0x4000, 800}}), 7);
  ASSERT_EQ(even.size(), 2u);
  EXPECT_EQ(even[0].places, 0u) << "three places are not enough";
  EXPECT_EQ(even[0].bytes, 128u);
}

TEST(Cutter, EmptySegmentsAreSkipped) {
  const Chain chain({{0x1000, 0}, {0x2000, 8}, {0x3001, 0}, {0x4000, 0}, {0x5000, 9}, {0x6003, 0}});
  const auto all = pieces(chain, 7);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].places, 2u);
  EXPECT_EQ(all[0].bytes, 17u);
}

TEST(Cutter, AnEmptyFrameYieldsNoPiece) {
  EXPECT_TRUE(pieces(Chain({{0x1000, 0}}), 7).empty());
  EXPECT_TRUE(pieces(Chain({{0x1000, 0}, {0x2000, 0}}), 7).empty());
}

/// Frames with more or fewer segments than their length says, as a program may pass them.
TEST(Cutter, ContradictoryLengthsAreSafe) {
  for (const uint32_t length : {1u, 100u, 101u, 500u, 60'000u}) {
    const Chain chain({{0x1000, 100}, {0x2000, 100}});
    rte_mbuf frame = chain.frame();
    frame.pkt_len = length;
    for (const bool copied : {false, true}) {
      Cutter cutter(frame, 7, copied);
      uint32_t bytes = 0;
      uint32_t count = 0;
      for (Piece piece; cutter.next(&piece); ++count) {
        bytes += piece.bytes;
        for (uint32_t i = 0; i < piece.places; ++i) {
          ASSERT_LE(piece.length_bytes[i], 100);
        }
      }
      EXPECT_LE(count, 20u);
      EXPECT_LE(bytes, length);
    }
  }
}

TEST(Cutter, AnyChainIsCutCorrectly) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t round = 0; round < 20'000 && !testing::Test::HasFailure(); ++round) {
    std::vector<Chain::Segment> segments(1 + random() % 12);
    const uint32_t most[] = {20, 300, 2000, 5400};
    for (uint64_t i = 0; auto& segment : segments) {
      const bool even = random() % 2 == 0;
      const auto length = static_cast<uint16_t>(random() % most[random() % 4]);
      segment = {(++i << 20) + (even ? 0 : random() % 64),
                 static_cast<uint16_t>(even ? length & ~7u : length)};
    }
    const uint64_t masks[] = {0, 7, 31, 63};
    expect_right(Chain(segments), masks[random() % 4], random() % 4 == 0);
  }
}

}  // namespace
}  // namespace rio::pmd
