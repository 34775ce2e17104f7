// Barriers of cards whose hosts do not poll: they compute, or sleep. The threads of the wires
// between processes let the cards work meanwhile.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fpga/name/parse.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/conformance/test_ring.hpp"
#include "tests/support/barrier_desc.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kMembers = 3;

/// A card on a bus, as a function that TestRing drives; run() polls it.
class Host final : public FunctionUnderTest {
 public:
  explicit Host(const std::string& text) {
    name::CardName name;
    std::string error;
    pmd::EmuConfig config;
    EXPECT_EQ(name::parse(name::Place::kProgram, text, {}, &name, &error), 0) << error;
    EXPECT_TRUE(pmd::emu_config(name, &config));
    EXPECT_EQ(pmd::EmuBus::create(config, nullptr, &bus_), 0);
  }
  uint32_t read32(uint32_t offset) override { return bus_->bar().read32(offset); }
  void write32(uint32_t offset, uint32_t value) override { bus_->bar().write32(offset, value); }
  Memory map(size_t len_bytes) override {
    pmd::DmaMemory memory;
    EXPECT_EQ(bus_->dma_alloc(len_bytes, 4096, &memory), 0);
    return {static_cast<uint8_t*>(memory.va), memory.iova, len_bytes};
  }
  void unmap(const Memory& /*memory*/) override {}
  uint64_t refused_accesses() override { return 0; }
  uint32_t interrupts(uint32_t /*vector*/) override { return 0; }
  void run() override {
    const uint32_t before = read32(regs::id::heartbeat());
    EXPECT_TRUE(wait_until([&] {
      bus_->poll_hook(0)();
      return read32(regs::id::heartbeat()) - before >= 2;
    }));
  }

  /// Sets up identity, receive map and barrier ring.
  void bring_up() {
    namespace map = regs::rx_map;
    write32(regs::id::qp_dest_id(0), bus_->emulation().dest_id());
    write32(map::dest_id(0), bus_->emulation().dest_id());
    write32(map::entry(0), map::Entry::valid.put(1) | map::Entry::doorbells.put(1));
    write32(regs::id::gen_req(), 1);
    write32(map::apply(), 1);
    run();
    write32(regs::barrier::resend_limit(0), 20);
    ring_ = std::make_unique<TestRing>(*this, RingConfig{.ring = 5, .log2 = 3, .clog2 = 5});
    ring_->start();
  }
  /// Fills slot 0 with a barrier of all members, each of which tells each.
  void fill_slot(const std::vector<uint32_t>& peers) {
    std::vector<PeerOfRound> places;
    for (uint32_t i = 0; i < peers.size(); ++i) {
      places.push_back({i / 2, i % 2, peers[i]});
    }
    regs::BarrierDesc desc = make_barrier_desc(static_cast<uint32_t>(peers.size() + 1) / 2, places);
    desc.group = 3;
    desc.cookie = 77;
    uint32_t words[64];
    std::memcpy(words, &desc, sizeof words);
    for (uint32_t i = 0; i < 64; ++i) {
      write32(regs::barrier::slot(0, i), words[i]);
    }
  }
  void go(uint32_t epoch) { write32(regs::barrier::go(0, 0), epoch); }
  /// Whether the next barrier has ended; looks at memory only.
  bool has_ended() {
    const auto* const cpl =
        reinterpret_cast<const regs::BarrierCpl*>(ring_->completions.va) + ring_->cidx % 32;
    // acquire: the completion's other words; pairs with Core::complete.
    const uint32_t status = __atomic_load_n(&cpl->status, __ATOMIC_ACQUIRE);
    if (status >> 31 != (~(ring_->cidx >> 5) & 1)) {
      return false;
    }
    EXPECT_EQ(code_of(status), regs::Status::kOk);
    EXPECT_EQ(cpl->cookie, 77u);
    ++ring_->cidx;
    return true;
  }
  pmd::Bus& bus() { return *bus_; }

 private:
  std::unique_ptr<pmd::EmuBus> bus_;
  std::unique_ptr<TestRing> ring_;
};

class Unpolled : public testing::TestWithParam<const char*> {
 protected:
  Unpolled() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~Unpolled() override { unsetenv("RIO_RUNTIME_DIR"); }

  void open() {
    for (uint32_t i = 0; i < kMembers; ++i) {
      hosts_.push_back(std::make_unique<Host>(GetParam()));
      hosts_[i]->bring_up();
    }
    for (uint32_t i = 0; i < kMembers; ++i) {
      std::vector<uint32_t> peers;
      for (uint32_t j = 0; j < kMembers; ++j) {
        pmd::Emulation& other = hosts_[j]->bus().emulation();
        uint32_t id = other.dest_id();
        if (!other.address().empty()) {
          EXPECT_EQ(hosts_[i]->bus().emulation().reach(other.address(), &id), 0);
        }
        if (i != j) {
          peers.push_back(id);
        }
      }
      hosts_[i]->fill_slot(peers);
    }
  }
  /// Runs a barrier whose hosts poll until its end: the members find each other.
  void run_polled(uint32_t epoch) {
    for (const auto& host : hosts_) {
      host->go(epoch);
    }
    for (const auto& host : hosts_) {
      ASSERT_TRUE(wait_until([&] {
        for (const auto& each : hosts_) {
          each->bus().poll_hook(0)();
        }
        return host->has_ended();
      }));
    }
  }
  void expect_end_without_polls() {
    for (const auto& host : hosts_) {
      ASSERT_TRUE(wait_until([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // the CPU is the cards'
        return host->has_ended();
      }));
    }
  }

  TempDir dir_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

/// After GO the hosts only look at memory.
TEST_P(Unpolled, ABarrierEndsWhileItsHostsCompute) {
  open();
  run_polled(1);
  for (uint32_t epoch = 2; epoch < 6; ++epoch) {
    for (const auto& host : hosts_) {
      host->go(epoch);
    }
    ASSERT_NO_FATAL_FAILURE(expect_end_without_polls());
  }
}

/// The hosts sleep as a thread does that waits for an interrupt; the last one starts its barrier
/// when all others have slept for a while.
TEST_P(Unpolled, ABarrierEndsWhileItsHostsSleep) {
  open();
  run_polled(1);
  for (uint32_t epoch = 2; epoch < 6; ++epoch) {
    for (const auto& host : hosts_) {
      host->go(epoch);
      host->bus().emulation().before_sleep();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    ASSERT_NO_FATAL_FAILURE(expect_end_without_polls());
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Unpolled,
                         testing::Values("shm:barriers", "udp:barriers,bind=127.0.0.1",
                                         "shm:threads,stepping=thread"));

}  // namespace
}  // namespace rio::test
