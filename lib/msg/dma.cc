#include "lib/msg/dma.hpp"

#include <algorithm>

namespace rio::msg {

Dma::Dma(Endpoint& endpoint)
    : queue_(endpoint.dma()),
      misaligned_(endpoint.caps().dma_addr_align - 1),
      length_bytes_max_(endpoint.caps().dma_bytes & ~(endpoint.caps().dma_addr_align - 1)) {}

/// @return false: gone().
bool Dma::begin(DmaTransfer& transfer) const {
  transfer.status = pmd::Status::kOk;
  transfer.flying = 0;
  transfer.moved_bytes = 0;
  transfer.wanted_bytes = transfer.left_bytes;
  return !gone_;
}

bool Dma::start_soon(DmaTransfer& transfer) {
  if (!begin(transfer)) {
    return false;
  }
  transfer.waits = true;
  waiting_.append(transfer);
  return true;
}

bool Dma::start(DmaTransfer& transfer) {
  if (!begin(transfer)) {
    return false;
  }
  // In turn: this one queues behind waiting ones.
  transfer.waits = !waiting_.is_empty() || !post(transfer);
  (transfer.waits ? waiting_ : posted_).append(transfer);
  return true;
}

/// The next request of a transfer: bytes that are contiguous for the card.
pmd::DmaRequest Dma::take_piece(DmaTransfer& transfer) const {
  const pmd::IovaRun& run = *transfer.run;
  const auto offset = static_cast<uint64_t>(transfer.va - static_cast<uint8_t*>(run.va));
  const uint64_t bytes =
      std::min({transfer.left_bytes, run.len_bytes - offset, uint64_t{length_bytes_max_}});
  const pmd::DmaRequest piece = {.rio_addr = transfer.rio_addr,
                                 .iova = run.iova + offset,
                                 .cookie = reinterpret_cast<uintptr_t>(&transfer),
                                 .dest_id = transfer.dest_id,
                                 .length_bytes = static_cast<uint32_t>(bytes),
                                 .op = transfer.op,
                                 .prio = 0};
  transfer.run += offset + bytes == run.len_bytes ? 1 : 0;
  transfer.rio_addr += bytes;
  transfer.va += bytes;
  transfer.left_bytes -= bytes;
  return piece;
}

/// Take the next requests of a transfer, up to `most`, until has_enough(). @return how many.
uint16_t Dma::take_pieces(DmaTransfer& transfer, pmd::DmaRequest* out, uint16_t most) const {
  uint16_t n = 0;
  for (; n < most && transfer.left_bytes != 0 && !has_enough(transfer); ++n) {
    out[n] = take_piece(transfer);
    ++transfer.flying;
  }
  return n;
}

/// Post requests while there is room. @return whether the whole transfer is posted, or enough of
/// it.
bool Dma::post(DmaTransfer& transfer) {
  pmd::DmaRequest pieces[kBurst];
  while (transfer.left_bytes != 0 && !has_enough(transfer)) {
    const uint16_t n = take_pieces(transfer, pieces, std::min(queue_.free_count(), kBurst));
    if (n == 0 || queue_.post(pieces, n) != n) {
      return false;
    }
  }
  return true;
}

void Dma::progress() {
  if (gone_) {
    return;  // the card is gone, so the rings are out of date
  }
  post_waiting();  // first, since an emulated card may have carried it out when it is reaped
  reap();
  if (!waiting_.is_empty()) {
    post_waiting();  // there is more room
  }
}

void Dma::reap() {
  pmd::EntryDone done[kBurst];
  for (uint16_t n = kBurst; n == kBurst;) {
    n = queue_.reap(done, kBurst);
    for (uint16_t i = 0; i < n; ++i) {
      on_piece_done(done[i]);
    }
  }
}

void Dma::on_piece_done(const pmd::EntryDone& done) {
  auto& transfer = *reinterpret_cast<DmaTransfer*>(done.cookie);
  if (transfer.status == pmd::Status::kOk) {
    transfer.status = done.status;
  } else if (done.status == pmd::Status::kResponseTimeout) {
    transfer.status = done.status;  // the peer's memory may be written yet, whatever else failed
  }
  transfer.moved_bytes += done.bytes;
  --transfer.flying;
  if (transfer.status != pmd::Status::kOk) {
    transfer.left_bytes = 0;  // after an error the rest is not transferred
  }
  if (transfer.left_bytes == 0) {
    if (transfer.flying == 0) {
      end(transfer);
    }
  } else if (!transfer.waits) {
    posted_.remove(transfer);
    transfer.waits = true;
    waiting_.append(transfer);  // its next piece, behind those that wait already
  }
}

/// Post what waits, as much as there is room for, in as few bursts as possible.
void Dma::post_waiting() {
  pmd::DmaRequest pieces[kBurst];
  uint16_t n = kBurst;
  while (n == kBurst && !waiting_.is_empty()) {
    const uint16_t room = std::min(queue_.free_count(), kBurst);
    n = 0;
    for (DmaTransfer* first = waiting_.first(); n < room && first != nullptr;
         first = waiting_.first()) {
      n += take_pieces(*first, pieces + n, room - n);
      if (first->left_bytes != 0 && !has_enough(*first)) {
        break;
      }
      waiting_.remove(*first);
      first->waits = false;
      posted_.append(*first);
    }
    if (n != 0 && queue_.post(pieces, n) != n) {
      return;
    }
  }
}

void Dma::end(DmaTransfer& transfer) {
  (transfer.waits ? waiting_ : posted_).remove(transfer);
  transfer.waits = false;
  if (transfer.status == pmd::Status::kOk && transfer.moved_bytes != transfer.wanted_bytes) {
    transfer.status = pmd::Status::kFormat;  // the card reported success, but moved too few bytes
  }
  if (transfer.on_done != nullptr) {
    transfer.on_done(transfer);
  }
}

bool Dma::stop() {
  if (gone_ || queue_.stop() != 0) {
    return gone_;
  }
  gone_ = true;
  reap();
  end_all(pmd::Status::kFlushed);  // transfers that waited for room
  return true;
}

void Dma::card_gone() {
  gone_ = true;
  end_all(pmd::Status::kLinkDown);
}

void Dma::end_all(pmd::Status status) {
  for (Transfers* const transfers : {&posted_, &waiting_}) {
    while (DmaTransfer* const transfer = transfers->first()) {
      transfer->status = status;
      transfer->flying = 0;
      transfer->left_bytes = 0;
      end(*transfer);
    }
  }
}

}  // namespace rio::msg
