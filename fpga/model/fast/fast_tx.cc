#include "fpga/model/fast/fast_tx.hpp"

#include <algorithm>

namespace rio::model {

void FastTx::run(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  const uint32_t count = tx_.fetchable(ring);
  if (count == 0) {
    return;
  }
  pair_ = &pair;
  const uint32_t end = ring.head + count;
  while (static_cast<int32_t>(end - ring.head) > 0) {
    const uint32_t left = end - ring.head;
    if (direct_.send(pair, ring, left) > 0) {
      continue;
    }
    const uint32_t flights = std::min(left, core_.flights_left(pair));
    if ((flights == 1 && send_single(pair)) || send_run(pair, ring, flights) > 0 ||
        pull_.launch(pair, ring, left) > 0 || pull_.launch_with_bytes(pair, ring, left) > 0 ||
        several_.send(pair, ring, left) > 0) {
      continue;
    }
    if (!tx_.launch(pair, ring)) {
      break;
    }
  }
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

bool FastTx::aim(Pair& pair) {
  Flow* flow = pair.last_flow;
  if (flow == nullptr || flow->way->gone) {
    return false;
  }
  lane_ = {.flow = flow,
           .ring = &pair.rings[kTxRing],
           .writer = flow->way->requests,
           .busy = flow->busy,
           .msgs = flow->msgs.data(),
           .decoder = {core_.host.read_window(), flow->dest_id},
           .route = plain::route(pair.dest_id, flow->dest_id),
           .now_ns = core_.now_ns};
  return true;
}

FastTx::Kick FastTx::kick_several() {
  Ring& ring = *lane_.ring;
  // acquire: as in kick().
  const uint32_t tail = __atomic_load_n(ring.tail_word, __ATOMIC_ACQUIRE);
  if (tail - ring.head != 1) {
    return Kick::kNot;
  }
  ring.tail = tail;
  return several_.send_single(*lane_.flow, lane_.decoder, lane_.route, ring) ? Kick::kSent
                                                                             : Kick::kNot;
}

bool FastTx::send_single(Pair& pair) {
  if (!aim(pair) || !lane_.writer->has_short_room(kLongest)) {
    return false;
  }
  const Kick kicked = single();
  if (kicked == Kick::kNot) {
    return false;
  }
  if (kicked == Kick::kSentToSleeper) {
    wake();
  }
  count_kicks(pair, 1);
  return true;
}

void FastTx::send_several(Pair& pair, Ring& ring, uint32_t count) {
  for (uint32_t run = 1; run != 0 && count > 1; count -= run) {
    run = pull_.launch_with_bytes(pair, ring, count);
  }
  static_cast<void>(several_.send(pair, ring, count));
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

uint32_t FastTx::send_run(Pair& pair, Ring& ring, uint32_t count) {
  Flow* flow = pair.last_flow;
  if (flow == nullptr) {
    return 0;
  }
  const plain::Decoder decoder(core_.host.read_window(), flow->dest_id);
  count = std::min(count, ring.entries_in_a_row());
  FrameWriter& writer = *flow->way->requests;
  const FrameWriter::Window window = writer.window(count * kLongest);
  uint8_t* out = window.bytes;
  count = std::min(count, window.room / kLongest);
  bool hidden = window.hides_first;
  const uint64_t first_word = window.tag | static_cast<uint64_t>(FrameType::kMessage) << 32;
  const uint64_t route = plain::route(pair.dest_id, flow->dest_id);
  const uint32_t letters = core_.config.letters;
  const uint64_t now_ns = core_.now_ns;
  TxMsg* const msgs = flow->msgs.data();
  // Locals: after each store through a byte pointer, the compiler would reload members.
  const uint8_t* desc = ring.entry(ring.head, 5);
  uint8_t* const busy_letters = flow->busy;
  const uint32_t first = ring.head;
  uint32_t first_bytes = 0;
  uint32_t index = first;
  for (const uint32_t end = first + count; index != end; ++index) {
    plain::Message message;
    if (!decoder.decode(desc, &message)) [[unlikely]] {
      break;
    }
    const uint32_t mbox = message.mbox();
    const uint32_t busy = busy_letters[mbox];
    const auto letter = static_cast<uint32_t>(std::countr_one(busy));
    if (letter >= letters) [[unlikely]] {
      break;
    }
    busy_letters[mbox] = static_cast<uint8_t>(busy | (busy + 1));
    const uint32_t place = place_of(mbox, letter);
    const uint32_t length = message.length();
    const uint32_t bytes = frame_bytes(length);
    if (hidden) [[unlikely]] {
      store32(out + 4, static_cast<uint32_t>(FrameType::kMessage));
      hidden = false;
      first_bytes = bytes;
    } else {
      store64(out, bytes | first_word);
    }
    store64(out + 8, route);
    store64(out + 16, plain::shape(length, place));
    copy_padded(out + sizeof(Frame), message.bytes, length);
    out += bytes;
    plain::note(msgs[place], message, desc, index, now_ns);
    desc += sizeof(regs::TxDesc);
  }
  const uint32_t sent = index - first;
  writer.commit_run(window, first_bytes, static_cast<uint32_t>(out - window.bytes));
  core_.counts.tx_packets += sent;
  ring.outstanding += sent;
  ring.head = index;
  return sent;
}

void FastTx::on_acks(Flow& flow, const InFrame& frame) {
  const uint8_t* ack = frame.payload();
  const uint8_t* const end = ack + frame.length / sizeof(Ack) * sizeof(Ack);
  Ring& ring = flow.pair.rings[kTxRing];
  TxMsg* const msgs = flow.msgs.data();
  const uint64_t time = core_.ticks();
  // If completions cannot be written directly, no message matches, and TxEngine handles all.
  const uint64_t life = ring.cbase != nullptr && !core_.host.posting() ? kTxLife : ~0ull;
  uint8_t* const completions = ring.cbase;
  const uint32_t cmask = ring.cmask;
  uint8_t* const busy_letters = flow.busy;
  uint32_t cidx = ring.cidx;
  uint64_t last_word = time | static_cast<uint64_t>(ring.phase()) << 32;
  // A completion grows by the messages that follow in the ring, up to `most`.
  const uint32_t most = ring.cumulative ? regs::tx_cpl::Status::more.max() + 1 : 1;
  uint32_t reported = 0;
  uint32_t index = 0;
  uint32_t cookie = 0;
  uint32_t delivered = 0;
  const auto complete = [&]() __attribute__((always_inline)) {
    if (reported == 0) {
      return;
    }
    constexpr uint32_t kMoreLsb = 32 + regs::tx_cpl::Status::more.lsb;
    plain::complete_tx(completions + (cidx & cmask) * sizeof(regs::TxCpl), cookie, index,
                       last_word | uint64_t{reported - 1} << kMoreLsb);
    delivered += reported;
    reported = 0;
    if ((++cidx & cmask) == 0) [[unlikely]] {
      last_word ^= 1ull << 63;  // phase of the next lap
    }
  };
  for (; ack != end; ack += sizeof(Ack)) {
    uint16_t word = 0;
    std::memcpy(&word, ack, sizeof(word));
    const auto once = static_cast<uint32_t>(pinned(word));  // the partner may overwrite it
    TxMsg& msg = msgs[once & 0xFF];
    const uint64_t is = load64(reinterpret_cast<const uint8_t*>(&msg.unsent));
    if (once <= 0xFF && is == life) [[likely]] {
      msg.state = TxMsg::kFree;
      busy_letters[once & 63] ^= static_cast<uint8_t>(1u << (once >> 6));
    } else if (once <= 0xFF && life == kTxLife && plain::is_whole_of_several(is)) {
      tx_.end_several(flow, msg);
    } else {
      complete();
      ring.cidx = cidx;
      tx_.answered(flow, {static_cast<uint8_t>(once), static_cast<uint8_t>(once >> 8)});
      cidx = ring.cidx;
      last_word = time | static_cast<uint64_t>(ring.phase()) << 32;
      continue;
    }
    if (msg.index != index + 1 || reported == most) {
      complete();
    }
    ++reported;
    index = msg.index;
    cookie = msg.desc.cookie;
  }
  complete();
  ring.cidx = cidx;
  ring.outstanding -= delivered;
}

}  // namespace rio::model
