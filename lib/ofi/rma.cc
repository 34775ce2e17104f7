// Calls that read and write the memory of peers.
#include "lib/msg/waiting.hpp"
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] ssize_t start(fid_ep* ep, const RemoteCall& call) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.remote().start(call);
}
[[nodiscard]] uint64_t flags_of(fid_ep* ep) {
  return of<FiEndpoint>(ep).bound().tx_flags;
}

ssize_t read_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t peer,
                    uint64_t address, uint64_t key, void* context) {
  RemoteCall call = {Verb::kRead, peer, address, key, flags_of(ep), context};
  call.result = {pieces, count};
  return start(ep, call);
}
ssize_t read(fid_ep* ep, void* buffer, size_t bytes, void*, fi_addr_t peer, uint64_t address,
             uint64_t key, void* context) {
  const iovec piece = {buffer, bytes};
  return read_pieces(ep, &piece, nullptr, 1, peer, address, key, context);
}

/// Starts a call given as a message: one piece of the peer's memory, as long as the local buffers.
[[nodiscard]] ssize_t start(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags, Verb verb) {
  const Buffers local = {msg->msg_iov, msg->iov_count};
  if (msg->rma_iov_count != 1 || local.count > kIovMax || msg->rma_iov->len != local.bytes()) {
    return -FI_EINVAL;
  }
  RemoteCall call = {verb, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, flags, msg->context};
  call.immediate = msg->data;
  (verb == Verb::kRead ? call.result : call.operands) = local;
  return start(ep, call);
}
ssize_t read_message(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
  return start(ep, msg, flags, Verb::kRead);
}
ssize_t write_message(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
  return start(ep, msg, flags, Verb::kWrite);
}

ssize_t write_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t peer,
                     uint64_t address, uint64_t key, void* context) {
  RemoteCall call = {Verb::kWrite, peer, address, key, flags_of(ep), context};
  call.operands = {pieces, count};
  return start(ep, call);
}
ssize_t write(fid_ep* ep, const void* data, size_t bytes, void*, fi_addr_t peer, uint64_t address,
              uint64_t key, void* context) {
  const iovec piece = {const_cast<void*>(data), bytes};
  return write_pieces(ep, &piece, nullptr, 1, peer, address, key, context);
}
ssize_t write_data(fid_ep* ep, const void* data, size_t bytes, void*, uint64_t immediate,
                   fi_addr_t peer, uint64_t address, uint64_t key, void* context) {
  const iovec piece = {const_cast<void*>(data), bytes};
  RemoteCall call = {Verb::kWrite, peer, address, key, flags_of(ep) | FI_REMOTE_CQ_DATA, context};
  call.operands = {&piece, 1};
  call.immediate = immediate;
  return start(ep, call);
}

/// Writes a copy of the data, without a completion.
[[nodiscard]] ssize_t inject_copy(fid_ep* ep, const void* data, size_t bytes, fi_addr_t peer,
                                  uint64_t address, uint64_t key, uint64_t flags,
                                  uint64_t immediate) {
  if (bytes > kInjectBytes) {
    return -FI_EMSGSIZE;
  }
  const iovec piece = {const_cast<void*>(data), bytes};
  RemoteCall call = {Verb::kWrite, peer, address, key, flags | FI_INJECT, nullptr};
  call.operands = {&piece, 1};
  call.immediate = immediate;
  call.silent = true;
  return start(ep, call);
}
ssize_t inject(fid_ep* ep, const void* data, size_t bytes, fi_addr_t peer, uint64_t address,
               uint64_t key) {
  return inject_copy(ep, data, bytes, peer, address, key, 0, 0);
}
ssize_t inject_data(fid_ep* ep, const void* data, size_t bytes, uint64_t immediate, fi_addr_t peer,
                    uint64_t address, uint64_t key) {
  return inject_copy(ep, data, bytes, peer, address, key, FI_REMOTE_CQ_DATA, immediate);
}

}  // namespace

fi_ops_rma* rma_ops() {
  static fi_ops_rma ops = {
      sizeof(fi_ops_rma), read,          read_pieces, read_message, write,
      write_pieces,       write_message, inject,      write_data,   inject_data};
  return &ops;
}

}  // namespace rio::ofi
