// Calls of atomic operations in the memory of peers.
#include <rdma/fi_atomic.h>

#include <span>

#include "lib/msg/waiting.hpp"
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

/// The numbers of one call, as pieces of memory.
struct Pieces {
  /// @param from at most kIovMax pieces are stored; Remote refuses a longer list.
  Pieces(std::span<const fi_ioc> from, fi_datatype type) : count(from.size()) {
    for (size_t i = 0; i < from.size() && i < kIovMax; ++i) {
      memory[i] = {from[i].addr, from[i].count * size_of(type)};
    }
  }
  /// The stored pieces; the count is the caller's, even beyond kIovMax.
  [[nodiscard]] Buffers buffers() const { return {memory.data(), count}; }
  [[nodiscard]] bool fits() const { return count <= kIovMax; }

  std::array<iovec, kIovMax> memory = {};
  size_t count;
};

/// Target, operation and completion of a call.
struct Target {
  fi_addr_t peer;
  uint64_t address;
  uint64_t key;
  fi_datatype type;
  fi_op op;
  uint64_t flags;
  void* context;
  uint64_t immediate = 0;
  bool silent = false;
};

[[nodiscard]] ssize_t start(fid_ep* ep, Verb verb, const Target& target,
                            std::span<const fi_ioc> operands, std::span<const fi_ioc> compare,
                            std::span<const fi_ioc> result) {
  const Pieces from(operands, target.type);
  const Pieces with(compare, target.type);
  const Pieces to(result, target.type);
  if (!from.fits() || !with.fits() || !to.fits()) {
    return -FI_EINVAL;
  }
  RemoteCall call = {verb, target.peer, target.address, target.key, target.flags, target.context};
  call.immediate = target.immediate;
  call.silent = target.silent;
  call.type = target.type;
  call.op = target.op;
  call.operands = from.buffers();
  call.compare = with.buffers();
  call.result = to.buffers();
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.remote().start(call);
}

[[nodiscard]] uint64_t flags_of(fid_ep* ep) {
  return of<FiEndpoint>(ep).bound().tx_flags;
}
[[nodiscard]] fi_ioc numbers(const void* at, size_t count) {
  return {const_cast<void*>(at), count};
}
/// Reads the target. @return false: the call does not name exactly one piece of the peer's memory.
[[nodiscard]] bool read_target(const fi_msg_atomic* msg, uint64_t flags, Target* out) {
  if (msg->rma_iov_count != 1) {
    return false;
  }
  *out = {msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->datatype, msg->op,
          flags,     msg->context,       msg->data};
  return true;
}

ssize_t update_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count, fi_addr_t peer,
                      uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
  return start(ep, Verb::kUpdate, {peer, address, key, type, op, flags_of(ep), context},
               {operands, count}, {}, {});
}
ssize_t update(fid_ep* ep, const void* operands, size_t count, void*, fi_addr_t peer,
               uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc all = numbers(operands, count);
  return update_pieces(ep, &all, nullptr, 1, peer, address, key, type, op, context);
}
ssize_t update_message(fid_ep* ep, const fi_msg_atomic* msg, uint64_t flags) {
  Target target;
  return read_target(msg, flags, &target)
             ? start(ep, Verb::kUpdate, target, {msg->msg_iov, msg->iov_count}, {}, {})
             : -FI_EINVAL;
}
ssize_t inject(fid_ep* ep, const void* operands, size_t count, fi_addr_t peer, uint64_t address,
               uint64_t key, fi_datatype type, fi_op op) {
  const fi_ioc all = numbers(operands, count);
  return start(ep, Verb::kUpdate, {peer, address, key, type, op, FI_INJECT, nullptr, 0, true},
               {&all, 1}, {}, {});
}

ssize_t fetch_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count, fi_ioc* result,
                     void**, size_t result_count, fi_addr_t peer, uint64_t address, uint64_t key,
                     fi_datatype type, fi_op op, void* context) {
  return start(ep, Verb::kFetch, {peer, address, key, type, op, flags_of(ep), context},
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
  Target target;
  return read_target(msg, flags, &target)
             ? start(ep, Verb::kFetch, target, {msg->msg_iov, msg->iov_count}, {},
                     {result, result_count})
             : -FI_EINVAL;
}

ssize_t compare_pieces(fid_ep* ep, const fi_ioc* operands, void**, size_t count,
                       const fi_ioc* compare, void**, size_t compare_count, fi_ioc* result, void**,
                       size_t result_count, fi_addr_t peer, uint64_t address, uint64_t key,
                       fi_datatype type, fi_op op, void* context) {
  return start(ep, Verb::kCompare, {peer, address, key, type, op, flags_of(ep), context},
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
  Target target;
  return read_target(msg, flags, &target)
             ? start(ep, Verb::kCompare, target, {msg->msg_iov, msg->iov_count},
                     {compare, compare_count}, {result, result_count})
             : -FI_EINVAL;
}

[[nodiscard]] int valid(Atomic kind, fi_datatype type, fi_op op, size_t* count) {
  if (!is_atomic(kind, type, op)) {
    return -FI_EOPNOTSUPP;
  }
  *count = kAtomicBytesMax / size_of(type);
  return 0;
}
int update_valid(fid_ep*, fi_datatype type, fi_op op, size_t* count) {
  return valid(Atomic::kUpdate, type, op, count);
}
int fetch_valid(fid_ep*, fi_datatype type, fi_op op, size_t* count) {
  return valid(Atomic::kFetch, type, op, count);
}
int compare_valid(fid_ep*, fi_datatype type, fi_op op, size_t* count) {
  return valid(Atomic::kCompare, type, op, count);
}

}  // namespace

fi_ops_atomic* atomic_ops() {
  static fi_ops_atomic ops = {sizeof(fi_ops_atomic), update,          update_pieces,
                              update_message,        inject,          fetch,
                              fetch_pieces,          fetch_message,   compare,
                              compare_pieces,        compare_message, update_valid,
                              fetch_valid,           compare_valid};
  return &ops;
}

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attr, uint64_t flags) {
  if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) {
    return -FI_EINVAL;
  }
  const Atomic kind = (flags & FI_COMPARE_ATOMIC) != 0 ? Atomic::kCompare
                      : (flags & FI_FETCH_ATOMIC) != 0 ? Atomic::kFetch
                                                       : Atomic::kUpdate;
  const int rc = valid(kind, type, op, &attr->count);
  if (rc == 0) {
    attr->size = size_of(type);
  }
  return rc;
}

}  // namespace rio::ofi
