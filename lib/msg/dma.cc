#include "lib/msg/dma.hpp"

#include <algorithm>

namespace rio::msg {

Dma::Dma(Endpoint& endpoint)
    : queue_(endpoint.dma()),
      misaligned_(endpoint.caps().dma_addr_align - 1),
      length_bytes_max_(endpoint.caps().dma_bytes & ~(endpoint.caps().dma_addr_align - 1)) {}

bool Dma::start(DmaTransfer& transfer) {
  if (gone_) {
    return false;
  }
  transfer.status = pmd::Status::kOk;
  transfer.flying = 0;
  transfer.moved_bytes = 0;
  transfer.wanted_bytes = transfer.left_bytes;
  under_way_.append(transfer);
  transfer.waits =
      waiting_ != 0 || !post(transfer);  // transfers keep their order: queue behind waiting ones
  waiting_ += transfer.waits ? 1 : 0;
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

/// Post requests while there is room. @return whether the whole transfer is posted.
bool Dma::post(DmaTransfer& transfer) {
  pmd::DmaRequest pieces[kBurst];
  while (transfer.left_bytes != 0) {
    const uint16_t room = std::min(queue_.free_count(), kBurst);
    uint16_t n = 0;
    while (n < room && transfer.left_bytes != 0) {
      pieces[n++] = take_piece(transfer);
    }
    transfer.flying += n;
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
  reap();
  if (waiting_ != 0) {
    post_waiting();
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
  if (transfer.status != pmd::Status::kOk && transfer.waits) {
    transfer.left_bytes = 0;  // after an error the rest is not transferred
  }
  if (transfer.flying == 0 && transfer.left_bytes == 0) {
    end(transfer);
  }
}

void Dma::post_waiting() {
  for (DmaTransfer* transfer = under_way_.first(); transfer != nullptr && waiting_ != 0;) {
    DmaTransfer* const next = transfer->links.next;
    if (transfer->waits) {
      if (!post(*transfer)) {
        return;
      }
      transfer->waits = false;
      --waiting_;
    }
    transfer = next;
  }
}

void Dma::end(DmaTransfer& transfer) {
  waiting_ -= transfer.waits ? 1 : 0;
  transfer.waits = false;
  under_way_.remove(transfer);
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
  while (DmaTransfer* const transfer = under_way_.first()) {
    transfer->status = status;
    transfer->flying = 0;
    transfer->left_bytes = 0;
    end(*transfer);
  }
}

}  // namespace rio::msg
