// Tables as literals: Intel VT-d specification, chapter 9 (root entry, context entry, second-level
// paging entries).
#include "fpga/cardsim/iommu_walk.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/cardsim/ram_file.hpp"

namespace rio::cardsim {
namespace {

constexpr uint64_t kRamBytes = 64 << 20;
constexpr uint16_t kBdf = 0x0020;  // 00:04.0

class IommuWalk : public testing::Test {
 protected:
  // Root table at 0x1000, context table at 0x2000, top table at 0x3000.
  IommuWalk() {
    file_.put(0x1000, 0x2001);      // bus 0: present
    file_.put(0x2200, 0x3001);      // devfn 0x20: present, second level
    file_.put(0x2208, 0x0102);      // domain 1, 48 bits: 4 levels
    file_.put(0x3000, 0x4003);      // level 4, entry 0
    file_.put(0x4000, 0x5003);      // level 3, entry 0
    file_.put(0x5008, 0x6003);      // level 2, entry 1: 2 MiB to 4 MiB
    file_.put(0x6018, 0x123003);    // level 1, entry 3: 0x203000
    file_.put(0x6020, 0x124001);    // 0x204000: read only
    file_.put(0x6028, 0x125002);    // 0x205000: write only
    file_.put(0x5010, 0xA00083);    // level 2, entry 2: a page of 2 MiB
    file_.put(0x4008, 0x80000083);  // level 3, entry 1: a page of 1 GiB at 2 GiB
  }
  bool walk(uint64_t iova, uint64_t root = 0x1000, uint16_t bdf = kBdf) {
    return walk_iommu(ram_, root, bdf, iova, &words_, &page_);
  }

  test::TempDir dir_;
  test::RamFile file_{dir_.at("ram"), kRamBytes};
  GuestRam ram_{dir_.at("ram")};
  TableWords words_;
  IommuPage page_;
};

TEST_F(IommuWalk, SmallPage) {
  ASSERT_TRUE(walk(0x203ABC));
  EXPECT_EQ(page_.iova, 0x203000u);
  EXPECT_EQ(page_.len_bytes, 4096u);
  EXPECT_EQ(page_.address, 0x123000u);
  EXPECT_TRUE(page_.readable && page_.writable);
  ASSERT_TRUE(walk(0x204000));
  EXPECT_TRUE(page_.readable);
  EXPECT_FALSE(page_.writable);
  ASSERT_TRUE(walk(0x205FFF));
  EXPECT_FALSE(page_.readable);
  EXPECT_TRUE(page_.writable);
  EXPECT_EQ(page_.address, 0x125000u);
}

TEST_F(IommuWalk, LargePages) {
  ASSERT_TRUE(walk(0x5FFFFF));
  EXPECT_EQ(page_.iova, 0x400000u);
  EXPECT_EQ(page_.len_bytes, 0x200000u);
  EXPECT_EQ(page_.address, 0xA00000u);
  ASSERT_TRUE(walk(0x40000000));
  EXPECT_EQ(page_.iova, 0x40000000u);
  EXPECT_EQ(page_.len_bytes, 0x40000000u);
  EXPECT_EQ(page_.address, 0x80000000u);
}

TEST_F(IommuWalk, NotMapped) {
  EXPECT_FALSE(walk(0x202FFF));                  // no entry at level 1
  EXPECT_FALSE(walk(0x000000));                  // none at level 2
  EXPECT_FALSE(walk(0x80000000));                // none at level 3
  EXPECT_FALSE(walk(0x8000000000));              // none at level 4
  EXPECT_FALSE(walk(1ull << 48));                // wider than the tables
  EXPECT_FALSE(walk(0x203000, 0x1000, 0x21));    // another function
  EXPECT_FALSE(walk(0x203000, 0x1000, 0x0120));  // another bus
  EXPECT_FALSE(walk(0x203000, 0x7000));          // no tables there
}

TEST_F(IommuWalk, RightsOfEachLevelCount) {
  file_.put(0x4000, 0x5001);  // level 3: read only
  ASSERT_TRUE(walk(0x203000));
  EXPECT_TRUE(page_.readable);
  EXPECT_FALSE(page_.writable);
  EXPECT_FALSE(walk(0x205000));  // what is left of write only
}

TEST_F(IommuWalk, ThreeLevels) {
  file_.put(0x2200, 0x4001);
  file_.put(0x2208, 0x0101);  // 39 bits
  ASSERT_TRUE(walk(0x203000));
  EXPECT_EQ(page_.address, 0x123000u);
  EXPECT_FALSE(walk(1ull << 39));
}

TEST_F(IommuWalk, PassThrough) {
  file_.put(0x2200, 0x0009);  // present, type 2
  ASSERT_TRUE(walk(0x12345678));
  EXPECT_EQ(page_.address, 0x12345000u);
}

// Any words of the guest are refused there, and never followed out of its RAM.
TEST_F(IommuWalk, TablesThatMakeNoSense) {
  EXPECT_FALSE(walk(0x203000, 0x1400));          // scalable mode
  EXPECT_FALSE(walk(0x203000, 0xFFFFFFFFF000));  // root beyond the RAM
  file_.put(0x5008, kRamBytes | 3);              // a table beyond the RAM
  EXPECT_FALSE(walk(0x203000));
  file_.put(0x5008, 0xFFFFFFFFFFFFF003);
  EXPECT_FALSE(walk(0x203000));
  file_.put(0x3000, 0x4083);  // a page of 512 GiB
  EXPECT_FALSE(walk(0x203000));
  file_.put(0x3000, 0x4003);
  file_.put(0x2208, 0x0107);  // nine levels
  EXPECT_FALSE(walk(0x203000));
  file_.put(0x2208, 0x0100);  // two
  EXPECT_FALSE(walk(0x203000));
  file_.put(0x1000, 0xFFFFFFFFF001);  // context table beyond the RAM
  EXPECT_FALSE(walk(0x203000));
}

// Any word that a translation came from, when changed, ends it.
TEST_F(IommuWalk, EachWordIsWatched) {
  for (const uint64_t at : {0x1000, 0x2200, 0x2208, 0x3000, 0x4000, 0x5008, 0x6018}) {
    words_.clear();
    ASSERT_TRUE(walk(0x203000));
    EXPECT_TRUE(words_.hold());
    uint64_t before = 0;
    std::memcpy(&before, file_.at(at), 8);
    file_.put(at, before ^ 0x100000);
    EXPECT_FALSE(words_.hold()) << std::hex << at;
    file_.put(at, before);
    EXPECT_TRUE(words_.hold());
  }
}

TEST_F(IommuWalk, TooManyWordsHoldNoMore) {
  for (uint64_t i = 0; i < TableWords::kMost; ++i) {
    words_.add(reinterpret_cast<uint64_t*>(file_.at(8 * i)),
               *reinterpret_cast<uint64_t*>(file_.at(8 * i)));
  }
  EXPECT_TRUE(words_.hold());
  words_.add(reinterpret_cast<uint64_t*>(file_.at(0x100000)), 0);
  EXPECT_FALSE(words_.hold());
  words_.clear();
  EXPECT_TRUE(words_.hold());
}

TEST(GuestRam, LowAndHigh) {
  test::TempDir dir;
  GuestRam late(dir.at("ram"));
  GuestRam::Run run;
  EXPECT_FALSE(late.find(0, &run));  // no file yet
  constexpr uint64_t kGiB = 1ull << 30;
  {
    test::RamFile file(dir.at("ram"), 3 * kGiB);
    for (int i = 0; i < 1000 && !late.find(0, &run); ++i) {
      usleep(1000);
    }
    ASSERT_TRUE(late.find(0, &run));
    EXPECT_EQ(run.len_bytes, 2 * kGiB);
    *file.at(2 * kGiB + 5) = 0x5A;
    ASSERT_TRUE(late.find(4 * kGiB + 5, &run));
    EXPECT_EQ(*run.va, 0x5A);
    EXPECT_EQ(run.len_bytes, kGiB - 5);
    EXPECT_EQ(run.file_offset, 2 * kGiB + 5);
    EXPECT_FALSE(late.find(2 * kGiB, &run));
    EXPECT_FALSE(late.find(4 * kGiB - 1, &run));
    EXPECT_FALSE(late.find(5 * kGiB, &run));
    EXPECT_FALSE(late.find(UINT64_MAX, &run));
    EXPECT_EQ(late.word(5 * kGiB - 4), nullptr);
    EXPECT_EQ(late.word(1), nullptr);
    EXPECT_NE(late.word(5 * kGiB - 8), nullptr);
  }
  GuestRam small(dir.at("small"));
  test::RamFile file(dir.at("small"), 11 * kGiB / 4 - 4096);
  EXPECT_TRUE(small.find(11 * kGiB / 4 - 4097, &run));
  EXPECT_FALSE(small.find(4 * kGiB, &run));
}

}  // namespace
}  // namespace rio::cardsim
