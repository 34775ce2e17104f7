/// @file
/// riomsg.h for C++20 programs: handles that close themselves, and spans. Header only. The rules
/// there about threads, results and errors hold here; functions are those of the same name.
#pragma once

#include <riomsg.h>
#include <skifch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace rio::api {

/// Options with their size filled in.
[[nodiscard]] inline rio_msg_options msg_options() {
  rio_msg_options options{};
  options.size_bytes = sizeof(options);
  return options;
}

/// A handle that closes itself.
template <class Handle, auto kClose>
class Owner {
 public:
  /// Null: it is not open.
  [[nodiscard]] Handle* get() const { return handle_.get(); }

 protected:
  template <class Open>
  [[nodiscard]] int open_by(Open&& open) {
    Handle* handle = nullptr;
    const int rc = open(&handle);
    if (rc == 0) {
      handle_.reset(handle);
    }
    return rc;
  }

 private:
  struct Close {
    void operator()(Handle* handle) const { static_cast<void>(kClose(handle)); }
  };
  std::unique_ptr<Handle, Close> handle_;
};

/// A port. Contexts and endpoints are destroyed before it.
class Port : public Owner<rio_msg_port, rio_msg_close> {
 public:
  [[nodiscard]] static int open(const std::string& card, const rio_msg_options& options,
                                Port* out) {
    return out->open_by(
        [&](rio_msg_port** port) { return rio_msg_open(card.c_str(), &options, port); });
  }

  [[nodiscard]] uint32_t dest_id() const { return rio_msg_dest_id(get()); }
  int progress() { return rio_msg_progress(get()); }
  [[nodiscard]] int flush(uint32_t timeout_ms) { return rio_msg_flush(get(), timeout_ms); }
  [[nodiscard]] int next_peer_event(rio_msg_peer_event* out) {
    return rio_msg_next_peer_event(get(), out);
  }
  [[nodiscard]] bool peer_up(uint32_t dest_id) { return rio_msg_peer_up(get(), dest_id) == 1; }
  [[nodiscard]] rio_msg_stats stats() {
    rio_msg_stats stats{};
    static_cast<void>(rio_msg_get_stats(get(), &stats, sizeof(stats)));
    return stats;
  }
  /// Null: there is no such rail.
  [[nodiscard]] const char* rail_name(uint32_t rail) const {
    return rio_msg_rail_name(get(), rail);
  }
  [[nodiscard]] int rail_stats(uint32_t rail, rio_msg_rail_stats* out) {
    return rio_msg_get_rail_stats(get(), rail, out, sizeof(*out));
  }
  [[nodiscard]] int next_rail_event(rio_msg_rail_event* out) {
    return rio_msg_next_rail_event(get(), out);
  }
  [[nodiscard]] int fd() { return rio_msg_fd(get()); }
  [[nodiscard]] int arm(uint32_t* timeout_ms) { return rio_msg_arm(get(), timeout_ms); }
};

/// A message where it lies; released when this is destroyed, before its context. One that is_long()
/// has no bytes to show: take() it, or it is refused.
class Message {
 public:
  Message() = default;
  Message(rio_msg_context* context, const rio_msg_message& message)
      : context_(context), message_(message) {}
  ~Message() { release(); }
  Message(Message&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), message_(other.message_) {}
  Message& operator=(Message&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(message_, other.message_);
    return *this;
  }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(message_.data),
            message_.data == nullptr ? 0 : message_.size_bytes};
  }
  [[nodiscard]] rio_msg_address source() const { return message_.source; }
  [[nodiscard]] uint64_t size() const { return message_.size_bytes; }
  [[nodiscard]] bool is_long() const { return context_ != nullptr && message_.data == nullptr; }
  /// The outputs may be null. With -errno it is as it was, else it is used up.
  [[nodiscard]] int take(std::span<std::byte> buffer, void* user, rio_msg_request** request,
                         rio_msg_done* done) {
    const int rc =
        rio_msg_take(context_, &message_, buffer.data(), buffer.size(), user, request, done);
    if (rc >= 0) {
      context_ = nullptr;
      message_ = {};
    }
    return rc;
  }
  /// Earlier than by the destructor.
  void release() {
    if (context_ != nullptr) {
      rio_msg_release(std::exchange(context_, nullptr), &message_);
      message_ = {};
    }
  }

 private:
  rio_msg_context* context_ = nullptr;
  rio_msg_message message_{};
};

/// A context.
class Context : public Owner<rio_msg_context, rio_msg_context_close> {
 public:
  [[nodiscard]] static int open(Port& port, uint32_t number, Context* out) {
    return out->open_by([&](rio_msg_context** context) {
      return rio_msg_context_open(port.get(), number, context);
    });
  }

  [[nodiscard]] rio_msg_address self() const { return rio_msg_self(get()); }
  [[nodiscard]] int send(rio_msg_address to, std::span<const std::byte> bytes) {
    return rio_msg_send(get(), to, bytes.data(), bytes.size());
  }
  /// Gathered.
  [[nodiscard]] int send(rio_msg_address to, std::span<const iovec> pieces) {
    return rio_msg_sendv(get(), to, pieces.data(), static_cast<int>(pieces.size()));
  }
  /// @return 1: *out is the next message; 0, -errno: *out is as it was.
  [[nodiscard]] int receive(Message* out) {
    rio_msg_message message{};
    const int rc = rio_msg_receive(get(), &message);
    if (rc == 1) {
      *out = Message(get(), message);
    }
    return rc;
  }
  [[nodiscard]] int wait(uint32_t timeout_ms) { return rio_msg_wait(get(), timeout_ms); }

  [[nodiscard]] int accept_long(uint64_t size_bytes_max) {
    return rio_msg_accept_long(get(), size_bytes_max);
  }
  /// Any size. The outputs may be null.
  [[nodiscard]] int send_any(rio_msg_address to, std::span<const std::byte> bytes, void* user,
                             rio_msg_request** request, rio_msg_done* done) {
    return rio_msg_send_any(get(), to, bytes.data(), bytes.size(), user, request, done);
  }
  [[nodiscard]] int cancel(rio_msg_request* request) { return rio_msg_cancel(get(), request); }
  [[nodiscard]] bool next_done(rio_msg_done* done) { return rio_msg_next_done(get(), done) == 1; }
  [[nodiscard]] int wait_done(rio_msg_request* request, uint32_t timeout_ms, rio_msg_done* done) {
    return rio_msg_wait_done(get(), request, timeout_ms, done);
  }
};

/// An endpoint of tagged messages. The outputs may be null.
class Tag : public Owner<rio_tag, rio_tag_close> {
 public:
  [[nodiscard]] static int open(Port& port, uint32_t number, Tag* out) {
    return out->open_by([&](rio_tag** tag) { return rio_tag_open(port.get(), number, tag); });
  }

  [[nodiscard]] rio_msg_address self() const { return rio_tag_self(get()); }
  [[nodiscard]] int send(rio_msg_address to, uint64_t bits, std::span<const std::byte> bytes,
                         void* user, rio_tag_request** request, rio_tag_done* done) {
    return rio_tag_send(get(), to, bits, bytes.data(), bytes.size(), user, request, done);
  }
  [[nodiscard]] int send_sync(rio_msg_address to, uint64_t bits, std::span<const std::byte> bytes,
                              void* user, rio_tag_request** request, rio_tag_done* done) {
    return rio_tag_send_sync(get(), to, bits, bytes.data(), bytes.size(), user, request, done);
  }
  [[nodiscard]] int receive(const rio_tag_pattern& pattern, std::span<std::byte> buffer, void* user,
                            rio_tag_request** request, rio_tag_done* done) {
    return rio_tag_receive(get(), &pattern, buffer.data(), buffer.size(), user, request, done);
  }
  [[nodiscard]] bool probe(const rio_tag_pattern& pattern, rio_tag_info* info) {
    return rio_tag_probe(get(), &pattern, info) == 1;
  }
  [[nodiscard]] bool claim(const rio_tag_pattern& pattern, rio_tag_info* info,
                           rio_tag_message** message) {
    return rio_tag_claim(get(), &pattern, info, message) == 1;
  }
  [[nodiscard]] int receive_claimed(rio_tag_message* message, std::span<std::byte> buffer,
                                    void* user, rio_tag_request** request, rio_tag_done* done) {
    return rio_tag_receive_claimed(get(), message, buffer.data(), buffer.size(), user, request,
                                   done);
  }
  [[nodiscard]] int cancel(rio_tag_request* request) { return rio_tag_cancel(get(), request); }
  int progress() { return rio_tag_progress(get()); }
  [[nodiscard]] bool next_done(rio_tag_done* done) { return rio_tag_next_done(get(), done) == 1; }
  [[nodiscard]] bool test(rio_tag_request* request, rio_tag_done* done) {
    return rio_tag_test(get(), request, done) == 1;
  }
  [[nodiscard]] int wait(rio_tag_request* request, uint32_t timeout_ms, rio_tag_done* done) {
    return rio_tag_wait(get(), request, timeout_ms, done);
  }
  [[nodiscard]] int wait_any(uint32_t timeout_ms) { return rio_tag_wait_any(get(), timeout_ms); }
  [[nodiscard]] int flush(uint32_t timeout_ms) { return rio_tag_flush(get(), timeout_ms); }
};

/// Options with their size filled in.
[[nodiscard]] inline rio_barrier_options barrier_options() {
  rio_barrier_options options{};
  options.size_bytes = sizeof(options);
  return options;
}

/// A context for barriers. Its groups are destroyed before it.
class Barrier : public Owner<rio_barrier, rio_barrier_close> {
 public:
  [[nodiscard]] static int open(Port& port, uint32_t number, Barrier* out) {
    return out->open_by(
        [&](rio_barrier** barrier) { return rio_barrier_open(port.get(), number, barrier); });
  }

  [[nodiscard]] rio_msg_address self() const { return rio_barrier_self(get()); }
  int progress() { return rio_barrier_progress(get()); }
};

/// A member's part of a group.
class BarrierGroup : public Owner<rio_barrier_group, rio_barrier_destroy> {
 public:
  [[nodiscard]] static int create(Barrier& barrier, std::span<const rio_msg_address> members,
                                  uint32_t rank, const rio_barrier_options& options,
                                  BarrierGroup* out) {
    return out->open_by([&](rio_barrier_group** group) {
      return rio_barrier_create(barrier.get(), members.data(),
                                static_cast<uint32_t>(members.size()), rank, &options, group);
    });
  }

  [[nodiscard]] int wait_ready(uint32_t timeout_ms) {
    return rio_barrier_wait_ready(get(), timeout_ms);
  }
  [[nodiscard]] int arrive() { return rio_barrier_arrive(get()); }
  [[nodiscard]] int test() { return rio_barrier_test(get()); }
  [[nodiscard]] int wait(uint32_t timeout_ms) { return rio_barrier_wait(get(), timeout_ms); }
  [[nodiscard]] int run(uint32_t timeout_ms) { return rio_barrier_run(get(), timeout_ms); }
  [[nodiscard]] rio_barrier_failure failure() const {
    rio_barrier_failure failure{};
    rio_barrier_get_failure(get(), &failure);
    return failure;
  }
};

/// A channel of SkifCh [S4]: `Channel channel(SkifCh_Open("shm:job", 1, nullptr));`
struct CloseChannel {
  void operator()(SkifCh* channel) const { SkifCh_Close(channel); }
};
using Channel = std::unique_ptr<SkifCh, CloseChannel>;

}  // namespace rio::api
