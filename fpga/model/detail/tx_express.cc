// The short way of fast mode: plain messages of one segment, in runs. What is not plain goes the
// long way in tx_engine.cc; both keep the same state.
#include <algorithm>

#include "fpga/model/detail/copy.hpp"
#include "fpga/model/detail/tx_engine.hpp"
#include "fpga/model/tsan.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;

/// Control word of a plain message but for its mailbox and whether its bytes are in the descriptor:
/// 256-byte segments.
constexpr uint32_t kPlain = Control::ssize.put(14);
constexpr uint64_t kMboxMask = Control::mbox.mask();
constexpr uint64_t kInlineMask = Control::inline_.mask();
constexpr uint32_t kLongest = frame_bytes(regs::kSegmentBytesMax);

/// Bytes 16 to 23 of a Frame: of a message of one segment.
constexpr uint64_t shape(uint64_t length, uint64_t place) {
  return length | place << 16 | 1ull << 32 | static_cast<uint64_t>(regs::kSegmentBytesMax) << 48;
}
static_assert(offsetof(Frame, place) == 18 && offsetof(Frame, segments) == 20 &&
              offsetof(Frame, ssize) == 22);

/// State of a TxMsg that flies as one segment and was never refused, as its four bytes.
struct Life {
  uint8_t state = TxMsg::kFlying;
  uint8_t segments = 1;
  uint8_t retries = 0;
  bool whole = true;
};
static_assert(offsetof(TxMsg, whole) == offsetof(TxMsg, state) + 3);

uint32_t life_word() {
  const Life life;
  uint32_t word = 0;
  std::memcpy(&word, &life, sizeof(word));
  return word;
}

/// Note what flies; `desc` is the descriptor.
inline void note(TxMsg& msg, const uint8_t* desc, uint32_t index, uint64_t now_ns, uint32_t life) {
  std::memcpy(&msg.desc, desc, sizeof(msg.desc));
  msg.since_ns = now_ns;
  msg.index = index;
  msg.unsent = 0;
  msg.open = 1;
  std::memcpy(static_cast<void*>(&msg.state), &life, sizeof(life));
}

}  // namespace

bool TxEngine::kick(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  // acquire: the descriptor visible after the tail; pairs with Mmio::write32.
  const uint32_t tail = __atomic_load_n(ring.tail_word, __ATOMIC_ACQUIRE);
  if (tail - ring.head != 1 || core_.wire->may_enter_neighbour(core_.thread)) {
    return false;
  }
  ring.tail = tail;
  return single(pair, ring);
}

bool TxEngine::single(Pair& pair, Ring& ring) {
  Flow* flow = pair.last_flow;
  const uint8_t* desc = ring.entry(ring.head, 5);
  const uint64_t word = load64(desc);
  const auto length = static_cast<uint32_t>(load64(desc + 8) >> 32);
  const auto mbox = static_cast<uint32_t>(word >> Control::mbox.lsb) & 63;
  const uint8_t* bytes = desc + offsetof(regs::TxDesc, addr);
  if ((word & kInlineMask) == 0) [[likely]] {
    const HostWindow& host = core_.host.read_window();
    const uint64_t addr = load64(desc + offsetof(regs::TxDesc, addr));
    // As a number: of a message that is not good the sum points nowhere.
    bytes =
        reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(host.va) + addr - host.iova);
    if (length - 1 >= regs::kSegmentBytesMax || (addr & tx_unaligned_) != 0 ||
        !host.holds(addr, regs::kSegmentBytesMax)) [[unlikely]] {
      return false;
    }
  } else if (length - 1 >= regs::kInlineBytes) {
    return false;
  }
  if (flow == nullptr || (word & ~(kMboxMask | kInlineMask)) !=
                             (kPlain | static_cast<uint64_t>(flow->dest_id) << 32)) {
    return false;
  }
  const uint32_t busy = flow->busy[mbox];
  const auto letter = static_cast<uint32_t>(__builtin_ctz(~busy));
  if (letter >= core_.config.letters) {
    return false;
  }
  const uint32_t place = place_of(mbox, letter);
  const FrameHead head = {static_cast<uint64_t>(FrameType::kMessage) << 32,
                          pair.dest_id | static_cast<uint64_t>(flow->dest_id) << 32,
                          shape(length, place), 0};
  if (!flow->way->requests->send_short(head, bytes, length)) {
    return false;
  }
  flow->busy[mbox] = static_cast<uint8_t>(busy | (busy + 1));
  note(flow->msgs[place], desc, ring.head, core_.now_ns, life_word());
  ++core_.counts.tx_packets;
  ++pair.tx_outstanding;
  ++ring.head;
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
  const uint64_t plain = kPlain | static_cast<uint64_t>(flow->dest_id) << 32;
  const uint64_t route = pair.dest_id | static_cast<uint64_t>(flow->dest_id) << 32;
  // Where a payload may begin: the longest one ends within the window.
  const uint64_t begins =
      host.len_bytes < regs::kSegmentBytesMax ? 0 : host.len_bytes - regs::kSegmentBytesMax + 1;
  const uint64_t unaligned = (1ull << core_.config.tx_addr_log2) - 1;
  const uint32_t letters = core_.config.letters;
  const uint64_t now_ns = core_.now_ns;
  const uint32_t life = life_word();
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
    if ((word & ~(kMboxMask | kInlineMask)) != plain || !good || letter >= letters) [[unlikely]] {
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
      store64(out, bytes | static_cast<uint64_t>(FrameType::kMessage) << 32);
    }
    store64(out + 8, route);
    store64(out + 16, shape(length, place));
    copy_padded(out + sizeof(Frame), bytes_at, length);
    out += bytes;
    note(msgs[place], desc, index, now_ns, life);
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
  const uint32_t life = life_word();
  const uint64_t time = core_.ticks();
  const bool direct = ring.cbase != nullptr && !core_.host.posting();
  uint8_t* const completions = ring.cbase;
  const uint32_t cmask = ring.cmask;
  const uint32_t cshift = ring.cshift;
  uint8_t* const busy_letters = flow->busy;
  uint32_t cidx = ring.cidx;
  uint32_t done = 0;
  for (; ack != end; ack += sizeof(Ack)) {
    uint16_t word = 0;
    std::memcpy(&word, ack, sizeof(word));
    const auto once = static_cast<uint32_t>(pinned(word));  // others may write there
    const uint32_t place = once & 0xFF;
    const uint32_t result = once >> 8;
    TxMsg& msg = msgs[place];
    uint32_t state = 0;
    std::memcpy(&state, &msg.state, sizeof(state));
    if (state != life || msg.open != 1 || result != 0 || !direct) [[unlikely]] {
      ring.cidx = cidx;
      answered(*pair, *flow, place, {static_cast<uint8_t>(place), static_cast<uint8_t>(result)});
      cidx = ring.cidx;
      continue;
    }
    msg.state = TxMsg::kFree;
    busy_letters[place & 63] ^= static_cast<uint8_t>(1u << (place >> 6));
    uint8_t* cpl = completions + (cidx & cmask) * sizeof(regs::TxCpl);
    store64(cpl, msg.desc.cookie | static_cast<uint64_t>(msg.index) << 32);
    const uint64_t phase = ~(cidx >> cshift) & 1u;
    // release: the completion before its last word; pairs with dma_load_last_word.
    tsan_release(cpl + 12);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 8), time | phase << 63, __ATOMIC_RELEASE);
    ++cidx;
    ++done;
  }
  ring.cidx = cidx;
  pair->tx_outstanding -= done;
}

}  // namespace rio::model
