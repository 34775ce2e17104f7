// When messages between model cards with their driver arrive: links, and buses of hosts, computed
// by hand. A step takes 40 ns; a packet takes 8 ns on a link and 100 ns to the next card.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/network_cards.hpp"

namespace rio::test {
namespace {

class CardNetworkTest : public testing::Test {
 protected:
  void open(const std::string& topology, uint32_t cards_per_host, const sim::HostBusRates& bus) {
    sim::CardNetworkSettings settings;
    settings.tick_ns = 1'000'000'000'000;  // no step but those of the test and of frames
    settings.cards_per_host = cards_per_host;
    settings.bus = bus;
    cards_ =
        std::make_unique<NetworkCards>(topology, exact_card(), pmd::QueuePairConfig{}, settings);
    arrivals_ns_.resize(cards_->nodes());
    for (uint32_t node = 0; node < cards_->nodes(); ++node) {
      const pmd::DmaMemory memory = alloc(node);
      const pmd::RxBuffer buffer{.iova = memory.iova, .cookie = 0};
      ASSERT_EQ(cards_->pair(node).shared().post(&buffer, 1), 1);
    }
    cards_->after_step([this](uint32_t node) {
      if (arrivals_ns_[node] == 0 && cards_->pair(node).shared().ready_count() != 0) {
        arrivals_ns_[node] = cards_->now_ns();
      }
    });
  }
  void TearDown() override {
    if (cards_ != nullptr) {
      cards_->after_step(nullptr);
    }
  }
  /// The card sends a message once start() steps it.
  void post(uint32_t from, uint32_t to, uint16_t bytes) {
    const pmd::TxMessage message{.iova = alloc(from).iova,
                                 .cookie = 0,
                                 .dest_id = NetworkCards::id(to),
                                 .length_bytes = bytes,
                                 .mbox = 0,
                                 .flags = 0};
    ASSERT_EQ(cards_->pair(from).tx().burst(&message, 1), 1);
  }
  /// Step the cards in order of their nodes, and let the network run.
  void start() {
    begin_ns_ = cards_->now_ns();
    for (uint32_t node = 0; node < cards_->nodes(); ++node) {
      cards_->step(node);
    }
    cards_->run(begin_ns_ + 1'000'000);
  }
  /// When the message to a node was there, from the start.
  [[nodiscard]] uint64_t arrival_ns(uint32_t node) const { return arrivals_ns_[node] - begin_ns_; }

  std::unique_ptr<NetworkCards> cards_;

 private:
  pmd::DmaMemory alloc(uint32_t node) {
    pmd::DmaMemory memory;
    EXPECT_EQ(cards_->bus(node).dma_alloc(4096, 4096, &memory), 0);
    return memory;
  }

  std::vector<uint64_t> arrivals_ns_;
  uint64_t begin_ns_ = 0;
};

constexpr sim::HostBusRates kBus{.read_ps_per_byte = 1000, .write_ps_per_byte = 2000};

TEST_F(CardNetworkTest, WithoutABusMemoryTakesNoTime) {
  open("mesh:2", 1, {});
  post(0, 1, 512);
  start();
  EXPECT_EQ(arrival_ns(1), 40u + 2 * 8u + 100u);
}

TEST_F(CardNetworkTest, DataTakeTheBusesOfBothHosts) {
  open("mesh:2", 1, kBus);
  post(0, 1, 512);
  start();
  const uint64_t first_ns = 256 + 40 + 8 + 100;  // the second segment arrives while it is written
  EXPECT_EQ(arrival_ns(1), first_ns + 2 * 512);
  EXPECT_EQ(cards_->network().bus(0).busy_ns(), 512u);
  EXPECT_EQ(cards_->network().bus(1).busy_ns(), 1024u);
}

TEST_F(CardNetworkTest, CardsOfOneHostShareItsBus) {
  open("mesh:2x2", 2, kBus);  // nodes 0 and 1 are host 0, 2 and 3 host 1
  post(0, 2, 256);
  post(1, 3, 256);
  start();
  EXPECT_EQ(arrival_ns(2), 256u + 148u + 512u);
  EXPECT_EQ(arrival_ns(3), arrival_ns(2) + 512u);
}

TEST_F(CardNetworkTest, CardsOfDifferentHostsDoNot) {
  open("mesh:2x2", 1, kBus);
  post(0, 2, 256);
  post(1, 3, 256);
  start();
  EXPECT_EQ(arrival_ns(2), 256u + 148u + 512u);
  EXPECT_EQ(arrival_ns(3), arrival_ns(2));
}

TEST_F(CardNetworkTest, ABusIsHalfDuplex) {
  open("mesh:2", 1, kBus);
  post(0, 1, 1024);
  post(1, 0, 256);
  start();
  EXPECT_EQ(arrival_ns(0), 1024u + 512u);  // the message waits until the bus has read all segments
}

}  // namespace
}  // namespace rio::test
