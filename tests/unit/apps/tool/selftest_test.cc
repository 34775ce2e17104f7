// The selftest against cards that are sound, that lie, and that disappear.
#include "apps/tool/selftest_report.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "apps/tool/card_option.hpp"
#include "fpga/model/card.hpp"
#include "pmd/api/riopmd.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/selftest/exchange.hpp"

namespace rio::tool {
namespace {

using selftest::End;
using selftest::Outcome;
using selftest::StepReport;
using selftest::Verdict;

std::unique_ptr<pmd::EmuBus> make_bus(const pmd::EmuConfig& config = {}) {
  std::unique_ptr<pmd::EmuBus> bus;
  EXPECT_EQ(pmd::EmuBus::create(config, nullptr, &bus), 0);
  return bus;
}

selftest::Config quick() {
  selftest::Config config;
  config.quick = true;
  config.must_loop = true;
  return config;
}

const Verdict& verdict(const SelftestReport& report, const std::string& step) {
  for (const StepReport& one : report.steps) {
    if (one.step == step) {
      return one.verdict;
    }
  }
  ADD_FAILURE() << "no step " << step;
  return report.steps.front().verdict;
}

TEST(Selftest, SoundCardPasses) {
  const auto bus = make_bus({.model = {.queue_pairs = 2, .stepping = pmd::Stepping::kThread}});
  const SelftestReport report = run_selftest(*bus, quick(), {});
  EXPECT_EQ(report.steps.size(), selftest::steps().size());
  EXPECT_EQ(report.exit_code(), kExitOk) << report.text();
  EXPECT_EQ(report.count(Outcome::kSkipped), 2u) << report.text();  // prbs, peer
  EXPECT_EQ(verdict(report, "prbs").outcome, Outcome::kSkipped);
  EXPECT_NE(verdict(report, "prbs").reason.find("not there"), std::string::npos);
}

TEST(Selftest, QuirksOrNone) {
  for (const bool quirks : {true, false}) {
    const auto bus = make_bus({.model = {.exact = true, .quirks = quirks}});
    const SelftestReport report = run_selftest(*bus, quick(), {});
    EXPECT_EQ(report.exit_code(), kExitOk) << report.text();
  }
}

/// An emulated card on a bus that corrupts received bytes.
class MeddlingBus final : public pmd::Bus, public pmd::Emulation {
 public:
  explicit MeddlingBus(std::unique_ptr<pmd::EmuBus> bus) : bus_(std::move(bus)) {}

  pmd::Mmio bar() override { return bus_->bar(); }
  pmd::Emulation& emulation() override { return *this; }
  pmd::PollHook step_hook(uint32_t) override { return {&MeddlingBus::step, this}; }
  int dma_alloc(size_t len_bytes, size_t align_bytes, pmd::DmaMemory* out) override {
    const int rc = bus_->dma_alloc(len_bytes, align_bytes, out);
    if (rc == 0 && pages_ == nullptr) {  // the bench allocates first
      pages_ = static_cast<uint8_t*>(out->va);
    }
    return rc;
  }
  void dma_free(const pmd::DmaMemory& memory) override { bus_->dma_free(memory); }
  int irq_fd(uint32_t vector) override { return bus_->irq_fd(vector); }
  const std::string& name() const override { return bus_->name(); }

  pmd::EmuBus& emu() { return *bus_; }
  int spoil_at = -1;  ///< byte of the receive pages that is corrupted once it was written

 private:
  static void step(void* self) noexcept {
    auto* const bus = static_cast<MeddlingBus*>(self);
    bus->emu().card()->step();
    if (bus->spoil_at >= 0 && bus->pages_ != nullptr) {
      uint8_t* const at =
          bus->pages_ + End::kRxPage * End::kPageBytes + static_cast<size_t>(bus->spoil_at);
      if (*at != 0x77) {
        *at = 0x77;
      }
    }
  }

  std::unique_ptr<pmd::EmuBus> bus_;
  uint8_t* pages_ = nullptr;
};

TEST(Selftest, OneWrongByteIsNamed) {
  MeddlingBus bus(make_bus({.model = {.exact = true}}));
  bus.spoil_at = 700;
  const SelftestReport report = run_selftest(bus, quick(), {});
  EXPECT_EQ(report.exit_code(), kExitFound);
  EXPECT_EQ(verdict(report, "doorbells").outcome, Outcome::kPass) << report.text();
  for (const char* const step : {"messages", "segments", "dedicated", "memory"}) {
    EXPECT_EQ(verdict(report, step).outcome, Outcome::kFail) << step << report.text();
    EXPECT_NE(verdict(report, step).reason.find("byte 700 is 0x77"), std::string::npos)
        << report.text();
  }
}

TEST(Selftest, ByteBehindAMessageIsFound) {
  MeddlingBus bus(make_bus({.model = {.exact = true}}));
  bus.spoil_at = End::kPageBytes;  // the first one behind the buffer
  const SelftestReport report = run_selftest(bus, quick(), {});
  EXPECT_NE(verdict(report, "messages").reason.find("byte 4096 is 0x77, not 0xa5"),
            std::string::npos)
      << report.text();
}

TEST(Selftest, OneWrongByteOfABurstIsNamed) {
  constexpr int kBuffer = End::kBurstRxPage - End::kRxPage;
  for (const int at : {0, 7, 4095}) {  // of the first message of a burst, and behind it
    MeddlingBus bus(make_bus({.model = {.exact = true}}));
    bus.spoil_at = kBuffer * static_cast<int>(End::kPageBytes) + at;
    const SelftestReport report = run_selftest(bus, quick(), {});
    EXPECT_EQ(verdict(report, "messages").outcome, Outcome::kPass) << report.text();
    const Verdict& bursts = verdict(report, "bursts");
    EXPECT_EQ(bursts.outcome, Outcome::kFail) << report.text();
    EXPECT_NE(bursts.reason.find("byte " + std::to_string(at) + " is 0x77"), std::string::npos)
        << report.text();
  }
}

TEST(Selftest, StuckBurstEndsIt) {
  const auto bus = make_bus({});
  selftest::Config config = quick();
  config.patience_ms = 100;
  const SelftestReport report =
      run_selftest(*bus, config, [&](const char* name, uint64_t done, uint64_t) {
        bus->card()->hold_ring(0, static_cast<uint32_t>(regs::Ring::kTx),
                               std::string(name) == "bursts" && done >= 64);
      });
  EXPECT_NE(verdict(report, "bursts").reason.find("a burst of 64 messages did not come within 100"),
            std::string::npos)
      << report.text();
}

TEST(Selftest, CardThatVanishesEndsIt) {
  for (const std::string step : {"registers", "rings", "doorbells", "messages", "memory"}) {
    const auto bus = make_bus({});
    selftest::Config config = quick();
    config.patience_ms = 100000;  // long enough that it does not end the test
    const auto begin = std::chrono::steady_clock::now();
    const SelftestReport report =
        run_selftest(*bus, config, [&](const char* name, uint64_t done, uint64_t) {
          if (step == name && done >= 20) {
            bus->card()->vanish();
          }
        });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    EXPECT_EQ(report.exit_code(), kExitFound);
    EXPECT_EQ(report.count(Outcome::kFail), 1u) << report.text();
    EXPECT_EQ(verdict(report, step).outcome, Outcome::kFail) << report.text();
    EXPECT_EQ(report.steps.back().verdict.reason, "the card is gone") << report.text();
  }
}

TEST(Selftest, StuckRingEndsIt) {
  const auto bus = make_bus({});
  selftest::Config config = quick();
  config.patience_ms = 100;
  const SelftestReport report =
      run_selftest(*bus, config, [&](const char* name, uint64_t done, uint64_t) {
        bus->card()->hold_ring(0, static_cast<uint32_t>(regs::Ring::kDma),
                               std::string(name) == "memory" && done >= 10);
      });
  EXPECT_EQ(verdict(report, "messages").outcome, Outcome::kPass) << report.text();
  EXPECT_EQ(verdict(report, "memory").outcome, Outcome::kFail) << report.text();
  EXPECT_NE(verdict(report, "memory").reason.find("did not come within 100 ms"), std::string::npos)
      << report.text();
}

TEST(Selftest, PeerGetsEverything) {
  const pmd::EmuConfig wire{.wire = name::Cable{"selftest-peer"},
                            .model = {.stepping = pmd::Stepping::kThread}};
  const auto bus = make_bus(wire);
  std::unique_ptr<Endpoint> peer;
  EndpointConfig config;
  config.dest_id = 0x321;
  config.message_buffers = 16;
  ASSERT_EQ(Endpoint::open(make_bus(wire), config, &peer), 0);
  std::jthread receiver([&](const std::stop_token& stop) {
    for (uint32_t i = 0; i < 16; ++i) {
      uint32_t index = 0;
      ASSERT_EQ(peer->buffers()->get(&index, 1), 1u);
      const pmd::RxBuffer buffer{peer->buffers()->iova(index), index};
      ASSERT_EQ(peer->shared().post(&buffer, 1), 1);
    }
    while (!stop.stop_requested()) {
      pmd::RxMessage message{};
      pmd::DoorbellEvent doorbell{};
      if (peer->shared().burst(&message, 1) == 1) {
        const pmd::RxBuffer buffer{peer->buffers()->iova(static_cast<uint32_t>(message.cookie)),
                                   message.cookie};
        EXPECT_EQ(peer->shared().post(&buffer, 1), 1);
      }
      (void)peer->doorbells().burst(&doorbell, 1);
      std::this_thread::yield();
    }
  });
  selftest::Config test;
  test.quick = true;
  test.has_peer = true;
  test.peer = 0x321;
  const SelftestReport report = run_selftest(*bus, test, {});
  EXPECT_EQ(verdict(report, "peer").outcome, Outcome::kPass) << report.text();
  EXPECT_EQ(verdict(report, "loop-back").outcome, Outcome::kSkipped) << report.text();
  EXPECT_EQ(verdict(report, "messages").outcome, Outcome::kSkipped) << report.text();
  EXPECT_EQ(report.exit_code(), kExitOk) << report.text();
}

TEST(Selftest, RunningRingIsSeen) {
  std::unique_ptr<Endpoint> endpoint;
  ASSERT_EQ(Endpoint::open(make_bus(), {}, &endpoint), 0);
  std::string user;
  EXPECT_EQ(find_user(endpoint->card(), &user), 0);
  EXPECT_EQ(user, "queue pair 0, ring tx");
}

}  // namespace
}  // namespace rio::tool
