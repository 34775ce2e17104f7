// Calls of messages with a tag.
#include "lib/msg/waiting.hpp"
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

ssize_t receive(fid_ep* ep, void* buffer, size_t bytes, void*, fi_addr_t source, uint64_t tag,
                uint64_t ignore, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.tagged().receive(source, tag, ignore, buffer, bytes, context, self.bound().rx_flags);
}

ssize_t receive_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t source,
                       uint64_t tag, uint64_t ignore, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return count > kIovMax ? -FI_EINVAL
                         : self.tagged().receive(source, tag, ignore, Buffers{pieces, count},
                                                 context, self.bound().rx_flags);
}

ssize_t receive_message(fid_ep* ep, const fi_msg_tagged* msg, uint64_t flags) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  if (msg->iov_count > kIovMax) {
    return -FI_EINVAL;
  }
  if ((flags & FI_PEEK) != 0) {
    return self.tagged().peek(msg->addr, msg->tag, msg->ignore, msg->context, flags);
  }
  const Buffers to = {msg->msg_iov, msg->iov_count};
  if ((flags & FI_CLAIM) != 0) {
    return self.tagged().receive_claimed(to, msg->context, flags);
  }
  return (flags & FI_DISCARD) != 0
             ? -FI_EINVAL  // FI_DISCARD needs FI_PEEK or FI_CLAIM to name a message
             : self.tagged().receive(msg->addr, msg->tag, msg->ignore, to, msg->context, flags);
}

ssize_t send(fid_ep* ep, const void* data, size_t bytes, void*, fi_addr_t to, uint64_t tag,
             void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.tagged().send(to, tag, {}, data, bytes, context, self.bound().tx_flags);
}

ssize_t send_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t to,
                    uint64_t tag, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return count > kIovMax ? -FI_EINVAL
                         : self.tagged().send(to, tag, {}, Buffers{pieces, count}, context,
                                              self.bound().tx_flags);
}

ssize_t send_message(fid_ep* ep, const fi_msg_tagged* msg, uint64_t flags) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  const bool immediate = (flags & FI_REMOTE_CQ_DATA) != 0;
  return msg->iov_count > kIovMax
             ? -FI_EINVAL
             : self.tagged().send(msg->addr, msg->tag, {immediate ? msg->data : 0, immediate},
                                  Buffers{msg->msg_iov, msg->iov_count}, msg->context, flags);
}

/// Sends a copy of the data without a completion: the user may reuse its memory at once.
ssize_t send_copied(FiEndpoint& self, const void* data, size_t bytes, tag::Immediate immediate,
                    fi_addr_t to, uint64_t tag) {
  const msg::Guard guard(self.domain().port());
  return bytes > kInjectBytes ? -FI_EMSGSIZE
                              : self.tagged().inject(to, tag, immediate, data, bytes);
}

ssize_t inject(fid_ep* ep, const void* data, size_t bytes, fi_addr_t to, uint64_t tag) {
  return send_copied(of<FiEndpoint>(ep), data, bytes, {}, to, tag);
}

ssize_t send_data(fid_ep* ep, const void* data, size_t bytes, void*, uint64_t immediate,
                  fi_addr_t to, uint64_t tag, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.tagged().send(to, tag, {immediate, true}, data, bytes, context,
                            self.bound().tx_flags);
}

ssize_t inject_data(fid_ep* ep, const void* data, size_t bytes, uint64_t immediate, fi_addr_t to,
                    uint64_t tag) {
  return send_copied(of<FiEndpoint>(ep), data, bytes, {immediate, true}, to, tag);
}

}  // namespace

fi_ops_tagged* tagged_ops() {
  static fi_ops_tagged ops = {
      sizeof(fi_ops_tagged), receive,      receive_pieces, receive_message, send,
      send_pieces,           send_message, inject,         send_data,       inject_data};
  return &ops;
}

}  // namespace rio::ofi
