// Reads and writes of peers' memory by the card.
#include <algorithm>

#include "lib/ofi/remote.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] int error_of(pmd::Status status) {
  switch (status) {
    case pmd::Status::kOk:
      return 0;
    case pmd::Status::kResponseTimeout:
    case pmd::Status::kRetryExpired:
      return FI_ETIMEDOUT;
    case pmd::Status::kLinkDown:
      return FI_EHOSTUNREACH;
    case pmd::Status::kHostReadFailed:
      return FI_EFAULT;
    default:
      return FI_EIO;
  }
}

}  // namespace

/// Every write asks for an answer: without one, the caller would not learn that it was refused.
/// @return false: it goes by messages.
bool Remote::start_by_card(const RemoteCall& call, Operation& operation) {
  const bool plain = (call.verb == Verb::kWrite || call.verb == Verb::kRead) &&
                     (call.flags & (FI_FENCE | FI_REMOTE_CQ_DATA)) == 0;
  const Buffers local = operation.buffers();
  const uint64_t bytes = local.bytes();
  if (!plain || !card_.may(operation.to, bytes)) {
    return false;
  }
  const uint64_t right = call.verb == Verb::kWrite ? FI_REMOTE_WRITE : FI_REMOTE_READ;
  bool asks = false;
  const uint64_t at = card_.find(operation.to, call.key, call.address, bytes, right, &asks);
  if (asks) {
    ask_window(operation.to, call.key);
  }
  const bool must_copy = local.count > 1 || (call.flags & FI_INJECT) != 0;
  if (at == 0 || !card_.reach(local.pieces[0].iov_base, bytes, must_copy, &operation.local)) {
    return false;
  }
  msg::DmaTransfer& transfer = operation.transfer;
  transfer.rio_addr = at;
  transfer.va = operation.local.at;
  transfer.run = operation.local.run;
  transfer.left_bytes = bytes;
  transfer.dest_id = tag::dest_id_of(operation.to);
  transfer.op = call.verb == Verb::kWrite ? regs::DmaOp::kNwriteR : regs::DmaOp::kNread;
  transfer.user = &operation;
  transfer.on_done = [](msg::DmaTransfer& done) {
    auto& its = *static_cast<Operation*>(done.user);
    its.remote->card_is_done(its);
  };
  set_aside(operation);
  if (!card_.port().dma()->takes(at, transfer.va) || !card_.start(transfer)) {
    card_.put(operation.local);
    operation.call = call;
    return false;
  }
  ++by_card_;
  ++under_way_;
  return true;
}

/// Copy the arguments that the operation needs after the call has returned.
void Remote::set_aside(Operation& operation) {
  Buffers& local = operation.buffers();
  if (operation.call.verb == Verb::kWrite && operation.local.slot != nullptr) {
    local.gather(operation.local.slot);
    operation.own_pieces[0] = {operation.local.slot, local.bytes()};
    local.count = 1;
  } else {
    std::copy_n(local.pieces, local.count, operation.own_pieces.begin());
  }
  local.pieces = operation.own_pieces.data();
}

void Remote::card_is_done(Operation& operation) {
  --by_card_;
  ++done_by_card_;
  if (closing_) {
    return;
  }
  const pmd::Status status = operation.transfer.status;
  if (status == pmd::Status::kErrorResponse || status == pmd::Status::kFlushed) {
    // The window has gone, or another one is there now: ask the owner again.
    card_.forget(operation.to, operation.call.key);
    operation.status = static_cast<int>(-prepare(operation));
    --under_way_;
    if (operation.status == 0) {
      begin(operation);
      return;
    }
    ++under_way_;
  } else {
    operation.status = error_of(status);
  }
  if (operation.status == 0 && operation.call.verb == Verb::kRead &&
      operation.local.slot != nullptr) {
    const Buffers& result = operation.call.result;
    result.scatter(operation.local.slot, result.bytes());
  }
  end(operation);
}

void Remote::ask_window(tag::Address to, uint64_t key) {
  Operation* const operation = operations_.get();
  if (operation == nullptr) {
    card_.on_reply(to, key, nullptr);
    return;
  }
  operation->to = to;
  const iovec reply = {&operation->window, sizeof(operation->window)};
  RemoteCall call = {Verb::kWindow, 0, 0, key, 0, nullptr};
  call.result = {&reply, 1};
  adopt(call, *operation);
  operation->status = static_cast<int>(-prepare(*operation));
  if (operation->status != 0) {
    operations_.put(operation);
    card_.on_reply(to, key, nullptr);
    return;
  }
  begin(*operation);
}

}  // namespace rio::ofi
