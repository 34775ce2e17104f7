// The short way of fast mode: plain messages of one segment, in runs. What is not plain goes the
// long way in tx_engine.cc; both keep the same state.
#include <algorithm>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/fast/tx_single.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {
namespace {

using plain::Control;
using plain::kInlineMask;
using plain::kMboxMask;
using plain::shape;

constexpr uint32_t kLongest = frame_bytes(regs::kSegmentBytesMax);

/// Note what flies; `desc` is the descriptor.
inline void note(TxMsg& msg, const uint8_t* desc, uint32_t index, uint64_t now_ns) {
  copy32(reinterpret_cast<uint8_t*>(&msg.desc), desc);
  msg.since_ns = now_ns;
  msg.index = index;
  store64(reinterpret_cast<uint8_t*>(&msg.unsent), kTxLife);
}

}  // namespace

bool TxEngine::aim(Pair& pair) {
  Flow* flow = pair.last_flow;
  const HostWindow& host = core_.host.read_window();
  if (flow == nullptr || flow->way->gone || host.len_bytes < regs::kSegmentBytesMax) {
    return false;
  }
  lane_ = {.ring = &pair.rings[kTxRing],
           .writer = flow->way->requests,
           .busy = flow->busy,
           .msgs = flow->msgs.data(),
           .plain = plain::kControl | static_cast<uint64_t>(flow->dest_id) << 32,
           .route = pair.dest_id | static_cast<uint64_t>(flow->dest_id) << 32,
           .begin = host.iova,
           .begins = host.len_bytes - regs::kSegmentBytesMax + 1,
           .va_minus_iova = reinterpret_cast<uintptr_t>(host.va) - host.iova,
           .now_ns = core_.now_ns};
  return true;
}

uint32_t TxEngine::express(Pair& pair, Ring& ring, uint32_t count) {
  Flow* flow = pair.last_flow;
  const HostWindow host = core_.host.read_window();
  if (flow == nullptr) {
    return 0;
  }
  count = std::min(count, ring.entries_in_a_row());
  FrameWriter& writer = *flow->way->requests;
  const FrameWriter::Window window = writer.window(count * kLongest);
  uint8_t* out = window.bytes;
  count = std::min(count, window.room / kLongest);
  bool hidden = window.hides_first;
  const uint64_t first_word = window.tag | static_cast<uint64_t>(FrameType::kMessage) << 32;
  const uint64_t plain_word = plain::kControl | static_cast<uint64_t>(flow->dest_id) << 32;
  const uint64_t route = pair.dest_id | static_cast<uint64_t>(flow->dest_id) << 32;
  // Where a payload may begin: the longest one ends within the window.
  const uint64_t begins =
      host.len_bytes < regs::kSegmentBytesMax ? 0 : host.len_bytes - regs::kSegmentBytesMax + 1;
  const uint64_t unaligned = (1ull << core_.config.tx_addr_log2) - 1;
  const uint32_t letters = core_.config.letters;
  const uint64_t now_ns = core_.now_ns;
  TxMsg* const msgs = flow->msgs.data();
  // Locals: stores through byte pointers would make the compiler load members again each time.
  const uint8_t* desc = ring.entry(ring.head, 5);
  uint8_t* const busy_letters = flow->busy;
  const uint8_t* const host_va = host.va;
  const uint64_t host_iova = host.iova;
  const uint32_t first = ring.head;
  uint32_t first_bytes = 0;
  uint32_t index = first;
  for (const uint32_t end = first + count; index != end; ++index) {
    const uint64_t word = load64(desc);
    const uint32_t length = static_cast<uint32_t>(load64(desc + 8) >> 32);
    const uint64_t addr = load64(desc + offsetof(regs::TxDesc, addr));
    const uint64_t offset = addr - host_iova;
    const auto mbox = static_cast<uint32_t>(word >> Control::mbox.lsb) & 63;
    const uint32_t busy = busy_letters[mbox];
    const auto letter = static_cast<uint32_t>(__builtin_ctz(~busy));
    // As numbers: of a message that is not good the sum points nowhere.
    auto bytes_at = reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(host_va) + offset);
    bool good = (addr & unaligned) == 0 && offset < begins && length - 1 < regs::kSegmentBytesMax;
    if ((word & kInlineMask) != 0) {
      bytes_at = desc + offsetof(regs::TxDesc, addr);
      good = length - 1 < regs::kInlineBytes;
    }
    if ((word & ~(kMboxMask | kInlineMask)) != plain_word || !good || letter >= letters)
        [[unlikely]] {
      break;
    }
    busy_letters[mbox] = static_cast<uint8_t>(busy | (busy + 1));
    const uint32_t place = place_of(mbox, letter);
    const uint32_t bytes = frame_bytes(length);
    if (hidden) [[unlikely]] {
      store32(out + 4, static_cast<uint32_t>(FrameType::kMessage));
      hidden = false;
      first_bytes = bytes;
    } else {
      store64(out, bytes | first_word);
    }
    store64(out + 8, route);
    store64(out + 16, shape(length, place));
    copy_padded(out + sizeof(Frame), bytes_at, length);
    out += bytes;
    note(msgs[place], desc, index, now_ns);
    desc += sizeof(regs::TxDesc);
  }
  const uint32_t sent = index - first;
  writer.commit_run(window, first_bytes, static_cast<uint32_t>(out - window.bytes));
  core_.counts.tx_packets += sent;
  pair.tx_outstanding += sent;
  ring.head = index;
  return sent;
}

void TxEngine::on_acks(const InFrame& frame) {
  Pair* pair = core_.sender(frame.dest);
  Flow* flow = pair == nullptr ? nullptr : core_.known_flow(*pair, frame.source);
  if (flow == nullptr) {
    return;
  }
  const uint8_t* ack = frame.payload();
  const uint8_t* const end = ack + frame.length / sizeof(Ack) * sizeof(Ack);
  Ring& ring = pair->rings[kTxRing];
  TxMsg* const msgs = flow->msgs.data();
  const uint64_t time = core_.ticks();
  // Where completions cannot be written so, nothing is alive in this sense.
  const uint64_t life = ring.cbase != nullptr && !core_.host.posting() ? kTxLife : ~0ull;
  uint8_t* const completions = ring.cbase;
  const uint32_t cmask = ring.cmask;
  uint8_t* const busy_letters = flow->busy;
  uint32_t cidx = ring.cidx;
  uint32_t settled = cidx;  // and those that the long way has counted
  uint64_t last_word = time | static_cast<uint64_t>(ring.phase()) << 32;
  for (; ack != end; ack += sizeof(Ack)) {
    uint16_t word = 0;
    std::memcpy(&word, ack, sizeof(word));
    const auto once = static_cast<uint32_t>(pinned(word));  // others may write there
    TxMsg& msg = msgs[once & 0xFF];
    if (once > 0xFF || load64(reinterpret_cast<const uint8_t*>(&msg.unsent)) != life) [[unlikely]] {
      const uint32_t before = cidx;
      ring.cidx = cidx;
      answered(*pair, *flow, once & 0xFF,
               {static_cast<uint8_t>(once), static_cast<uint8_t>(once >> 8)});
      cidx = ring.cidx;
      settled += cidx - before;
      last_word = time | static_cast<uint64_t>(ring.phase()) << 32;
      continue;
    }
    msg.state = TxMsg::kFree;
    busy_letters[once & 63] ^= static_cast<uint8_t>(1u << (once >> 6));
    uint8_t* cpl = completions + (cidx & cmask) * sizeof(regs::TxCpl);
    store64(cpl, msg.desc.cookie | static_cast<uint64_t>(msg.index) << 32);
    // release: the completion before its last word; pairs with dma_load_last_word.
    base::tsan_release(cpl + 12);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 8), last_word, __ATOMIC_RELEASE);
    if ((++cidx & cmask) == 0) [[unlikely]] {
      last_word ^= 1ull << 63;  // the phase of the next lap
    }
  }
  ring.cidx = cidx;
  pair->tx_outstanding -= cidx - settled;
}

}  // namespace rio::model
