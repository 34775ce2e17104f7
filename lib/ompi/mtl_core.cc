#include "lib/ompi/mtl_core.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/no_cancel.hpp"
#include "lib/job/process.hpp"
#include "lib/job/settings.hpp"
#include "lib/msg/crowd.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/tag/tagged_context.hpp"

namespace {

using rio::job::Name;
using rio::tag::Address;
using rio::tag::RecvRequest;
using rio::tag::Request;
using rio::tag::SendRequest;
using rio::tag::TaggedContext;

constexpr uint32_t kEndpoint = 0;

static_assert(RIO_MTL_COPIED_MOST <= rio::msg::kPartBytesMax - rio::tag::kBitsBytes);
static_assert(RIO_MTL_NAME_BYTES == sizeof(Name) && RIO_MTL_ANY_SOURCE == rio::tag::kAnySource);
static_assert(sizeof(rio_mtl_operation) >= std::max(sizeof(SendRequest), sizeof(RecvRequest)) &&
              alignof(rio_mtl_operation) >= std::max(alignof(SendRequest), alignof(RecvRequest)));

/// A send whose caller has its memory back, or a message that is sent once more, since its receiver
/// was started anew.
struct CopiedSend : SendRequest {
  std::unique_ptr<uint8_t[]> copy;
};

/// Most copies that wait to be sent: a sender that is ahead of all its peers waits then.
constexpr size_t kCopiesMax = 4096;

}  // namespace

struct rio_mtl {
  explicit rio_mtl(std::unique_ptr<rio::msg::MessagePort> opened,
                   const rio::job::Settings& settings)
      : port(opened.get()),
        has_threads(opened->config().threads != rio::msg::Threads::kOne),
        process(std::move(opened), rio::job::fabric_mark(rio::job::fabric_of(settings.card)),
                settings.barriers) {}

  TaggedContext* tag = nullptr;  // context's
  rio::msg::MessagePort* port;   // the process's
  bool has_threads;
  rio::job::Process process;
  std::unique_ptr<TaggedContext> context;
  std::unordered_map<uint32_t, std::vector<uint32_t>> owners;  // of a destID, the present one last
  std::unordered_set<CopiedSend*> copies;                      // under way
  std::mutex told_gone_lock;  // taken alone, or under the port's lock
  std::unordered_set<Address> told_gone;
};

namespace {

[[nodiscard]] std::string read_environment(const char* name) {
  std::string variable = "FI_RIO_";
  for (const char* at = name; *at != '\0'; ++at) {
    variable += *at == '_' ? '_' : static_cast<char>(*at - 'a' + 'A');
  }
  const char* const text = std::getenv(variable.c_str());
  return text == nullptr ? "" : text;
}

/// The log names a peer that has gone, once: launchers do not always say which process died first.
[[gnu::noinline]] void tell_failure(rio_mtl& self, Address peer, int status) {
  const bool gone = status == -ECONNRESET || status == -EHOSTUNREACH || status == -ETIMEDOUT;
  if (!gone || peer == rio::tag::kAnySource) {
    return;
  }
  const int is_new = rio::job::no_throw([&] {
    const std::lock_guard lock(self.told_gone_lock);
    return self.told_gone.insert(peer).second ? 1 : 0;
  });
  if (is_new != 0) {
    rio::base::log_error(
        "rio: the peer with destID %u %s", rio::tag::dest_id_of(peer),
        status == -ECONNRESET ? "has gone, or was started anew" : "does not answer");
  }
}

/// Make a request with a copy of a message. Call it, and end_copy(), under the port's lock. @return
/// null: no memory.
[[nodiscard]] CopiedSend* begin_copy(rio_mtl& self, const void* data, uint64_t bytes) {
  CopiedSend* made = nullptr;
  static_cast<void>(rio::job::no_throw([&] {
    auto request = std::make_unique<CopiedSend>();
    request->copy = std::make_unique<uint8_t[]>(std::max<uint64_t>(bytes, 1));
    if (bytes != 0) {
      std::memcpy(request->copy.get(), data, bytes);
    }
    request->data = request->copy.get();
    self.copies.insert(request.get());
    made = request.release();
    return 0;
  }));
  return made;
}
void end_copy(rio_mtl& self, CopiedSend* copy) {
  self.copies.erase(copy);
  delete copy;
}

/// Tell the component of an operation that has ended. @param request the caller's.
inline void tell(rio_mtl& self, Request& request) {
  if (request.is_receive) [[likely]] {
    const auto& receive = static_cast<const RecvRequest&>(request);
    if (receive.status != 0) [[unlikely]] {
      tell_failure(self, receive.source, receive.status);
    }
    mtl_rio_received(static_cast<rio_mtl_operation*>(receive.user), receive.status,
                     receive.message_bits, receive.length_bytes);
    return;
  }
  auto& send = static_cast<SendRequest&>(request);
  if (send.status != 0) [[unlikely]] {
    tell_failure(self, send.to, send.status);
  }
  if (send.user == nullptr) {
    const rio::msg::Guard guard(*self.port);
    end_copy(self, static_cast<CopiedSend*>(&send));
    return;
  }
  mtl_rio_sent(static_cast<rio_mtl_operation*>(send.user), send.status);
}

inline void work(rio_mtl& self) {
  self.port->progress();
  self.process.attend_barriers();
  self.tag->attend();
}

[[gnu::noinline]] int progress_threads(rio_mtl& self) {
  constexpr int kMost = 32;
  Request* done[kMost];
  int count = 0;
  {
    const rio::base::NoCancel no_cancel;
    const rio::msg::Guard guard(*self.port);
    work(self);
    while (count < kMost && (done[count] = self.tag->next_done()) != nullptr) {
      ++count;
    }
  }
  for (int i = 0; i < count; ++i) {
    tell(self, *done[i]);
  }
  return count;
}

/// After a receive was begun. @param rc 1: it is done; 0: under way; -errno.
[[nodiscard]] inline int begun(rio_mtl& self, int rc, RecvRequest& request) {
  if (rc == 1) {
    tell(self, request);
  }
  return std::min(rc, 0);
}

[[nodiscard]] inline RecvRequest& new_receive(rio_mtl_operation* operation) {
  auto& request = *new (operation->words) RecvRequest;
  request.user = operation;
  return request;
}

/// Send a message to the peer of the last one, if that needs no request.
[[nodiscard, gnu::always_inline]] inline bool send_at_once(rio_mtl& self, uint32_t to,
                                                           uint64_t bits, const void* data,
                                                           size_t bytes) {
  return self.tag->send_tiny(to, bits, {}, data, bytes) ||
         self.tag->send_whole(to, bits, {}, data, bytes);
}

/// Send a copy of a message by a request. @return as rio_mtl_send_copied().
[[gnu::noinline]] int send_copied_slow(rio_mtl& self, uint32_t to, uint64_t bits, const void* data,
                                       size_t bytes) {
  const rio::msg::Guard guard(*self.port);
  if (self.has_threads && send_at_once(self, to, bits, data, bytes)) {
    return 1;
  }
  if (self.copies.size() >= kCopiesMax) {
    return -EAGAIN;
  }
  CopiedSend* const request = begin_copy(self, data, bytes);
  if (request == nullptr) {
    return -ENOMEM;
  }
  // The caller may make no more progress. So it comes again while the peer, which may already hold
  // buffers for it, is new.
  request->may_wait = false;
  const int rc = self.tag->send(to, bits, request->data, bytes, *request);
  if (rc == 0) {
    return 1;  // tell() ends it
  }
  end_copy(self, request);
  if (rc < 0 && rc != -EAGAIN) {
    tell_failure(self, to, rc);
  }
  return rc;
}

/// A send that takes more than one short message, or a lock. @return as rio_mtl_send().
[[gnu::noinline]] int send_slow(rio_mtl& self, uint32_t to, uint64_t bits,
                                std::span<const uint8_t> data, bool sync,
                                rio_mtl_operation* operation) {
  const rio::msg::Guard guard(*self.port);
  auto& request = *new (operation->words) SendRequest;
  request.user = operation;
  const int rc = sync ? self.tag->send_sync(to, bits, data.data(), data.size(), request)
                      : self.tag->send(to, bits, data.data(), data.size(), request);
  if (rc < 0) {
    tell_failure(self, to, rc);
  }
  return rc;
}

void fill(const rio::tag::MessageInfo& info, rio_mtl_message* out) {
  out->bits = info.bits;
  out->length_bytes = info.length_bytes;
}

/// Events of peers that have gone are handled before a new peer may have their destID.
void hear(rio_mtl& self) {
  constexpr uint32_t kLooksMax = 64;
  for (uint32_t looks = 0; self.port->progress() != 0 && looks < kLooksMax;) {
    ++looks;
  }
  work(self);
}

/// The name of a process shows that it has this destID now. @return 0; -ECONNRESET: a process named
/// later has it.
[[nodiscard]] int take_place(rio_mtl& self, uint32_t owner, uint32_t dest_id) {
  std::vector<uint32_t>& owners = self.owners[dest_id];
  const auto known = std::find(owners.begin(), owners.end(), owner);
  if (known != owners.end()) {
    return known + 1 == owners.end() ? 0 : -ECONNRESET;
  }
  const rio::msg::Link* const link = self.port->known_link(dest_id);
  const bool is_successor =
      !owners.empty() || (link != nullptr && link->instance != 0 && link->instance != owner);
  owners.push_back(owner);
  if (is_successor) {
    self.port->meet_instance(dest_id, owner);
    self.tag->forget_former(dest_id);
    const std::lock_guard lock(self.told_gone_lock);
    std::erase_if(self.told_gone,
                  [=](Address peer) { return rio::tag::dest_id_of(peer) == dest_id; });
  }
  return 0;
}

[[nodiscard]] int open(bool threads, rio_mtl** out) {
  rio::job::Settings settings;
  if (const int rc = rio::job::read_settings(read_environment, &settings); rc != 0) {
    return rc;
  }
  rio::msg::PortConfig config;
  config.card = settings.card;
  config.queue_pair = settings.queue_pair;
  config.dest_id = settings.dest_id;
  config.threads = threads ? rio::msg::Threads::kPerContext : rio::msg::Threads::kOne;
  std::unique_ptr<rio::msg::MessagePort> port;
  if (const int rc = rio::msg::MessagePort::open(config, &port); rc != 0) {
    return rc;
  }
  auto made = std::make_unique<rio_mtl>(std::move(port), settings);
  rio::tag::TaggedConfig tagged;
  tagged.eager_bytes = settings.border;
  tagged.send_again = [self = made.get()](const void* data, uint64_t bytes) -> SendRequest* {
    return begin_copy(*self, data, bytes);
  };
  const int rc = TaggedContext::create(
      *made->port, kEndpoint * rio::job::kContextsOfEndpoint + rio::job::kTaggedContext, tagged,
      &made->context);
  if (rc == 0) {
    made->tag = made->context.get();
    *out = made.release();
  }
  return rc;
}

}  // namespace

int rio_mtl_open(bool threads, rio_mtl** out) {
  return rio::job::no_throw([=] { return open(threads, out); });
}

void rio_mtl_close(rio_mtl* self) {
  const rio::base::NoCancel no_cancel;
  static_cast<void>(self->tag->flush(1000));
  self->context.reset();
  for (CopiedSend* const copy : self->copies) {
    delete copy;
  }
  delete self;
}

bool rio_mtl_name(rio_mtl* self, void* out) {
  Name name{};
  const bool is_made = self->process.make_name(kEndpoint, &name);
  std::memcpy(out, &name, sizeof(name));
  return is_made;
}

int rio_mtl_meet(rio_mtl* self, const void* name, uint32_t* out) {
  return rio::job::no_throw([=] {
    const rio::msg::Guard guard(*self->port);
    Name read{};
    uint32_t dest_id = 0;
    int rc = rio::job::read_name(name, self->process.fabric(), &read);
    if (rc == -EHOSTUNREACH) {
      rio::base::log_error(
          "rio: a peer is on another fabric; start all with the same FI_RIO_FABRIC or FI_RIO_CARD");
    }
    hear(*self);
    rc = rc == 0 ? self->process.reach(read, &dest_id) : rc;
    rc = rc == 0 ? take_place(*self, read.owner, dest_id) : rc;
    if (rc == 0) {
      *out = rio::job::tagged_address(read, dest_id);
    }
    return rc;
  });
}

const rio_fi_barrier_calls* rio_mtl_barriers() {
  return rio_fi_barrier(RIO_FI_BARRIER_VERSION);
}

int rio_mtl_send(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes,
                 rio_mtl_operation* operation) {
  if (!self->has_threads && send_at_once(*self, to, bits, data, bytes)) [[likely]] {
    return 1;
  }
  return send_slow(*self, to, bits, {static_cast<const uint8_t*>(data), bytes}, false, operation);
}

bool rio_mtl_send_now(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes) {
  return !self->has_threads && send_at_once(*self, to, bits, data, bytes);
}

int rio_mtl_send_copied(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes) {
  if (!self->has_threads && send_at_once(*self, to, bits, data, bytes)) [[likely]] {
    return 1;
  }
  return send_copied_slow(*self, to, bits, data, bytes);
}

int rio_mtl_send_sync(rio_mtl* self, uint32_t to, uint64_t bits, const void* data, size_t bytes,
                      rio_mtl_operation* operation) {
  return send_slow(*self, to, bits, {static_cast<const uint8_t*>(data), bytes}, true, operation);
}

int rio_mtl_receive(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore, void* buffer,
                    size_t capacity, rio_mtl_operation* operation) {
  RecvRequest& request = new_receive(operation);
  int rc = 0;
  {
    const rio::msg::Guard guard(*self->port);
    rc = self->tag->receive({bits, ignore, source}, buffer, capacity, request);
  }
  return begun(*self, rc, request);
}

bool rio_mtl_probe(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore,
                   rio_mtl_message* out) {
  const rio::msg::Guard guard(*self->port);
  rio::tag::MessageInfo info{};
  const bool is_found = self->tag->probe({bits, ignore, source}, &info);
  fill(info, out);
  return is_found;
}

void* rio_mtl_claim(rio_mtl* self, uint32_t source, uint64_t bits, uint64_t ignore,
                    rio_mtl_message* out) {
  const rio::msg::Guard guard(*self->port);
  rio::tag::MessageInfo info{};
  rio::tag::Message* const message = self->tag->claim({bits, ignore, source}, &info);
  fill(info, out);
  return message;
}

int rio_mtl_receive_claimed(rio_mtl* self, void* claimed, void* buffer, size_t capacity,
                            rio_mtl_operation* operation) {
  RecvRequest& request = new_receive(operation);
  int rc = 0;
  {
    const rio::msg::Guard guard(*self->port);
    rc = self->tag->receive_claimed(*static_cast<rio::tag::Message*>(claimed), buffer, capacity,
                                    request);
  }
  return begun(*self, rc, request);
}

bool rio_mtl_cancel(rio_mtl* self, rio_mtl_operation* receive) {
  const rio::msg::Guard guard(*self->port);
  RecvRequest& request = *std::launder(reinterpret_cast<RecvRequest*>(receive->words));
  // A receive that has matched a message completes: the sender may know of the match.
  return request.stage == rio::tag::Stage::kWaiting && self->tag->cancel(request) == 0;
}

void rio_mtl_tell_crowd(bool is_crowd) {
  rio::msg::is_crowd_told.store(is_crowd, std::memory_order_relaxed);  // pairs with is_crowd()
}

int rio_mtl_progress(rio_mtl* self) {
  if (self->has_threads) [[unlikely]] {
    return progress_threads(*self);
  }
  work(*self);
  int count = 0;
  while (Request* const request = self->tag->next_done()) {
    tell(*self, *request);
    ++count;
  }
  return count;
}
