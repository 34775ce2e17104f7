// libfabric's calls that read, write and update the memory of peers.
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <array>
#include <span>

#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] uint64_t flags_of(fid_ep* ep) {
  return of<FiEndpoint>(ep).bound().tx_flags;
}
[[nodiscard]] ssize_t start(fid_ep* ep, const RemoteCall& call) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.remote().start(call);
}

/// Starts a read or write. @param local the buffers to write from, or to read into.
[[nodiscard]] ssize_t start(fid_ep* ep, RemoteCall call, const Buffers& local) {
  (call.verb == Verb::kRead ? call.result : call.operands) = local;
  return start(ep, call);
}
template <Verb kVerb>
ssize_t move_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t peer,
                    uint64_t address, uint64_t key, void* context) {
  return start(ep, {kVerb, peer, address, key, flags_of(ep), context}, {pieces, count});
}
template <Verb kVerb, class Byte>
ssize_t move(fid_ep* ep, Byte* at, size_t bytes, void*, fi_addr_t peer, uint64_t address,
             uint64_t key, void* context) {
  const iovec piece = {const_cast<void*>(at), bytes};
  return move_pieces<kVerb>(ep, &piece, nullptr, 1, peer, address, key, context);
}
/// The call names one piece of the peer's memory, as long as the local buffers.
template <Verb kVerb>
ssize_t move_message(fid_ep* ep, const fi_msg_rma* msg, uint64_t flags) {
  const Buffers local = {msg->msg_iov, msg->iov_count};
  if (msg->rma_iov_count != 1 || local.count > kIovMax || msg->rma_iov->len != local.bytes()) {
    return -FI_EINVAL;
  }
  const fi_rma_iov& remote = *msg->rma_iov;
  return start(ep, {kVerb, msg->addr, remote.addr, remote.key, flags, msg->context, msg->data},
               local);
}
ssize_t write_data(fid_ep* ep, const void* data, size_t bytes, void*, uint64_t immediate,
                   fi_addr_t peer, uint64_t address, uint64_t key, void* context) {
  const iovec piece = {const_cast<void*>(data), bytes};
  const uint64_t flags = flags_of(ep) | FI_REMOTE_CQ_DATA;
  return start(ep, {Verb::kWrite, peer, address, key, flags, context, immediate}, {&piece, 1});
}
/// Writes a copy of the data, without a completion.
[[nodiscard]] ssize_t inject_copy(fid_ep* ep, const void* data, size_t bytes,
                                  const RemoteCall& call) {
  const iovec piece = {const_cast<void*>(data), bytes};
  return bytes > kInjectBytes ? -FI_EMSGSIZE : start(ep, call, {&piece, 1});
}
ssize_t inject(fid_ep* ep, const void* data, size_t bytes, fi_addr_t peer, uint64_t address,
               uint64_t key) {
  return inject_copy(ep, data, bytes,
                     {Verb::kWrite, peer, address, key, FI_INJECT, nullptr, 0, true});
}
ssize_t inject_data(fid_ep* ep, const void* data, size_t bytes, uint64_t immediate, fi_addr_t peer,
                    uint64_t address, uint64_t key) {
  constexpr uint64_t kFlags = FI_INJECT | FI_REMOTE_CQ_DATA;
  return inject_copy(ep, data, bytes,
                     {Verb::kWrite, peer, address, key, kFlags, nullptr, immediate, true});
}

/// The numbers of an atomic operation, as pieces of memory.
struct Pieces {
  /// @param from at most kIovMax pieces are stored; Remote refuses a longer list.
  Pieces(std::span<const fi_ioc> from, fi_datatype type) : buffers{memory.data(), from.size()} {
    for (size_t i = 0; i < from.size() && i < kIovMax; ++i) {
      memory[i] = {from[i].addr, from[i].count * size_of(type)};
    }
  }
  std::array<iovec, kIovMax> memory = {};
  Buffers buffers;  // its count is the caller's, even beyond kIovMax
};
using Numbers = std::span<const fi_ioc>;

/// Starts an atomic operation.
[[nodiscard]] ssize_t start(fid_ep* ep, RemoteCall call, Numbers operands, Numbers compare,
                            Numbers result) {
  if (std::max({operands.size(), compare.size(), result.size()}) > kIovMax) {
    return -FI_EINVAL;
  }
  const Pieces from(operands, call.type);
  const Pieces with(compare, call.type);
  const Pieces to(result, call.type);
  call.operands = from.buffers;
  call.compare = with.buffers;
  call.result = to.buffers;
  return start(ep, call);
}
/// Starts an atomic operation on the one piece of the peer's memory that the call names.
[[nodiscard]] ssize_t start(fid_ep* ep, Verb verb, const fi_msg_atomic* msg, uint64_t flags,
                            Numbers compare, Numbers result) {
  if (msg->rma_iov_count != 1) {
    return -FI_EINVAL;
  }
  const fi_rma_ioc& remote = *msg->rma_iov;
  return start(ep,
               {verb, msg->addr, remote.addr, remote.key, flags, msg->context, msg->data, false,
                msg->datatype, msg->op},
               {msg->msg_iov, msg->iov_count}, compare, result);
}
[[nodiscard]] fi_ioc numbers(const void* at, size_t count) {
  return {const_cast<void*>(at), count};
}

ssize_t compare_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count,
                       const fi_ioc* compare, void**, size_t compare_count, fi_ioc* result, void**,
                       size_t result_count, fi_addr_t peer, uint64_t address, uint64_t key,
                       fi_datatype type, fi_op op, void* context) {
  return start(ep, {Verb::kCompare, peer, address, key, flags_of(ep), context, 0, false, type, op},
               {operands, count}, {compare, compare_count}, {result, result_count});
}
ssize_t compare(fid_ep* ep, const void* operands, size_t count, void*, const void* with, void*,
                void* result, void*, fi_addr_t peer, uint64_t address, uint64_t key,
                fi_datatype type, fi_op op, void* context) {
  const fi_ioc from = numbers(operands, count);
  const fi_ioc other = numbers(with, count);
  fi_ioc to = numbers(result, count);
  return compare_pieces(ep, &from, nullptr, 1, &other, nullptr, 1, &to, nullptr, 1, peer, address,
                        key, type, op, context);
}
ssize_t compare_message(fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compare, void**,
                        size_t compare_count, fi_ioc* result, void**, size_t result_count,
                        uint64_t flags) {
  return start(ep, Verb::kCompare, msg, flags, {compare, compare_count}, {result, result_count});
}

ssize_t fetch_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count, fi_ioc* result,
                     void**, size_t result_count, fi_addr_t peer, uint64_t address, uint64_t key,
                     fi_datatype type, fi_op op, void* context) {
  return start(ep, {Verb::kFetch, peer, address, key, flags_of(ep), context, 0, false, type, op},
               {operands, count}, {}, {result, result_count});
}
ssize_t fetch(fid_ep* ep, const void* operands, size_t count, void*, void* result, void*,
              fi_addr_t peer, uint64_t address, uint64_t key, fi_datatype type, fi_op op,
              void* context) {
  const fi_ioc from = numbers(operands, count);
  fi_ioc to = numbers(result, count);
  return fetch_pieces(ep, &from, nullptr, 1, &to, nullptr, 1, peer, address, key, type, op,
                      context);
}
ssize_t fetch_message(fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* result, void**,
                      size_t result_count, uint64_t flags) {
  return start(ep, Verb::kFetch, msg, flags, {}, {result, result_count});
}

ssize_t update_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count, fi_addr_t peer,
                      uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
  return start(ep, {Verb::kUpdate, peer, address, key, flags_of(ep), context, 0, false, type, op},
               {operands, count}, {}, {});
}
ssize_t update(fid_ep* ep, const void* operands, size_t count, void*, fi_addr_t peer,
               uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc all = numbers(operands, count);
  return update_pieces(ep, &all, nullptr, 1, peer, address, key, type, op, context);
}
ssize_t update_message(fid_ep* ep, const fi_msg_atomic* msg, uint64_t flags) {
  return start(ep, Verb::kUpdate, msg, flags, {}, {});
}
ssize_t inject_update(fid_ep* ep, const void* operands, size_t count, fi_addr_t peer,
                      uint64_t address, uint64_t key, fi_datatype type, fi_op op) {
  const fi_ioc all = numbers(operands, count);
  return start(ep, {Verb::kUpdate, peer, address, key, FI_INJECT, nullptr, 0, true, type, op},
               {&all, 1}, {}, {});
}

template <Verb kVerb>
int valid(fid_ep*, fi_datatype type, fi_op op, size_t* count) {
  if (!is_atomic(kVerb, type, op)) {
    return -FI_EOPNOTSUPP;
  }
  *count = kAtomicBytesMax / size_of(type);
  return 0;
}

}  // namespace

fi_ops_rma rma_ops = {sizeof(fi_ops_rma),
                      move<Verb::kRead, void>,
                      move_pieces<Verb::kRead>,
                      move_message<Verb::kRead>,
                      move<Verb::kWrite, const void>,
                      move_pieces<Verb::kWrite>,
                      move_message<Verb::kWrite>,
                      inject,
                      write_data,
                      inject_data};

fi_ops_atomic atomic_ops = {sizeof(fi_ops_atomic),
                            update,
                            update_pieces,
                            update_message,
                            inject_update,
                            fetch,
                            fetch_pieces,
                            fetch_message,
                            compare,
                            compare_pieces,
                            compare_message,
                            valid<Verb::kUpdate>,
                            valid<Verb::kFetch>,
                            valid<Verb::kCompare>};

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attr, uint64_t flags) {
  if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) {
    return -FI_EINVAL;
  }
  const auto query = (flags & FI_COMPARE_ATOMIC) != 0 ? valid<Verb::kCompare>
                     : (flags & FI_FETCH_ATOMIC) != 0 ? valid<Verb::kFetch>
                                                      : valid<Verb::kUpdate>;
  const int rc = query(nullptr, type, op, &attr->count);
  attr->size = rc == 0 ? size_of(type) : attr->size;
  return rc;
}

}  // namespace rio::ofi
