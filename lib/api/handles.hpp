/// @file
/// The handles of riomsg.h, and what contexts and endpoints do alike. Internal to lib/api.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <tuple>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/slab.hpp"
#include "lib/api/riomsg.h"
#include "lib/barrier/group.hpp"
#include "lib/msg/caller_state.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/tag/long_messages.hpp"
#include "lib/tag/tagged_context.hpp"

struct rio_msg_port {
  std::unique_ptr<rio::msg::MessagePort> port;
  uint32_t users = 0;  // contexts and endpoints that are open
  rio::msg::PeerNews news;
  rio::msg::RailEvents rail_events;
  uint64_t armed = 0;  // MessagePort::activity() of the last rio_msg_arm()
};

namespace rio::api {

/// The requests of a context or an endpoint: those under way, and a spare one of each kind for the
/// next call, since most are done at once.
struct Requests {
  std::tuple<base::Slab<tag::SendRequest>, base::Slab<tag::RecvRequest>> slabs;
  std::tuple<tag::SendRequest*, tag::RecvRequest*> spare{};

  template <class Kind>
  [[nodiscard]] base::Slab<Kind>& slab() {
    return std::get<base::Slab<Kind>>(slabs);
  }
  void put(tag::Request& request) {
    if (request.is_receive) {
      slab<tag::RecvRequest>().put(&static_cast<tag::RecvRequest&>(request));
    } else {
      slab<tag::SendRequest>().put(&static_cast<tag::SendRequest&>(request));
    }
  }
};

/// The members of contexts and endpoints alike.
template <class OfEngine>
struct Opened {
  rio_msg_port* owner = nullptr;
  Requests requests;  // before the engine, which is destroyed first
  std::unique_ptr<OfEngine> engine;
};

}  // namespace rio::api

struct rio_msg_context : rio::api::Opened<rio::tag::LongMessages> {
  uint32_t held = 0;  // messages that are not released
  rio::msg::LastRoute last;
  rio::msg::Retry retry;
  uint64_t ended = 0;  // MessagePort::sessions_ended() that rio_msg_wait() has told
};

struct rio_barrier {
  rio_msg_port* owner = nullptr;
  std::unique_ptr<rio::barrier::BarrierContext> context;
  uint32_t groups = 0;  // that are not destroyed
};

struct rio_barrier_group {
  rio_barrier* owner = nullptr;
  std::unique_ptr<rio::barrier::Group> group;
};

struct rio_tag : rio::api::Opened<rio::tag::TaggedContext> {
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

/// no_throw(), under the Guard of a port.
template <class Function>
[[nodiscard]] int guarded(msg::MessagePort& port, Function&& function) {
  return no_throw([&] {
    const msg::Guard guard(port);
    return function();
  });
}

/// Read the caller's options, with 0 for members that its version of the struct does not have.
/// @param name of the struct. @param given null: all 0. @param out set only on success.
/// @return 0, -EINVAL, -E2BIG (members that this library does not know are not 0); logged.
template <class Options>
[[nodiscard]] int read_options(const char* name, const Options* given, Options* out) {
  Options options{};
  if (given != nullptr) {
    const uint32_t size = given->size_bytes;
    if (size < sizeof(uint32_t) || size % sizeof(uint32_t) != 0) {
      base::log_error("%s: size_bytes is %u; set it to sizeof(struct %s)", name, size, name);
      return -EINVAL;
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(given);
    if (size > sizeof(options) &&
        std::any_of(bytes + sizeof(options), bytes + size, [](uint8_t b) { return b != 0; })) {
      base::log_error("%s: %u bytes, this library knows %zu; install a newer libriomsg", name, size,
                      sizeof(options));
      return -E2BIG;
    }
    std::memcpy(&options, given, std::min<size_t>(size, sizeof(options)));
  }
  *out = options;
  return 0;
}

/// Copy counts to the caller's version of their struct, all of whose members are uint64_t.
/// @param name of the function. @param size_bytes of that version. @return 0, -EINVAL (logged).
template <class Counts>
[[nodiscard]] int write_counts(const char* name, const Counts& counts, Counts* out,
                               size_t size_bytes) {
  if (size_bytes == 0 || size_bytes % sizeof(uint64_t) != 0) {
    base::log_error("%s: size %zu; it is the sizeof of the struct, %zu here", name, size_bytes,
                    sizeof(counts));
    return -EINVAL;
  }
  std::memset(static_cast<void*>(out), 0, size_bytes);
  std::memcpy(static_cast<void*>(out), &counts, std::min(size_bytes, sizeof(counts)));
  return 0;
}

/// Where the bytes of a call are to be read, or written.
struct Memory {
  const char* function;
  const void* bytes;
  uint64_t size_bytes;

  /// @return false: they are nowhere; logged.
  [[nodiscard]] bool exists() const {
    if (bytes == nullptr && size_bytes != 0) [[unlikely]] {
      base::log_error("%s: %llu bytes at NULL; give their address", function,
                      static_cast<unsigned long long>(size_bytes));
      return false;
    }
    return true;
  }
};

/// Open a context or an endpoint. @param create gets it, and its number.
template <class Handle, class Create>
[[nodiscard]] int open(rio_msg_port* port, uint32_t number, Handle** out, Create&& create) {
  const base::NoCancel no_cancel;
  return guarded(*port->port, [&] {
    auto made = std::make_unique<Handle>();
    const int rc = create(*made, static_cast<uint16_t>(std::min(number, uint32_t{UINT16_MAX})));
    if (rc == 0) {
      made->owner = port;
      ++port->users;
      *out = made.release();
    }
    return rc;
  });
}

/// Close a context or an endpoint. @param handle null: does nothing. @return 0.
template <class Handle>
int close(Handle* handle) {
  const base::NoCancel no_cancel;
  return no_throw([&] {
    if (handle != nullptr) {
      const msg::Guard guard(*handle->owner->port);
      --handle->owner->users;
      delete handle;
    }
    return 0;
  });
}

/// Set those members of an outcome that differ between contexts and endpoints.
void describe(const tag::Request& request, rio_msg_done* done);
void describe(const tag::Request& request, rio_tag_done* done);

/// Report the outcome of a request. @param at_once it has no handle. @param done may be null.
template <class Done>
void tell(tag::Request& request, bool at_once, Done* done) {
  if (done != nullptr) {
    *done = {};
    done->user = request.user;
    done->request = at_once ? nullptr : reinterpret_cast<decltype(done->request)>(&request);
    done->status = request.status;
    describe(request, done);
  }
}

template <class Handle>
[[nodiscard]] tag::Request& request_of(Handle* handle) {
  return *reinterpret_cast<tag::Request*>(handle);
}

/// Begin something with a spare request. @param memory of the message. @param begin_it gets it, and
/// returns as the functions of riomsg.h that begin something.
template <class Kind, class OfEngine, class Handle, class Done, class Begin>
[[nodiscard]] int begin(Opened<OfEngine>& opened, const Memory& memory, void* user,
                        Handle** request, Done* done, Begin&& begin_it) {
  if (!memory.exists()) [[unlikely]] {
    return -EINVAL;
  }
  return guarded(opened.engine->port(), [&] {
    Kind*& spare = std::get<Kind*>(opened.requests.spare);
    if (spare == nullptr && (spare = opened.requests.template slab<Kind>().get()) == nullptr) {
      return -ENOMEM;
    }
    Kind& mine = *spare;
    mine.user = user;
    const int rc = begin_it(mine);
    if (rc == 1) {
      tell(mine, true, done);
    } else if (rc == 0) {
      spare = nullptr;
      if (request != nullptr) {
        *request = reinterpret_cast<Handle*>(static_cast<tag::Request*>(&mine));
      }
    }
    return rc;
  });
}

/// A request is done: report it and keep it as spare. @param request of Engine::next_done(); null:
/// none. @return 1, 0.
template <class Done>
[[nodiscard]] int end(Requests& requests, tag::Request* request, Done* done) {
  if (request == nullptr) {
    return 0;
  }
  tell(*request, false, done);
  requests.put(*request);
  return 1;
}

template <class OfEngine, class Handle>
[[nodiscard]] int cancel(Opened<OfEngine>& opened, Handle* handle) {
  tag::Engine& engine = *opened.engine;
  tag::Request& request = request_of(handle);
  return guarded(engine.port(), [&] {
    return request.is_receive ? engine.cancel(static_cast<tag::RecvRequest&>(request))
                              : engine.cancel(static_cast<tag::SendRequest&>(request));
  });
}

/// Wait for a request. @param work the caller's progress function. @return 1, 0, -ENODEV.
template <class OfEngine, class Handle, class Done, class Work>
[[nodiscard]] int wait_done(Opened<OfEngine>& opened, Handle* handle, uint32_t timeout_ms,
                            Done* done, Work&& work) {
  return no_throw([&] {
    tag::Engine& engine = *opened.engine;
    tag::Request& request = request_of(handle);
    const int rc = msg::wait(engine.port(), timeout_ms, work,
                             [&] { return request.stage == tag::Stage::kDone; });
    if (rc != 1) {
      return rc;
    }
    const msg::Guard guard(engine.port());
    static_cast<void>(engine.test(request));
    return end(opened.requests, &request, done);
  });
}

/// Flush in steps of a millisecond, so that other threads get the lock in between.
/// @param flush_for makes progress and flushes for so many milliseconds.
template <class FlushFor>
[[nodiscard]] int flush(msg::MessagePort& port, uint32_t timeout_ms, FlushFor&& flush_for) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const int rc = guarded(port, [&] { return flush_for(1); });
    if (rc != -ETIMEDOUT || Clock::now() >= end) {
      return rc;
    }
  }
}

}  // namespace rio::api
