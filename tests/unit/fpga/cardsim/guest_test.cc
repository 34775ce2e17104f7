// A driver in a guest, with its card in rio-cardsim's loop: plain, and behind an IOMMU.
#include <gtest/gtest.h>

#include "fpga/cardsim/guest_memory.hpp"
#include "fpga/model/core/host_port.hpp"
#include "pmd/api/riopmd.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/fpga/cardsim/fake_monitor.hpp"
#include "tests/unit/fpga/cardsim/guest.hpp"

namespace rio {
namespace {

constexpr uint64_t kRamBytes = 64 << 20;
constexpr int kLooks = 2'000'000;  // each lets the card's thread run; ten seconds or more

EndpointConfig config_of(uint32_t dest_id, uint32_t tx_log2) {
  EndpointConfig config;
  config.dest_id = dest_id;
  config.card.reset_timeout_ms = 20000;
  config.queues.tx_log2 = tx_log2;
  config.queues.stop_timeout_ms = 20000;
  config.queues.rings = pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kShared);
  return config;
}

/// Posts a buffer at one end, and sends to it from the other. @return status of the message.
pmd::Status send_one(Endpoint& from, Endpoint& to, uint32_t dest_id, uint64_t iova,
                     const pmd::DmaMemory& into, pmd::RxMessage* got) {
  const pmd::RxBuffer buffer{into.iova, 7};
  EXPECT_EQ(to.shared().post(&buffer, 1), 1);
  pmd::TxMessage message{};
  message.iova = iova;
  message.dest_id = dest_id;
  message.length_bytes = 256;
  EXPECT_EQ(from.tx().burst(&message, 1), 1);
  pmd::TxDone done{};
  int looks = 0;
  for (; looks < kLooks && from.tx().reap(&done, 1) == 0; ++looks) {
    sched_yield();
  }
  EXPECT_LT(looks, kLooks);
  if (done.status == pmd::Status::kOk) {
    for (looks = 0; looks < kLooks && to.shared().burst(got, 1) == 0; ++looks) {
      sched_yield();
    }
    EXPECT_LT(looks, kLooks);
  }
  return done.status;
}

std::unique_ptr<Endpoint> open_on(std::unique_ptr<pmd::Bus> bus, const EndpointConfig& config) {
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(std::move(bus), config, &endpoint), 0);
  return endpoint;
}

TEST(Plain, TwoCardsOfOneGuestTalk) {
  test::TempDir dir;
  const std::string tail = ",ram=" + dir.at("ram");
  // The RAM's file appears after the cards.
  test::Served served({"plain:bar=" + dir.at("a") + tail, "plain:bar=" + dir.at("b") + tail});
  test::RamFile ram(dir.at("ram"), kRamBytes);
  auto a =
      open_on(std::make_unique<test::GuestBus>(dir.at("a"), &ram, 1 << 20, 0), config_of(1, 8));
  auto b =
      open_on(std::make_unique<test::GuestBus>(dir.at("b"), &ram, 32 << 20, 0), config_of(2, 8));
  ASSERT_TRUE(a != nullptr && b != nullptr);
  ASSERT_EQ(a->wait_link(20000), 0);
  ASSERT_EQ(b->wait_link(20000), 0);
  pmd::DmaMemory from;
  pmd::DmaMemory into;
  ASSERT_EQ(a->alloc(4096, 4096, &from), 0);
  ASSERT_EQ(b->alloc(4096, 4096, &into), 0);
  for (int i = 0; i < 20; ++i) {
    std::memset(from.va, 'a' + i, 256);
    pmd::RxMessage got{};
    ASSERT_EQ(send_one(*a, *b, 2, from.iova, into, &got), pmd::Status::kOk);
    EXPECT_EQ(got.length_bytes, 256);
    EXPECT_EQ(std::memcmp(from.va, into.va, 256), 0);
  }
  // Beyond the RAM: an error for the card that reads there.
  pmd::RxMessage got{};
  EXPECT_EQ(send_one(*a, *b, 2, kRamBytes, into, &got), pmd::Status::kHostReadFailed);
  served.requests.vanish = true;
  for (int i = 0; i < kLooks && !a->card().gone(); ++i) {
    sched_yield();
  }
  EXPECT_TRUE(a->card().gone());
  EXPECT_EQ(a->close(), -ENODEV);
  EXPECT_EQ(b->close(), -ENODEV);
  EXPECT_EQ(served.end(), 0);
  EXPECT_EQ(served.card(0).counts().refused, 1u);
  EXPECT_EQ(served.card(0).counts().first_refused_address, kRamBytes);
  EXPECT_EQ(served.card(1).counts().refused, 0u);
}

/// A guest with an IOMMU: bus address 1 GiB + x is another page of the RAM than that at x.
class Iommu : public testing::Test {
 protected:
  static constexpr uint64_t kIova = 1 << 30;
  static constexpr uint64_t kPages = 4096;  // 16 MiB of bus addresses
  static constexpr uint64_t kLeaves = 0x10000;

  Iommu() {
    ram_.put(0x1000, 0x2001);
    ram_.put(0x2200, 0x3001);
    ram_.put(0x2208, 0x0101);  // 3 levels
    ram_.put(0x3008, 0x4003);  // 1 GiB
    for (uint64_t i = 0; i < kPages / 512; ++i) {
      ram_.put(0x4000 + 8 * i, (kLeaves + 4096 * i) | 3);
    }
    for (uint64_t page = 0; page < kPages; ++page) {
      map(page);
    }
    qemu_.set("fed90020", "0x0000000000001000");
    qemu_.set("fed9001c", "0xc0000000");
  }
  /// Pages with neighbouring bus addresses lie far apart.
  static uint64_t place(uint64_t page) { return (32 << 20) + 4096 * ((page * 1001) % kPages); }
  void map(uint64_t page) { ram_.put(kLeaves + 8 * page, place(page) | 3); }
  void unmap(uint64_t page) { ram_.put(kLeaves + 8 * page, 0); }

  test::TempDir dir_;
  test::RamFile ram_{dir_.at("ram"), kRamBytes};
  test::FakeMonitor qemu_{dir_.at("mon")};
};

/// The guest's own view of its bus addresses: contiguous.
class IommuBus final : public pmd::Bus {
 public:
  IommuBus(const std::string& bar_path, uint8_t* view, uint64_t iova)
      : bar_(bar_path, test::GuestBus::kBarBytes), view_(view), iova_(iova) {}
  pmd::Mmio bar() override { return {bar_.at(0), test::GuestBus::kBarBytes}; }
  int dma_alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    const uint64_t align = std::max<uint64_t>(align_bytes, 4096);
    next_ = (next_ + align - 1) & ~(align - 1);
    *out = {view_ + next_, iova_ + next_, len_bytes};
    next_ += (len_bytes + 4095) & ~4095ul;
    return 0;
  }
  void dma_free(const pmd::DmaMemory& /*memory*/) override {}
  const std::string& name() const override { return name_; }

 private:
  test::RamFile bar_;
  uint8_t* view_;
  uint64_t iova_;
  uint64_t next_ = 0;
  std::string name_ = "guest behind an IOMMU";
};

TEST_F(Iommu, ScatteredPagesWorkAndUnmappedOnesFail) {
  test::Served served(
      {"plain:bar=" + dir_.at("bar") + ",ram=" + dir_.at("ram") + ",monitor=" + dir_.at("mon")});
  const int fd = open(dir_.at("ram").c_str(), O_RDWR | O_CLOEXEC);
  auto* const view = static_cast<uint8_t*>(
      mmap(nullptr, kPages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (uint64_t page = 0; page < kPages; ++page) {
    ASSERT_NE(mmap(view + 4096 * page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                   static_cast<off_t>(place(page))),
              MAP_FAILED);
  }
  close(fd);
  // A transmit ring of 32 KiB: eight scattered pages.
  auto endpoint =
      open_on(std::make_unique<IommuBus>(dir_.at("bar"), view, kIova), config_of(1, 10));
  ASSERT_NE(endpoint, nullptr);
  ASSERT_EQ(endpoint->wait_link(20000), 0);
  pmd::DmaMemory from;
  pmd::DmaMemory into;
  ASSERT_EQ(endpoint->alloc(3 * 4096, 4096, &from), 0);
  ASSERT_EQ(endpoint->alloc(4096, 4096, &into), 0);
  auto* const bytes = static_cast<uint8_t*>(from.va);
  pmd::RxMessage got{};
  for (int i = 0; i < 1100; ++i) {  // more than one lap of the ring
    std::memset(bytes + 4096 - 128, i, 256);
    ASSERT_EQ(send_one(*endpoint, *endpoint, 1, from.iova + 4096 - 128, into, &got),
              pmd::Status::kOk);
    ASSERT_EQ(std::memcmp(bytes + 4096 - 128, into.va, 256), 0) << i;
  }
  // The guest unmaps a page: the very next read of it fails, and names it.
  const uint64_t second = (from.iova - kIova) / 4096 + 1;
  unmap(second);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, from.iova + 4096 - 128, into, &got),
            pmd::Status::kHostReadFailed);
  map(second);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, from.iova + 4096 - 128, into, &got),
            pmd::Status::kOk);
  // A moved page is found in its new place.
  std::memset(ram_.at(48 << 20), 0x33, 4096);
  ram_.put(kLeaves + 8 * second, (48 << 20) | 3);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, from.iova + 4096, into, &got), pmd::Status::kOk);
  EXPECT_EQ(*static_cast<uint8_t*>(into.va), 0x33);
  // Read-only: the card may not write there.
  ram_.put(kLeaves + 8 * ((into.iova - kIova) / 4096), place((into.iova - kIova) / 4096) | 1);
  std::memset(into.va, 0, 4096);
  std::memset(bytes, 0x44, 256);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, from.iova, into, &got), pmd::Status::kOk);
  EXPECT_EQ(*static_cast<uint8_t*>(into.va), 0);  // lost, like any failed posted write
  EXPECT_EQ(endpoint->close(), 0);
  // QEMU ends, and so does the loop.
  qemu_.hang_up();
  EXPECT_EQ(served.wait(), 0);
  EXPECT_EQ(served.card().counts().first_refused_address, kIova + 4096 * second);
  EXPECT_EQ(served.card().counts().refused, 2u);
  EXPECT_EQ(served.card().attachments().front()->counts().peers, 1u);
  EXPECT_LT(qemu_.asked(), 100u);  // it is not asked for each message
  munmap(view, kPages * 4096);
}

// A step may read a doorbell that the guest rang after it had unmapped memory.
TEST_F(Iommu, EachAccessOfAStepObeysTheTables) {
  cardsim::GuestMemory memory({dir_.at("ram"), dir_.at("mon")});
  for (int i = 0; i < kLooks && !memory.guest_here(); ++i) {
    memory.serve();
    sched_yield();
  }
  model::HostPort port(&memory, model::Config{});
  memory.begin_turn(1);
  static_cast<void>(port.begin_step());
  ASSERT_NE(port.readable(kIova, 256), nullptr);
  ASSERT_NE(port.writable(kIova, 256), nullptr);
  unmap(0);
  EXPECT_EQ(port.readable(kIova, 256), nullptr);
  EXPECT_EQ(port.writable(kIova, 256), nullptr);
  map(0);
  EXPECT_NE(port.readable(kIova, 256), nullptr);
  ram_.put(kLeaves, place(0) | 1);
  EXPECT_EQ(port.writable(kIova, 256), nullptr);
}

// The guest starts its IOMMU after the card was used without it: the next driver's reset shows it.
TEST_F(Iommu, MayStartLater) {
  qemu_.set("fed9001c", "0x00000000");
  test::Served served(
      {"plain:bar=" + dir_.at("bar") + ",ram=" + dir_.at("ram") + ",monitor=" + dir_.at("mon")});
  pmd::RxMessage got{};
  pmd::DmaMemory memory;
  {
    auto endpoint = open_on(std::make_unique<test::GuestBus>(dir_.at("bar"), &ram_, 16 << 20, 0),
                            config_of(1, 6));
    ASSERT_NE(endpoint, nullptr);
    ASSERT_EQ(endpoint->wait_link(20000), 0);
    ASSERT_EQ(endpoint->alloc(8192, 4096, &memory), 0);
    EXPECT_EQ(send_one(*endpoint, *endpoint, 1, memory.iova,
                       {static_cast<uint8_t*>(memory.va) + 4096, memory.iova + 4096, 4096}, &got),
              pmd::Status::kOk);
    EXPECT_EQ(endpoint->close(), 0);
  }
  qemu_.set("fed9001c", "0x80000000");
  // Map each page of the guest at 1 GiB plus its address.
  for (uint64_t page = 0; page < kPages; ++page) {
    ram_.put(kLeaves + 8 * page, ((16 << 20) + 4096 * page) | 3);
  }
  auto endpoint =
      open_on(std::make_unique<test::GuestBus>(dir_.at("bar"), &ram_, 16 << 20, kIova - (16 << 20)),
              config_of(1, 6));
  ASSERT_NE(endpoint, nullptr);
  ASSERT_EQ(endpoint->wait_link(20000), 0);
  ASSERT_EQ(endpoint->alloc(8192, 4096, &memory), 0);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, memory.iova,
                     {static_cast<uint8_t*>(memory.va) + 4096, memory.iova + 4096, 4096}, &got),
            pmd::Status::kOk);
  EXPECT_EQ(send_one(*endpoint, *endpoint, 1, 16 << 20,
                     {static_cast<uint8_t*>(memory.va) + 4096, memory.iova + 4096, 4096}, &got),
            pmd::Status::kHostReadFailed);
  EXPECT_EQ(endpoint->close(), 0);
  EXPECT_EQ(served.end(), 0);
}

}  // namespace
}  // namespace rio
