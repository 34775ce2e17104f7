// Stopped is a fence: nothing that the host was told to be its own again is written, although the
// answer to a register read overtakes the card's writes. docs/decisions/0035
#include <span>

#include "base/random.hpp"
#include "tests/conformance/card_test.hpp"
#include "tests/support/env_number.hpp"

namespace rio::test {
namespace {

using regs::DmaOp;

/// Words that tell the host that something is done, and an interrupt.
const char* const kWords[] = {"GEN_ACK",         "shared RING_STATUS", "tx RING_STATUS",
                              "dma RING_STATUS", "window STATUS",      "rail STATUS",
                              "APPLIED",         "interrupt"};

/// Rounds of traffic in which one of the words is asked for, and then what it gives back is
/// watched.
class Fence : public CardTest {
 protected:
  static constexpr uint32_t kLog2 = 4;
  static constexpr uint32_t kEntries = 1u << kLog2;
  static constexpr uint32_t kBufferBytes = 1024;
  static constexpr uint32_t kVector = 5;
  static constexpr uint8_t kFreed = 0x5C;
  using Bytes = std::span<uint8_t>;

  void SetUp() override {
    CardTest::SetUp();
    for (uint32_t number = 0; number < 4; ++number) {
      rings_[number] = std::make_unique<TestRing>(
          card(), RingConfig{.ring = number, .log2 = kLog2, .irq = number == 2, .vector = kVector});
    }
    window_ = std::make_unique<Buffer>(card(), kBufferBytes);
    landing_ = std::make_unique<Buffer>(card(), kEntries * kBufferBytes);
    target_ = std::make_unique<Buffer>(card(), kBufferBytes);
    rail_ = std::make_unique<Buffer>(card(), sizeof(regs::RailStatus));
  }

  /// Plays rounds of all words. @param expect_broken each word is found broken; otherwise none.
  void play(bool expect_broken) {
    const uint64_t rounds = env_number("RIO_FENCE_ROUNDS", 350);
    uint32_t broken[std::size(kWords)] = {};
    uint32_t sum = 0;
    for (uint64_t round = 0; round < rounds && !HasFatalFailure(); ++round) {
      const auto word = static_cast<uint32_t>(round % std::size(kWords));
      begin();
      broken[word] += is_broken(word) ? 1 : 0;
    }
    for (uint32_t word = 0; word < std::size(kWords); ++word) {
      EXPECT_EQ(broken[word] > 0, expect_broken) << kWords[word] << " " << broken[word];
      sum += broken[word];
    }
    RecordProperty("rounds", static_cast<int>(rounds));
    RecordProperty("broken", static_cast<int>(sum));
  }

 private:
  void begin() {
    reset();
    static_cast<void>(card().interrupts(kVector));  // of the round before
    for (auto& ring : rings_) {
      ring->request_start();
    }
    for (uint32_t i = 0; i < kEntries; ++i) {
      rings_[1]->put(regs::SharedDesc{landing_->iova() + uint64_t{i} * kBufferBytes});
    }
    rings_[1]->post();
    open_window(0, *window_, 0, kBufferBytes, regs::window::Control::write.put(1));
    card().write32(regs::rail::base_lo(), static_cast<uint32_t>(rail_->iova()));
    card().write32(regs::rail::base_hi(), static_cast<uint32_t>(rail_->iova() >> 32));
    card().write32(regs::rail::period_us(), 1);
    change_rail(true);
  }

  /// Asks for another state of the rails block. @return the STATUS that says that it has it.
  uint32_t change_rail(bool enable) {
    using Control = regs::rail::Control;
    const uint32_t control = Control::gen.put(++rail_gen_) | Control::enable.put(enable ? 1 : 0);
    card().write32(regs::rail::control(), control);
    return control;
  }

  /// Whether the card writes what `word` gives back, or interrupts before the completion is there.
  bool is_broken(uint32_t word) {
    if (word + 1 == std::size(kWords)) {
      wait([this] { return card().interrupts(kVector) > 0; });
      regs::DoorbellCpl cpl;
      return !rings_[2]->take(&cpl);
    }
    for (uint32_t left = random_.below(40); left > 0; --left) {
      work();
    }
    std::vector<Bytes> freed;
    wait(ask(word, &freed));
    for (const Bytes& bytes : freed) {
      std::fill(bytes.begin(), bytes.end(), kFreed);
    }
    for (uint32_t left = 40; left > 0; --left) {
      work();
    }
    return !std::all_of(freed.begin(), freed.end(), [](const Bytes& bytes) {
      return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == kFreed; });
    });
  }

  /// Asks for a word. @param freed set to the memory that is the host's again once the card has
  /// answered. @return whether it has.
  std::function<bool()> ask(uint32_t word, std::vector<Bytes>* freed) {
    namespace map = regs::rx_map;
    const auto equal = [this](uint32_t offset, uint32_t value) {
      return [=, this] { return card().read32(offset) == value; };
    };
    const auto stop = [&](uint32_t number) {
      TestRing& ring = *rings_[number];
      *freed = {whole(ring.completions)};
      ring.request_stop();
      return [&ring] {
        return ring.status().gen == ring.gen() && ring.status().state == regs::RingState::kStopped;
      };
    };
    std::function<bool()> answered;
    switch (word) {
      case 0:
        *freed = {whole(window_->memory()), whole(landing_->memory()), whole(target_->memory()),
                  whole(rail_->memory())};
        for (const auto& ring : rings_) {
          freed->push_back(whole(ring->completions));
        }
        card().write32(regs::id::gen_req(), card().read32(regs::id::gen_ack()) + 1);
        return equal(regs::id::gen_ack(), card().read32(regs::id::gen_req()));
      case 1:
        answered = stop(1);
        freed->push_back(whole(landing_->memory()));
        return answered;
      case 2:
        return stop(0);
      case 3:
        answered = stop(3);
        freed->push_back(whole(target_->memory()));
        return answered;
      case 4:
        *freed = {whole(window_->memory())};
        return equal(regs::window::status(0, 0), close_window(0));
      case 5:
        *freed = {whole(rail_->memory())};
        card().sleep_us(1);
        card().work();  // it writes a status
        return equal(regs::rail::status(), change_rail(false));
      default:  // from now on the queue pair gets no requests and no doorbells
        *freed = {whole(window_->memory()), whole(rings_[2]->completions)};
        map_entry(0, kOwnId, ~0ull, 0, false, false);
        card().write32(map::apply(), card().read32(map::applied()) + 1);
        return equal(map::applied(), card().read32(map::apply()));
    }
  }

  void wait(const std::function<bool()>& answered) {
    for (uint32_t left = 2000; left > 0; --left) {
      work();
      if (answered()) {
        return;
      }
      card().sleep_us(kResponseUs / 100);
    }
    FAIL() << "no answer";
  }

  /// Lets the remote node and the host do something, and the card work for a moment.
  void work() {
    TestRing& tx = *rings_[0];
    TestRing& dma = *rings_[3];
    const auto letter = static_cast<uint8_t>(random_.below(4));
    const uint64_t at = uint64_t{random_.below(3)} * 256;
    switch (random_.below(7)) {
      case 0:
        offer(segment(static_cast<uint8_t>(4 + random_.below(60)), letter, message_));
        break;
      case 1:
        offer(segment(0, letter, long_message_, random_.below(3)));
        break;
      case 2:
        offer(request(DmaOp::kNwrite, at, 256, message_));
        break;
      case 3:
        offer(doorbell(1, 1));
        break;
      case 4:
        if (tx.tail != kEntries) {
          tx.put(message(random_.below(64), 200, landing_->iova()));
          tx.post();
        }
        break;
      case 5:
        if (dma.tail != kEntries) {
          dma.put(
              regs::DmaDesc{regs::dma_desc::Control::op.put(static_cast<uint32_t>(DmaOp::kNread)),
                            kRemoteId, 256, 1, 0, target_->iova() + at});
          dma.post();
        }
        break;
      default:
        break;
    }
    card().work();
    for (Packet packet; card().receive(&packet);) {
      if (packet.kind == Packet::kSegment) {
        answer(packet);
      } else if (packet.kind == Packet::kRequest) {
        respond(packet, Answer::kDone, {message_.begin(), message_.begin() + packet.length});
      }
    }
  }
  /// Sends a packet, unless the card's port is full.
  void offer(const Packet& packet) { static_cast<void>(card().send(packet)); }
  static Bytes whole(const Memory& memory) { return {memory.va, memory.len_bytes}; }

  base::Random random_{1};
  const std::vector<uint8_t> message_ = pattern(256);
  const std::vector<uint8_t> long_message_ = pattern(768);
  std::unique_ptr<TestRing> rings_[4];  // by number: transmit, shared, doorbell, DMA
  std::unique_ptr<Buffer> window_;
  std::unique_ptr<Buffer> landing_;
  std::unique_ptr<Buffer> target_;
  std::unique_ptr<Buffer> rail_;
  uint32_t rail_gen_ = 0;
};
RIO_CONFORMANCE(Fence);

// O6, O7
TEST_P(Fence, NothingIsWrittenOnceTheHostWasTold) {
  play(false);
}

/// The proof that Fence sees a card whose words come too early.
class EarlyCard : public Fence {};
INSTANTIATE_TEST_SUITE_P(Card, EarlyCard, testing::ValuesIn(early_implementations()),
                         [](const auto& which) { return which.param.name; });

TEST_P(EarlyCard, IsCaughtByEachWord) {
  play(true);
}

}  // namespace
}  // namespace rio::test
