// Memory of peers over several cards: both are used, and a rail that is cut loses no access and
// repeats no atomic.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kKey = 0xC0FFEE;
constexpr uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kTurns = 20'000'000;

/// Two endpoints. The test looks at their ports, which belong to the provider.
class OfiRails : public OfiTest {
 protected:
  static constexpr size_t kSlotBytes = 5000;
  static constexpr size_t kSlots = 40;

  OfiRails() : OfiTest("shm"), card_(std::getenv("FI_RIO_CARD")) {
    info_ = get_info(hints(FI_RMA | FI_ATOMIC | FI_TAGGED));
  }
  ~OfiRails() override {
    work(100);
    b_->close_endpoint();
    work(100);
    a_->close_endpoint();
  }

  void open(uint32_t rails_of_a, uint32_t rails_of_b) {
    const auto node = [&](uint32_t rails, std::optional<OfiNode>* out) {
      setenv("FI_RIO_CARD", cards(rails).c_str(), 1);
      out->emplace(get_info(hints(FI_RMA | FI_ATOMIC | FI_TAGGED)), 0);
    };
    node(rails_of_a, &a_);
    node(rails_of_b, &b_);
    to_b_ = a_->insert(*b_);
    fid_mr* mr = nullptr;
    ASSERT_EQ(
        fi_mr_reg(b_->domain(), memory_.data(), memory_.size(), kAll, 0, kKey, 0, &mr, nullptr), 0);
    region_.reset(mr);
    uint64_t first = 1;
    ASSERT_EQ(write(&first, sizeof(first), 0), 0);
    ASSERT_TRUE(done());
  }
  void find_paths(uint32_t count) {
    ASSERT_TRUE(until([&] { return paths(*a_) == count && paths(*b_) == count; }));
  }
  [[nodiscard]] static msg::MessagePort& port(OfiNode& node) {
    return static_cast<ofi::Domain*>(node.domain())->port();
  }
  static void set_link(OfiNode& node, uint32_t rail, bool is_up) {
    port(node).rails().at(rail).endpoint.card().bus().bar().write32(regs::port::control(),
                                                                    is_up ? 1 : 0);
  }
  [[nodiscard]] static uint64_t by_card(OfiNode& node, uint32_t rail) {
    return port(node).rails().at(rail).endpoint.dma().stats().messages;
  }
  void work(uint32_t turns) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      fi_cq_tagged_entry none[1];
      for (std::optional<OfiNode>* const node : {&a_, &b_}) {
        if ((*node)->rx() != nullptr) {
          EXPECT_LE(fi_cq_read((*node)->rx(), none, 0), 0);
        }
      }
    }
  }
  template <class Good>
  bool until(Good&& good) {
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      if (good()) {
        return true;
      }
      work(1);
    }
    return false;
  }
  /// Takes a completion of `a`. @param context set to that of the operation. @return false: an
  /// error, or none came.
  bool done(void** context = nullptr) {
    fi_cq_tagged_entry entry{};
    ssize_t rc = -FI_EAGAIN;
    EXPECT_TRUE(until([&] { return (rc = fi_cq_read(a_->tx(), &entry, 1)) != -FI_EAGAIN; }));
    if (rc == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      EXPECT_EQ(fi_cq_readerr(a_->tx(), &error, 0), 1);
      ADD_FAILURE() << fi_strerror(error.err);
    }
    if (context != nullptr) {
      *context = entry.op_context;
    }
    return rc == 1;
  }
  ssize_t write(const void* from, size_t bytes, uint64_t to, void* context = nullptr) {
    return fi_write(a_->ep(), from, bytes, nullptr, to_b_, to, kKey, context);
  }
  ssize_t read(void* to, size_t bytes, uint64_t from, void* context = nullptr) {
    return fi_read(a_->ep(), to, bytes, nullptr, to_b_, from, kKey, context);
  }

  [[nodiscard]] std::string cards(uint32_t rails) const {
    std::string all;
    for (uint32_t i = 0; i < rails; ++i) {
      all += (i == 0 ? "" : "+") + card_ + "-" + std::to_string(i);
    }
    return all;
  }
  [[nodiscard]] static uint32_t paths(OfiNode& node) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < port(node).link_count(); ++i) {
      for (const auto& path : port(node).link_at(i).paths) {
        count += path != nullptr && path->is_found && path->state.is_up() ? 1 : 0;
      }
    }
    return count;
  }

  std::string card_;
  Info info_;
  std::optional<OfiNode> a_;
  std::optional<OfiNode> b_;
  fi_addr_t to_b_ = FI_ADDR_NOTAVAIL;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kSlots * kSlotBytes + 64, 0xEE);
  Held<fid_mr> region_;
};

TEST_F(OfiRails, BothCardsReadAndWrite) {
  ASSERT_NO_FATAL_FAILURE(open(2, 2));
  ASSERT_NO_FATAL_FAILURE(find_paths(2));
  std::vector<uint8_t> back(kSlotBytes);
  for (uint32_t round = 0; round < 10; ++round) {
    const std::vector<uint8_t> bytes = pattern(round + 1, kSlots * kSlotBytes);
    for (size_t i = 0; i < kSlots; ++i) {
      ASSERT_EQ(write(bytes.data() + i * kSlotBytes, kSlotBytes, i * kSlotBytes), 0);
    }
    for (size_t i = 0; i < kSlots; ++i) {
      ASSERT_TRUE(done());
    }
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin()));
    ASSERT_EQ(read(back.data(), kSlotBytes, kSlotBytes), 0);
    ASSERT_TRUE(done());
    EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin() + kSlotBytes));
  }
  EXPECT_GT(by_card(*a_, 0), 100u);
  EXPECT_GT(by_card(*a_, 1), 100u);
  region_.reset();
  uint64_t value = 5;
  ASSERT_EQ(write(&value, sizeof(value), 0), 0);
  fi_cq_tagged_entry entry{};
  ASSERT_TRUE(until([&] { return fi_cq_read(a_->tx(), &entry, 1) == -FI_EAVAIL; }));
  fi_cq_err_entry error{};
  ASSERT_EQ(fi_cq_readerr(a_->tx(), &error, 0), 1);
  EXPECT_EQ(error.err, FI_EACCES);
  EXPECT_NE(memory_[0], 5u) << "no window of any rail is left";
}

TEST_F(OfiRails, APeerWithOneCardIsReadAndWritten) {
  ASSERT_NO_FATAL_FAILURE(open(2, 1));
  const std::vector<uint8_t> bytes = pattern(1, kSlotBytes);
  for (uint32_t round = 0; round < 100; ++round) {
    std::fill(memory_.begin(), memory_.end(), 0);
    ASSERT_EQ(write(bytes.data(), bytes.size(), 64), 0);
    ASSERT_TRUE(done());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin() + 64));
  }
  EXPECT_GT(by_card(*a_, 0), 50u);
}

/// @param bool whether the cards write, or messages. @param bool whether the link is cut at a, or
/// at b.
class Cut : public OfiRails, public testing::WithParamInterface<std::tuple<bool, bool>> {
 protected:
  Cut() {
    if (!std::get<0>(GetParam())) {
      setenv("FI_RIO_RMA_BORDER", "0", 1);
    }
  }
  ~Cut() override { unsetenv("FI_RIO_RMA_BORDER"); }
};

// Each slot of the memory has one access at a time: a write of new bytes, then a read of them. All
// the while a number is counted up.
TEST_P(Cut, LosesAndRepeatsNothing) {
  const auto [is_by_card, is_at_a] = GetParam();
  ASSERT_NO_FATAL_FAILURE(open(2, 2));
  ASSERT_NO_FATAL_FAILURE(find_paths(2));
  struct Slot {
    std::vector<uint8_t> bytes;
    std::vector<uint8_t> back = std::vector<uint8_t>(kSlotBytes);
    bool is_read = false;
  };
  std::vector<Slot> slots(kSlots);
  const uint64_t number_at = kSlots * kSlotBytes;
  const uint64_t one = 1;
  uint64_t seen = 0;
  uint64_t counted = 0;
  uint64_t zero = 0;
  std::memcpy(memory_.data() + number_at, &zero, sizeof(zero));
  const auto start = [&](size_t i, uint64_t seed) {
    slots[i].bytes = pattern(seed, kSlotBytes);
    slots[i].is_read = false;
    ASSERT_EQ(write(slots[i].bytes.data(), kSlotBytes, i * kSlotBytes, &slots[i]), 0);
  };
  const auto count_up = [&] {
    ASSERT_EQ(fi_fetch_atomic(a_->ep(), &one, 1, nullptr, &seen, nullptr, to_b_, number_at, kKey,
                              FI_UINT64, FI_SUM, &seen),
              0);
  };
  count_up();
  for (size_t i = 0; i < kSlots; ++i) {
    start(i, i + 1);
  }
  uint64_t seed = kSlots;
  constexpr uint32_t kPerRound = 600;
  for (uint32_t round = 0; round < 4; ++round) {
    OfiNode& at = is_at_a ? *a_ : *b_;
    const uint32_t rail = round % 2;
    uint32_t accesses = 0;
    const auto access_until = [&](const auto& good) {
      for (; !good() && !HasFatalFailure(); ++accesses) {
        void* context = nullptr;
        ASSERT_TRUE(done(&context)) << "round " << round << ", access " << accesses;
        if (context == &seen) {
          ASSERT_EQ(seen, counted++) << "each once";
          count_up();
          continue;
        }
        auto& slot = *static_cast<Slot*>(context);
        const auto index = static_cast<size_t>(&slot - slots.data());
        if (slot.is_read) {
          ASSERT_TRUE(slot.back == slot.bytes) << "round " << round << ", slot " << index;
          start(index, ++seed);
        } else {
          ASSERT_TRUE(std::equal(slot.bytes.begin(), slot.bytes.end(),
                                 memory_.begin() + static_cast<ptrdiff_t>(index * kSlotBytes)));
          slot.is_read = true;
          ASSERT_EQ(read(slot.back.data(), kSlotBytes, index * kSlotBytes, &slot), 0);
        }
      }
    };
    access_until([&] { return accesses == kPerRound / 3; });
    set_link(at, rail, false);
    access_until([&] { return accesses >= kPerRound / 2 && paths(*a_) != 2; });
    access_until([&] { return accesses >= kPerRound; });
    ASSERT_FALSE(HasFailure());
    set_link(at, rail, true);
    ASSERT_NO_FATAL_FAILURE(find_paths(2)) << round;
  }
  for (size_t i = 0; i < kSlots + 1; ++i) {
    ASSERT_TRUE(done());
  }
  for (std::optional<OfiNode>* const node : {&a_, &b_}) {
    EXPECT_EQ(port(**node).sessions_ended(), 0u);
  }
  if (is_by_card) {
    EXPECT_GT(by_card(*a_, 0), kPerRound / 2);
    EXPECT_GT(by_card(*a_, 1), kPerRound / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(OfiRails, Cut, testing::Combine(testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace rio::test
