// Reads and writes that the card does.
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

/// The local buffers: those that are written from, or read into.
[[nodiscard]] Buffers& local_of(RemoteCall& call) {
  return call.verb == Verb::kWrite ? call.operands : call.result;
}

}  // namespace

/// A write always has an answer: without one, the caller would not hear that it was refused.
/// @return false: it goes by messages.
bool Remote::start_by_card(const RemoteCall& call, Operation& operation) {
  const bool plain = (call.verb == Verb::kWrite || call.verb == Verb::kRead) &&
                     (call.flags & (FI_FENCE | FI_REMOTE_CQ_DATA)) == 0;
  const Buffers& local = call.verb == Verb::kWrite ? call.operands : call.result;
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
  set_aside(call, operation);
  if (!card_.port().dma()->takes(at, transfer.va) || !card_.start(transfer)) {
    card_.put(operation.local);
    return false;
  }
  ++by_card_;
  ++under_way_;
  return true;
}

/// Copy the arguments that the operation needs after the call has returned.
void Remote::set_aside(const RemoteCall& call, Operation& operation) {
  operation.call = call;
  Buffers& local = local_of(operation.call);
  const uint8_t* const slot = operation.local.slot;
  if (call.verb == Verb::kWrite && slot != nullptr) {
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
    // The window has gone, or another is there now: the owner knows what is allowed.
    card_.forget(operation.to, operation.call.key);
    operation.status = static_cast<int>(-prepare(operation.call, operation));
    --under_way_;
    if (operation.status == 0) {
      begin(operation);
      return;
    }
    ++under_way_;
  } else {
    operation.status = error_of(status);
  }
  if (operation.status == 0 && operation.verb == Verb::kRead && operation.local.slot != nullptr) {
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
  operation->call = call;
  operation->status = static_cast<int>(-prepare(call, *operation));
  if (operation->status != 0) {
    operations_.put(operation);
    card_.on_reply(to, key, nullptr);
    return;
  }
  begin(*operation);
}

}  // namespace rio::ofi
