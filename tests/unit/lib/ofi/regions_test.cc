// Memory regions with counters of their own, and accesses that are refused.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr size_t kBytes = 4096;
constexpr int kPatienceMs = 60'000;

/// A region that peers access, and counters of these accesses.
struct Region {
  std::vector<uint8_t> bytes;
  Held<fid_cntr> writes;
  Held<fid_cntr> reads;
  Held<fid_mr> mr;  // closed before its counters
};

class OfiRegions : public OfiPair {
 protected:
  OfiRegions() : OfiPair(FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_MSG) {}

  [[nodiscard]] static Held<fid_cntr> open_counter(OfiNode& node) {
    fi_cntr_attr attr{};
    fid_cntr* made = nullptr;
    EXPECT_EQ(fi_cntr_open(node.domain(), &attr, &made, nullptr), 0);
    return Held<fid_cntr>(made);
  }
  [[nodiscard]] static Held<fid_mr> add(OfiNode& node, std::vector<uint8_t>& bytes, uint64_t key,
                                        uint64_t access = kAll) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(node.domain(), bytes.data(), bytes.size(), access, 0, key, 0, &mr, nullptr),
              0);
    return Held<fid_mr>(mr);
  }
  static void bind(Region& region) {
    ASSERT_EQ(fi_mr_bind(region.mr.get(), &region.writes->fid, FI_REMOTE_WRITE), 0);
    ASSERT_EQ(fi_mr_bind(region.mr.get(), &region.reads->fid, FI_REMOTE_READ), 0);
    ASSERT_EQ(fi_mr_enable(region.mr.get()), 0);
  }
  [[nodiscard]] static Region make(OfiNode& node, uint64_t key) {
    Region region;
    region.bytes = pattern(static_cast<uint32_t>(key), kBytes);
    region.writes = open_counter(node);
    region.reads = open_counter(node);
    region.mr = add(node, region.bytes, key);
    return region;
  }
  void expect_done() {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(a_.tx(), &entry), 1);
  }
  void write(uint64_t key, const std::vector<uint8_t>& bytes) {
    ASSERT_EQ(fi_write(a_.ep(), bytes.data(), bytes.size(), nullptr, to_b_, 0, key, nullptr), 0);
    expect_done();
  }
  void read(uint64_t key, std::vector<uint8_t>* out) {
    ASSERT_EQ(fi_read(a_.ep(), out->data(), out->size(), nullptr, to_b_, 0, key, nullptr), 0);
    expect_done();
  }
};

TEST_F(OfiRegions, EachRegionCountsItsOwnAccesses) {
  constexpr uint64_t kRegions = 6;
  std::vector<Region> regions;
  std::vector<uint8_t> back(kBytes);
  for (uint64_t key = 0; key < kRegions; ++key) {
    regions.push_back(make(b_, key));
    // Peers already know some regions through the card's windows; later accesses must still be
    // counted.
    for (uint64_t i = 0; i < key; ++i) {
      read(key, &back);
    }
    bind(regions.back());
  }
  for (uint64_t key = 0; key < kRegions; ++key) {
    const std::vector<uint8_t> bytes = pattern(static_cast<uint32_t>(100 + key), kBytes);
    for (uint64_t i = 0; i < key + 1; ++i) {
      write(key, bytes);
    }
    for (uint64_t i = 0; i < 2 * key; ++i) {
      read(key, &back);
    }
    EXPECT_EQ(regions[key].bytes, bytes);
    EXPECT_TRUE(key == 0 || back == bytes);
  }
  for (uint64_t key = 0; key < kRegions; ++key) {
    SCOPED_TRACE(key);
    EXPECT_EQ(fi_cntr_read(regions[key].writes.get()), key + 1);
    EXPECT_EQ(fi_cntr_read(regions[key].reads.get()), 2 * key);
    EXPECT_EQ(fi_cntr_readerr(regions[key].writes.get()), 0u);
  }
}

// Each side waits for its own counters only, in turn, as users of other libraries do.
TEST_F(OfiRegions, TwoSidesWriteToEachOtherInTurn) {
  constexpr uint64_t kRegions = 4;
  struct Side {
    OfiNode& node;
    fi_addr_t peer;
    std::vector<Region> regions = {};
  };
  Side sides[] = {{a_, to_b_}, {b_, to_a_}};
  for (Side& side : sides) {
    for (uint64_t key = 0; key < kRegions; ++key) {
      side.regions.push_back(make(side.node, key));
      bind(side.regions.back());
    }
  }
  const auto play = [&](Side& side, bool first) {
    for (uint64_t turn = 0; turn < 2 * kRegions; ++turn) {
      Region& region = side.regions[turn / 2];
      if ((turn % 2 == 0) == first) {
        ASSERT_EQ(fi_write(side.node.ep(), region.bytes.data(), kBytes, nullptr, side.peer, 0,
                           turn / 2, nullptr),
                  0);
      } else {
        ASSERT_EQ(fi_cntr_wait(region.writes.get(), 1, kPatienceMs), 0);
      }
    }
  };
  std::atomic<bool> over = false;
  std::thread other([&] {
    play(sides[1], false);
    while (!over) {
      static_cast<void>(fi_cq_read(b_.rx(), nullptr, 0));
    }
  });
  play(sides[0], true);
  fi_cq_tagged_entry entry{};
  for (uint64_t i = 0; i < kRegions; ++i) {
    EXPECT_EQ(fi_cq_sread(a_.tx(), &entry, 1, nullptr, kPatienceMs), 1);
  }
  over = true;
  other.join();
  for (uint64_t key = 0; key < kRegions; ++key) {
    EXPECT_EQ(sides[0].regions[key].bytes, sides[1].regions[key].bytes);
  }
}

TEST_F(OfiRegions, ARefusedAccessIsReported) {
  Region region = make(b_, 1);
  bind(region);
  fid_ep* made = nullptr;
  ASSERT_EQ(fi_endpoint(a_.domain(), info_.get(), &made, nullptr), 0);
  const Held<fid_cntr> writes = open_counter(a_);
  const Held<fid_cntr> reads = open_counter(a_);
  const Held<fid_ep> ep(made);
  ASSERT_EQ(fi_ep_bind(made, &a_.av()->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(made, &writes->fid, FI_WRITE), 0);
  ASSERT_EQ(fi_ep_bind(made, &reads->fid, FI_READ), 0);
  ASSERT_EQ(fi_ep_bind(made, &a_.rx()->fid, FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(made, &a_.tx()->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_enable(made), 0);
  std::vector<uint8_t> own(kBytes);
  const auto expect_refused = [&](ssize_t begun, fid_cntr* counter) {
    ASSERT_EQ(begun, 0);
    EXPECT_EQ(next_error(a_.tx()).err, FI_EACCES);
    // The access was refused before the call that waits.
    EXPECT_EQ(fi_cntr_wait(counter, 1, kPatienceMs), -FI_EAVAIL);
    EXPECT_EQ(fi_cntr_read(counter), 0u);
    // It is reported once.
    EXPECT_EQ(fi_cntr_wait(counter, 1, 1), -FI_ETIMEDOUT);
  };
  const uint64_t end = kBytes - 1;
  expect_refused(fi_write(made, own.data(), 8, nullptr, to_b_, 0, 7, nullptr), writes.get());
  expect_refused(fi_write(made, own.data(), 8, nullptr, to_b_, end, 1, nullptr), writes.get());
  expect_refused(fi_inject_write(made, own.data(), 8, to_b_, 0, 7), writes.get());
  expect_refused(fi_read(made, own.data(), 8, nullptr, to_b_, 0, 7, nullptr), reads.get());
  EXPECT_EQ(fi_cntr_readerr(writes.get()), 3u);
  EXPECT_EQ(fi_cntr_readerr(reads.get()), 1u);
  EXPECT_EQ(fi_cntr_read(region.writes.get()), 0u);
  EXPECT_EQ(fi_cntr_read(region.reads.get()), 0u);
}

TEST_F(OfiRegions, ErrorsCountedByTheUserAreNotReported) {
  const Held<fid_cntr> counter = open_counter(a_);
  ASSERT_EQ(fi_cntr_adderr(counter.get(), 2), 0);
  ASSERT_EQ(fi_cntr_seterr(counter.get(), 5), 0);
  EXPECT_EQ(fi_cntr_wait(counter.get(), 1, 1), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 5u);
  std::atomic<bool> over = false;
  std::thread waiter([&] {
    EXPECT_EQ(fi_cntr_wait(counter.get(), 1, kPatienceMs), -FI_EAVAIL);
    over = true;
  });
  while (!over) {
    EXPECT_EQ(fi_cntr_adderr(counter.get(), 1), 0);  // by one thread, while another waits
    std::this_thread::yield();
  }
  waiter.join();
}

TEST_F(OfiRegions, ForeignObjectsAreNotBound) {
  Region region = make(b_, 1);
  const Held<fid_cntr> foreign = open_counter(a_);
  fid_mr* const mr = region.mr.get();
  EXPECT_EQ(fi_mr_bind(mr, &region.writes->fid, 0), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr, &region.writes->fid, FI_WRITE), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr, &foreign->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(mr, &b_.av()->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(mr, &b_.ep()->fid, 0), 0);
  ASSERT_EQ(fi_mr_bind(mr, &region.writes->fid, kAll), 0);
  EXPECT_EQ(fi_close(&region.writes->fid), -FI_EBUSY);
  write(1, pattern(9, kBytes));
  std::vector<uint8_t> back(kBytes);
  read(1, &back);
  EXPECT_EQ(fi_cntr_read(region.writes.get()), 2u);
}

// A peer that used the former region through the card's window reaches neither it nor another
// region's counter.
TEST_F(OfiRegions, AReusedKeyBelongsToTheNextRegion) {
  std::vector<uint8_t> old(kBytes, 0xAA);
  Held<fid_mr> before = add(b_, old, 1);
  std::vector<uint8_t> back(kBytes);
  for (int i = 0; i < 3; ++i) {
    read(1, &back);
  }
  before.reset();
  Region region = make(b_, 1);
  bind(region);
  const std::vector<uint8_t> bytes = pattern(3, kBytes);
  write(1, bytes);
  read(1, &back);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(region.bytes, bytes);
  EXPECT_EQ(old, std::vector<uint8_t>(kBytes, 0xAA));
  EXPECT_EQ(fi_cntr_read(region.writes.get()), 1u);
  EXPECT_EQ(fi_cntr_read(region.reads.get()), 1u);
}

TEST_F(OfiRegions, ClosingARegionEndsOperationsUnderWay) {
  std::vector<uint8_t> theirs(2'000'000);
  const std::vector<uint8_t> ours = pattern(4, theirs.size());
  Held<fid_mr> region = add(b_, theirs, 1);
  ASSERT_EQ(fi_write(a_.ep(), ours.data(), ours.size(), nullptr, to_b_, 0, 1, this), 0);
  for (int i = 0; i < 20; ++i) {
    fi_cq_tagged_entry none[1];
    EXPECT_TRUE(fi_cq_read(a_.rx(), none, 0) <= 0 && fi_cq_read(b_.rx(), none, 0) <= 0);
  }
  std::atomic<bool> over = false;
  std::thread owner([&] {
    region.reset();  // 0, as Held expects
    while (!over) {
      static_cast<void>(fi_cq_read(b_.rx(), nullptr, 0));
    }
  });
  fi_cq_tagged_entry entry{};
  const ssize_t rc = fi_cq_sread(a_.tx(), &entry, 1, nullptr, kPatienceMs);
  over = true;
  owner.join();
  if (rc == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_readerr(a_.tx(), &error, 0), 1);
    EXPECT_EQ(error.err, FI_EACCES);  // it was closed before the question arrived
  } else {
    EXPECT_EQ(rc, 1);
    EXPECT_EQ(theirs, ours);
  }
}

// A mode bit that the user supports is returned only if the provider needs it.
TEST(OfiModes, AreClearedWhereTheProviderDoesNotNeedThem) {
  setenv("FI_RIO_CARD", "emu:modes", 1);
  const Info asked = hints(FI_RMA | FI_RMA_EVENT);
  asked->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED |
                                FI_MR_RMA_EVENT | FI_MR_ENDPOINT;
  const Info info = get_info(asked);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  for (const int old : {FI_MR_BASIC, FI_MR_SCALABLE}) {
    asked->domain_attr->mr_mode = old;
    const Info same = get_info(asked);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->domain_attr->mr_mode, old);
  }
}

}  // namespace
}  // namespace rio::test
