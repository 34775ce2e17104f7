// What is sent, until the card says that it has arrived.
#include <algorithm>
#include <cerrno>

#include "lib/msg/copy.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {
namespace {

// Mailboxes 1 to 3 are for large data. A message of one segment may use any of 64: many more can
// fly then, since each mailbox has letters of its own.
constexpr uint32_t kFirstSpread = 32;
constexpr uint32_t kSpread = 32;

[[nodiscard]] uint8_t mailbox(uint32_t number, uint32_t length_bytes) {
  const uint32_t spread = kFirstSpread + (number & (kSpread - 1));
  return static_cast<uint8_t>(length_bytes <= regs::kSegmentBytesMax ? spread : 0);
}

}  // namespace

int Port::send(Link& link, uint16_t from, uint16_t to, Kind kind, const iovec* iov, int count,
               uint32_t bytes) {
  Outflow& flow = link.out[to];
  if (flow.left() == 0 || free_slot_count_ <= kReserve || tx_->free_count() <= kReserve)
      [[unlikely]] {
    return not_now(link, to);
  }
  const uint32_t slot = free_slots_[--free_slot_count_];
  uint8_t* const va = slots_.va(slot);
  Inflow& back = link.in[from];
  back.told = back.limit;
  const Header header = {link.remote_key,
                         link.next_out,
                         to,
                         from,
                         back.limit,
                         kind,
                         static_cast<uint8_t>(padding_of(bytes))};
  std::memcpy(va, &header, sizeof(header));
  uint8_t* at = va + sizeof(header);
  for (int i = 0; i < count; ++i) {
    copy_small(at, static_cast<const uint8_t*>(iov[i].iov_base), iov[i].iov_len);
    at += iov[i].iov_len;
  }
  stats_.copied += bytes;
  ++flow.sent;
  if (!post(link, slot, kHeaderBytes + bytes)) [[unlikely]] {
    --flow.sent;  // the ring took nothing though it had room: the card is gone
    return not_now(link, to);
  }
  if (--until_reap_ == 0) [[unlikely]] {
    reap();
  }
  return 0;
}

bool Port::post(Link& link, uint32_t slot, uint32_t length_bytes) {
  sent_[slot] = {link.index(), link.session, static_cast<uint16_t>(length_bytes), 0};
  const pmd::TxMessage message = {.iova = slots_.iova(slot),
                                  .cookie = slot,
                                  .dest_id = link.dest_id(),
                                  .length_bytes = static_cast<uint16_t>(length_bytes),
                                  .mbox = mailbox(link.next_out, length_bytes),
                                  .flags = 0};
  if (tx_->burst(&message, 1) != 1) [[unlikely]] {
    free_slots_[free_slot_count_++] = slot;
    return false;
  }
  ++link.next_out;
  ++stats_.sent;
  return true;
}

int Port::not_now(Link& link, uint16_t to) {
  const uint64_t bit = 1ull << to;
  if (error_ != 0) {
    return error_;
  }
  if (link.error != 0) {
    return std::exchange(link.error, 0);
  }
  if ((link.refused & bit) != 0) {
    link.refused &= ~bit;
    return -ECONNREFUSED;
  }
  if ((link.asked & bit) == 0) {
    link.say_open |= bit;
    want(link);
  }
  reap();
  progress();
  return -EAGAIN;
}

void Port::reap() {
  pmd::TxDone done[kBurst];
  until_reap_ = kBurst;
  for (uint32_t n = kBurst; n == kBurst;) {
    n = tx_->reap(done, kBurst);
    for (uint32_t i = 0; i < n; ++i) {
      const auto slot = static_cast<uint32_t>(done[i].cookie);
      if (done[i].status == pmd::Status::kOk) [[likely]] {
        free_slots_[free_slot_count_++] = slot;
      } else {
        failed(slot, done[i].status);
      }
    }
  }
}

void Port::failed(uint32_t slot, pmd::Status status) {
  const Sent& sent = sent_[slot];
  Link& link = *links_[sent.link];
  Header header;
  std::memcpy(&header, slots_.va(slot), sizeof(header));
  if (sent.session != link.session || header.kind >= Kind::kHello) {
    free_slots_[free_slot_count_++] = slot;  // a hello is said again by the clock
    return;
  }
  if (status == pmd::Status::kBadDescriptor || status == pmd::Status::kHostReadFailed ||
      status == pmd::Status::kFlushed) {
    free_slots_[free_slot_count_++] = slot;
    end_session(link, -EIO);
    return;
  }
  // Refused, or in doubt: the number says whether it is there already.
  again_.push_back(slot);
}

void Port::send_again() {
  const size_t n = again_.size();
  for (size_t i = 0; i < n; ++i) {
    const uint32_t slot = again_[i];
    Sent& sent = sent_[slot];
    Link& link = *links_[sent.link];
    if (sent.session != link.session) {
      free_slots_[free_slot_count_++] = slot;
      continue;
    }
    if (++sent.tries > kTriesMax) {
      free_slots_[free_slot_count_++] = slot;
      end_session(link, -ETIMEDOUT);
      continue;
    }
    Header header;
    std::memcpy(&header, slots_.va(slot), sizeof(header));
    const pmd::TxMessage message = {.iova = slots_.iova(slot),
                                    .cookie = slot,
                                    .dest_id = link.dest_id(),
                                    .length_bytes = sent.length_bytes,
                                    .mbox = mailbox(header.number, sent.length_bytes),
                                    .flags = 0};
    if (tx_->burst(&message, 1) != 1) {
      again_.push_back(slot);
    }
    ++stats_.again;
  }
  again_.erase(again_.begin(), again_.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace rio::msg
