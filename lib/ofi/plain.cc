// Calls of messages without a tag.
#include "lib/msg/waiting.hpp"
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

ssize_t receive(fid_ep* ep, void* buffer, size_t bytes, void*, fi_addr_t source, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.plain().receive(source, 0, 0, buffer, bytes, context, self.bound().rx_flags);
}

ssize_t receive_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t source,
                       void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return count > kIovMax ? -FI_EINVAL
                         : self.plain().receive(source, 0, 0, Buffers{pieces, count}, context,
                                                self.bound().rx_flags);
}

ssize_t receive_message(fid_ep* ep, const fi_msg* msg, uint64_t flags) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  // These flags are for tagged messages only.
  if (msg->iov_count > kIovMax || (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) {
    return -FI_EINVAL;
  }
  const Buffers to = {msg->msg_iov, msg->iov_count};
  return self.plain().receive(msg->addr, 0, 0, to, msg->context, flags);
}

ssize_t send(fid_ep* ep, const void* data, size_t bytes, void*, fi_addr_t to, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.plain().send(to, 0, {}, data, bytes, context, self.bound().tx_flags);
}

ssize_t send_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t to,
                    void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return count > kIovMax
             ? -FI_EINVAL
             : self.plain().send(to, 0, {}, Buffers{pieces, count}, context, self.bound().tx_flags);
}

ssize_t send_message(fid_ep* ep, const fi_msg* msg, uint64_t flags) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  const bool immediate = (flags & FI_REMOTE_CQ_DATA) != 0;
  return msg->iov_count > kIovMax
             ? -FI_EINVAL
             : self.plain().send(msg->addr, 0, {immediate ? msg->data : 0, immediate},
                                 Buffers{msg->msg_iov, msg->iov_count}, msg->context, flags);
}

/// Sends a copy of the data without a completion: the user may reuse its memory at once.
ssize_t send_copied(FiEndpoint& self, const void* data, size_t bytes, tag::Immediate immediate,
                    fi_addr_t to) {
  const msg::Guard guard(self.domain().port());
  return bytes > kInjectBytes ? -FI_EMSGSIZE : self.plain().inject(to, 0, immediate, data, bytes);
}

ssize_t inject(fid_ep* ep, const void* data, size_t bytes, fi_addr_t to) {
  return send_copied(of<FiEndpoint>(ep), data, bytes, {}, to);
}

ssize_t send_data(fid_ep* ep, const void* data, size_t bytes, void*, uint64_t immediate,
                  fi_addr_t to, void* context) {
  FiEndpoint& self = of<FiEndpoint>(ep);
  const msg::Guard guard(self.domain().port());
  return self.plain().send(to, 0, {immediate, true}, data, bytes, context, self.bound().tx_flags);
}

ssize_t inject_data(fid_ep* ep, const void* data, size_t bytes, uint64_t immediate, fi_addr_t to) {
  return send_copied(of<FiEndpoint>(ep), data, bytes, {immediate, true}, to);
}

}  // namespace

fi_ops_msg* plain_ops() {
  static fi_ops_msg ops = {
      sizeof(fi_ops_msg), receive,      receive_pieces, receive_message, send,
      send_pieces,        send_message, inject,         send_data,       inject_data};
  return &ops;
}

}  // namespace rio::ofi
