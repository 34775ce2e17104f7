// The receiver lets the card read data from where its sender shows it.
#include "base/clock.hpp"
#include "base/log.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/rail.hpp"
#include "lib/msg/receiver.hpp"

namespace rio::msg {

/// Let the card read the data from where the sender shows it. @return false: it cannot.
bool Receiver::begin_read(RecvTransfer& transfer, uint64_t shown_at) {
  Rail& rail = transfer.path->rail;
  if (shown_at == 0 || transfer.link->peer_rails != nullptr || rail.dma == nullptr ||
      !rail.dma->takes(shown_at, transfer.rest) || !MessagePort::reads_directly(*transfer.link)) {
    return false;
  }
  transfer.region = rail.memory.get(transfer.rest, transfer.rest_bytes);
  if (transfer.region == nullptr) {
    return false;
  }
  RecvTransfer::Read& read = transfer.read;
  read.rio_addr = shown_at;
  read.va = transfer.rest;
  read.run = run_of(*transfer.region, transfer.rest);
  read.left_bytes = transfer.rest_bytes;
  read.dest_id = transfer.path->dest_id;
  read.op = regs::DmaOp::kNread;
  read.on_done = [](DmaTransfer& done) {
    static_cast<RecvTransfer::Read&>(done).receiver->end_read(
        *static_cast<RecvTransfer*>(done.user));
  };
  read.user = &transfer;
  read.receiver = this;
  // Soon: the next requests may have come together with this one.
  read.is_on = rail.dma->start_soon(read);
  reads_ += read.is_on ? 1 : 0;
  return read.is_on;
}

/// The card has read the data, or could not: then the sender is granted to send it.
void Receiver::end_read(RecvTransfer& transfer) {
  transfer.read.is_on = false;
  --reads_;
  dead_reads_ -= transfer.dead ? 1 : 0;
  working_.add(transfer);
  if (transfer.dead || transfer.grant.state() != RecvGrant::State::kWaiting) {
    return;
  }
  if (transfer.read.status == pmd::Status::kOk) {
    works_.stats.placed += transfer.rest_bytes;
    transfer.grant.was_read();
    transfer.say_read = true;
  } else {
    wait(transfer);
  }
}

void Receiver::progress_reads() {
  Dma& dma = *works_.rails.first().dma;
  dma.progress();
  if (dead_reads_ != 0 && base::now_ns() > give_up_ns_) [[unlikely]] {
    give_up_ns_ += 2 * works_.config.response_timeout_ns();
    if (!dma.gone() && dma.stop()) {
      base::log_warning(
          "a peer is silent in the middle of a transfer: data is received by messages alone, which "
          "is slower, until the port is opened again");
    }
  }
}

/// The session of a transfer is over, whose data the card is reading. If the peer has gone, that
/// ends soon; if it is only stopped, it ends when the DMA queue is.
void Receiver::lose_read() {
  ++dead_reads_;
  give_up_ns_ = base::now_ns() + 2 * works_.config.response_timeout_ns();
}

bool Receiver::say_read(RecvTransfer& transfer) {
  const TotalBody body = {transfer.id, 0, transfer.grant.attempt(), 0, {}};
  transfer.say_read = !works_.control.say(*transfer.link, Kind::kDone, &body, sizeof(body));
  return !transfer.say_read;
}

}  // namespace rio::msg
