/// @file
/// What the handles of riomsg.h are. Internal to lib/api.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/slab.hpp"
#include "lib/api/riomsg.h"
#include "lib/msg/close_large.hpp"
#include "lib/msg/long_messages.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/peer_news.hpp"
#include "lib/msg/sending.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/tag/tagged_context.hpp"

struct rio_msg_port {
  std::unique_ptr<rio::msg::MessagePort> port;
  uint32_t users = 0;  // contexts and endpoints that are open
  rio::msg::PeerNews news;
  uint64_t armed = 0;  // MessagePort::activity() of the last rio_msg_arm()
};

struct rio_msg_context {
  ~rio_msg_context() {
    if (messages != nullptr && !messages->close()) {
      rio::msg::leave_to_port(std::move(context));
    }
  }

  rio_msg_port* owner = nullptr;
  std::unique_ptr<rio::msg::MessageContext> context;
  std::unique_ptr<rio::msg::LongMessages> messages;  // destroyed before it
  uint32_t held = 0;                                 // messages that are not released
  rio::msg::LastRoute last;
  rio::msg::Retry retry;
  rio::msg::EndedSessions ended;  // that rio_msg_wait() has told
};

struct rio_tag {
  rio_msg_port* owner = nullptr;
  // Before the endpoint, which is destroyed first.
  rio::base::Slab<rio::tag::SendRequest> sends;
  rio::base::Slab<rio::tag::RecvRequest> receives;
  rio::tag::SendRequest* spare_send = nullptr;  // for the next one: most are done at once
  rio::tag::RecvRequest* spare_receive = nullptr;
  std::unique_ptr<rio::tag::TaggedContext> endpoint;
  uint64_t unexpected = 0;  // of its stats: as rio_tag_wait_any() told last
  uint64_t ended = 0;       // and of MessagePort::sessions_ended()
};

namespace rio::api {

/// No exception crosses the library's boundary, except the one by which glibc unwinds a cancelled
/// thread.
template <class Function>
[[nodiscard]] int no_throw(Function&& function) {
  static constexpr base::Boundary kLibrary = {
      "out of memory; free some, or open ports with fewer buffers",
      "unexpected exception in the message library; please report it"};
  return base::guard_cancellable(kLibrary, function);
}

/// @param bytes where `size_bytes` are to be read, or written. @return false: nowhere; logged.
[[nodiscard]] inline bool is_memory(const char* function, const void* bytes, uint64_t size_bytes) {
  if (bytes == nullptr && size_bytes != 0) [[unlikely]] {
    base::log_error("%s: %llu bytes at NULL; give their address", function,
                    static_cast<unsigned long long>(size_bytes));
    return false;
  }
  return true;
}

}  // namespace rio::api
