// libfabric's calls for messages. Those with a tag have more arguments than those without.
#include "lib/ofi/fi_endpoint.hpp"

namespace rio::ofi {
namespace {

[[nodiscard]] constexpr Match match_of(const fi_msg&) {
  return {};
}
[[nodiscard]] constexpr Match match_of(const fi_msg_tagged& message) {
  return {message.tag, message.ignore};
}

template <class...>
struct Types {};

/// @tparam Message the struct with all arguments of a call. @tparam Tag, Ignore types of the
/// arguments that only tagged calls have.
template <MessageFlow& (FiEndpoint::*kFlow)(), class Message, class Tag, class Ignore>
struct MessageCalls;

template <MessageFlow& (FiEndpoint::*kFlow)(), class Message, class... Tag, class... Ignore>
struct MessageCalls<kFlow, Message, Types<Tag...>, Types<Ignore...>> {
  /// Calls `run` with the flow, under a Guard. @param count of the user's buffers.
  template <class Run>
  static ssize_t call(fid_ep* ep, size_t count, Run&& run) {
    FiEndpoint& self = of<FiEndpoint>(ep);
    const msg::Guard guard(self.domain().port());
    return count > kIovMax ? -FI_EINVAL : run((self.*kFlow)(), self.bound());
  }

  static ssize_t receive(fid_ep* ep, void* buffer, size_t bytes, void*, fi_addr_t source,
                         Tag... tag, Ignore... ignore, void* context) {
    return call(ep, 1, [&](MessageFlow& flow, const Bindings& bound) {
      return flow.receive(source, {tag..., ignore...}, buffer, bytes, context, bound.rx_flags);
    });
  }
  static ssize_t receive_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count,
                                fi_addr_t source, Tag... tag, Ignore... ignore, void* context) {
    return call(ep, count, [&](MessageFlow& flow, const Bindings& bound) {
      const Buffers to = {pieces, count};
      return flow.receive(source, {tag..., ignore...}, to, context, bound.rx_flags);
    });
  }
  static ssize_t receive_message(fid_ep* ep, const Message* msg, uint64_t flags) {
    constexpr uint64_t kOfTagged = FI_PEEK | FI_CLAIM | FI_DISCARD;
    return call(ep, msg->iov_count, [&](MessageFlow& flow, const Bindings&) -> ssize_t {
      const Buffers to = {msg->msg_iov, msg->iov_count};
      if (sizeof...(Tag) == 0 && (flags & kOfTagged) != 0) {
        return -FI_EINVAL;
      }
      if ((flags & FI_PEEK) != 0) {
        return flow.peek(msg->addr, match_of(*msg), msg->context, flags);
      }
      if ((flags & FI_CLAIM) != 0) {
        return flow.receive_claimed(to, msg->context, flags);
      }
      return (flags & FI_DISCARD) != 0
                 ? -FI_EINVAL  // FI_DISCARD needs FI_PEEK or FI_CLAIM to name a message
                 : flow.receive(msg->addr, match_of(*msg), to, msg->context, flags);
    });
  }

  static ssize_t send(fid_ep* ep, const void* data, size_t bytes, void*, fi_addr_t to, Tag... tag,
                      void* context) {
    return call(ep, 1, [&](MessageFlow& flow, const Bindings& bound) {
      return flow.send(to, Match{tag...}.tag, {}, data, bytes, context, bound.tx_flags);
    });
  }
  static ssize_t send_pieces(fid_ep* ep, const iovec* pieces, void**, size_t count, fi_addr_t to,
                             Tag... tag, void* context) {
    return call(ep, count, [&](MessageFlow& flow, const Bindings& bound) {
      const Buffers from = {pieces, count};
      return flow.send(to, Match{tag...}.tag, {}, from, context, bound.tx_flags);
    });
  }
  static ssize_t send_message(fid_ep* ep, const Message* msg, uint64_t flags) {
    return call(ep, msg->iov_count, [&](MessageFlow& flow, const Bindings&) {
      const bool immediate = (flags & FI_REMOTE_CQ_DATA) != 0;
      return flow.send(msg->addr, match_of(*msg).tag, {immediate ? msg->data : 0, immediate},
                       Buffers{msg->msg_iov, msg->iov_count}, msg->context, flags);
    });
  }
  static ssize_t send_data(fid_ep* ep, const void* data, size_t bytes, void*, uint64_t immediate,
                           fi_addr_t to, Tag... tag, void* context) {
    return call(ep, 1, [&](MessageFlow& flow, const Bindings& bound) {
      const tag::Immediate extra = {immediate, true};
      return flow.send(to, Match{tag...}.tag, extra, data, bytes, context, bound.tx_flags);
    });
  }

  /// Sends a copy of the data without a completion: the user may reuse its memory at once.
  [[gnu::noinline]] static ssize_t send_copied(fid_ep* ep, const void* data, size_t bytes,
                                               tag::Immediate immediate, fi_addr_t to,
                                               uint64_t bits) {
    return call(ep, 1, [&](MessageFlow& flow, const Bindings&) {
      return bytes > kInjectBytes ? -FI_EMSGSIZE : flow.inject(to, bits, immediate, data, bytes);
    });
  }
  static ssize_t inject(fid_ep* ep, const void* data, size_t bytes, fi_addr_t to, Tag... tag) {
    return send_copied(ep, data, bytes, {}, to, Match{tag...}.tag);
  }
  static ssize_t inject_data(fid_ep* ep, const void* data, size_t bytes, uint64_t immediate,
                             fi_addr_t to, Tag... tag) {
    return send_copied(ep, data, bytes, {immediate, true}, to, Match{tag...}.tag);
  }

  template <class Ops>
  static constexpr Ops kOps = {sizeof(Ops), receive,     receive_pieces, receive_message,
                               send,        send_pieces, send_message,   inject,
                               send_data,   inject_data};
};

using Plain = MessageCalls<&FiEndpoint::plain, fi_msg, Types<>, Types<>>;
using Tagged = MessageCalls<&FiEndpoint::tagged, fi_msg_tagged, Types<uint64_t>, Types<uint64_t>>;

}  // namespace

fi_ops_msg plain_ops = Plain::kOps<fi_ops_msg>;
fi_ops_tagged tagged_ops = Tagged::kOps<fi_ops_tagged>;

}  // namespace rio::ofi
