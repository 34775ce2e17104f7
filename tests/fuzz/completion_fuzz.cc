// Completions as a broken card might write them, fed to the driver's queues. With any contents an
// entry is returned at most once, with the cookie that was posted, and no other entry is.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

#include "pmd/dev/card.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "tests/support/model_bus.hpp"

using namespace rio;
using namespace rio::test;

namespace {

constexpr uint32_t kLog2 = 3;
constexpr uint32_t kRings[] = {0, 1, 2, 3, 6, 8};
constexpr uint32_t kBytes[] = {16, 32, 16, 16, 32, 16};  // of a completion

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// A card that does nothing once its rings run.
struct Broken {
  explicit Broken(uint32_t start) {
    pmd::CardConfig card_config;
    card_config.dest_ids = {0x11};
    pmd::QueuePairConfig rings;
    rings.tx_log2 = rings.shared_log2 = rings.dedicated_log2 = rings.doorbell_log2 = kLog2;
    rings.dma_log2 = rings.event_log2 = kLog2;
    rings.start_index = start;
    require(bus.ok() && pmd::Card::open(bus, card_config, &card) == 0 &&
            card->open_queue_pair(0, rings, &pair) == 0 &&
            pair->open_dedicated(0, 0x22, 0, &dedicated) == 0);
    for (uint32_t i = 0; i < 6; ++i) {
      bus.card().hold_ring(0, kRings[i], true);
      pmd::Mmio bar = bus.bar();
      const uint64_t lo = bar.read32(regs::qp::ring_cbase_lo(0, kRings[i]));
      const uint64_t hi = bar.read32(regs::qp::ring_cbase_hi(0, kRings[i]));
      completions[i] = bus.at(hi << 32 | lo);
      require(completions[i] != nullptr);
    }
  }
  test::ManualClock clock;
  ModelBus bus{model::Config{}, model::make_loop_wire(), &clock, 1};
  std::unique_ptr<pmd::Card> card;
  std::unique_ptr<pmd::QueuePair> pair;
  pmd::DedicatedRxQueue* dedicated = nullptr;
  uint8_t* completions[6] = {};
};

/// Cookies of the entries that the card holds, for a ring.
struct Cookies {
  std::set<uint64_t> out;
  uint64_t next = 1;
  uint64_t post() {
    out.insert(next);
    return next++;
  }
  void back(uint64_t cookie) { require(out.erase(cookie) == 1); }
};

}  // namespace

// Input: a byte of options, then commands: which (1), where (1), and a completion.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  Broken broken((data[0] & 1) != 0 ? 0xFFFFFFFC : 0);
  pmd::QueuePair& pair = *broken.pair;
  Cookies cookies[6];
  for (++data, --size; size >= 2;) {
    const uint32_t ring = data[0] % 6;
    const uint32_t what = data[0] / 6 % 4;
    const uint32_t slot = data[1] & 7;
    const uint8_t how = data[1];
    data += 2;
    size -= 2;
    if (what == 0 && size >= kBytes[ring]) {
      std::memcpy(broken.completions[ring] + static_cast<size_t>(slot) * kBytes[ring], data,
                  kBytes[ring]);
      data += kBytes[ring];
      size -= kBytes[ring];
    } else if (what == 1) {
      // A completion that is nearly valid: index, code and phase are from the input.
      uint32_t words[8] = {};
      words[ring == 1 ? 3 : 1] = (how >> 3) + ((how & 4) != 0 ? 0xFFFFFFF8 : 0);
      words[kBytes[ring] / 4 - 1] = static_cast<uint32_t>(how & 0x80) << 24 | (how & 0x40 ? 2 : 0);
      std::memcpy(broken.completions[ring] + static_cast<size_t>(slot) * kBytes[ring], words,
                  kBytes[ring]);
    } else if (what == 2) {
      const uint64_t cookie = cookies[ring].next;
      const pmd::TxMessage message{
          .iova = 4096, .cookie = cookie, .dest_id = 1, .length_bytes = 8, .mbox = 0, .flags = 0};
      const pmd::RxBuffer buffer{4096, cookie};
      const pmd::DmaRequest request{0, 4096, cookie, 1, 64, regs::DmaOp::kNread, 0};
      const pmd::DedicatedEntry entry{4096, cookie, 256};
      const uint16_t took = ring == 0   ? pair.tx().burst(&message, 1)
                            : ring == 1 ? pair.shared().post(&buffer, 1)
                            : ring == 3 ? pair.dma().post(&request, 1)
                            : ring == 5 ? broken.dedicated->post(&entry, 1)
                                        : 0;
      if (took == 1) {
        cookies[ring].post();
      }
    } else {
      const auto n = static_cast<uint16_t>(1 + (how & 15));
      pmd::TxDone sent[16];
      pmd::RxMessage got[16];
      pmd::EntryDone done[16];
      pmd::DoorbellEvent bells[16];
      pmd::CardEvent events[16];
      uint16_t given = 0;
      switch (ring) {
        case 0:
          given = pair.tx().reap(sent, n);
          break;
        case 1:
          given = pair.shared().burst(got, n);
          break;
        case 2:
          given = pair.doorbells().burst(bells, n);
          break;
        case 3:
          given = pair.dma().reap(done, n);
          break;
        case 4:
          given = pair.events().burst(events, n);
          break;
        default:
          given = broken.dedicated->reap(done, n);
      }
      require(given <= n);
      for (uint16_t i = 0; i < given; ++i) {
        if (ring == 0) {
          cookies[ring].back(sent[i].cookie);
        } else if (ring == 1) {
          cookies[ring].back(got[i].cookie);
          require(got[i].length_bytes <= regs::kMessageBytesMax);
        } else if (ring == 3 || ring == 5) {
          cookies[ring].back(done[i].cookie);
          require(done[i].bytes <= 256);
        }
      }
    }
  }
  broken.bus.card().vanish();  // the queues do not wait for a card that is gone
  return 0;
}
