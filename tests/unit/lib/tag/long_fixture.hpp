/// @file
/// Contexts of this process that send and receive messages of any size.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/tag/long_messages.hpp"
#include "tests/unit/lib/msg/net.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::msg::test {

using Bytes = std::vector<uint8_t>;
inline constexpr uint64_t kLongest = 64u << 20;

using rio::test::pattern;

using tag::LongMessages;
using tag::RecvRequest;
using tag::SendRequest;
using tag::Unexpected;

/// A context with messages of any size, and its requests.
struct Talker {
  Talker(MessagePort& of, uint16_t id) : port(&of), number(id) { open(); }

  void open() {
    ASSERT_EQ(LongMessages::create(*port, number, &messages), 0);
    EXPECT_EQ(messages->accept(kLongest), 0);
  }
  [[nodiscard]] uint32_t dest_id() const { return port->dest_id(); }
  [[nodiscard]] uint32_t id() const { return number; }
  [[nodiscard]] tag::Address address() const { return messages->self(); }
  [[nodiscard]] MessageContext& context() const { return messages->context(); }
  void attend() const {
    if (messages->busy()) {
      messages->attend();
    }
  }
  /// @return as LongMessages::send(); the request is there if it is under way.
  int send(tag::Address to, const void* data, uint64_t bytes, void* user, SendRequest** out) {
    SendRequest* const request = sends.get();
    request->user = user;
    const int rc = messages->send(to, data, bytes, *request);
    return keep(rc, request, out);
  }
  /// @return as LongMessages::receive(), with the status if it is done.
  int receive(Unexpected& arrival, void* buffer, uint64_t capacity, void* user, int* status,
              RecvRequest** out) {
    RecvRequest* const request = receives.get();
    request->user = user;
    const int rc = messages->receive(arrival, buffer, capacity, *request);
    *status = request->status;
    return keep(rc, request, out);
  }
  void free(tag::Request& request) {
    if (request.is_receive) {
      receives.put(&static_cast<RecvRequest&>(request));
    } else {
      sends.put(&static_cast<SendRequest&>(request));
    }
  }

  MessagePort* port;
  uint16_t number;
  base::Slab<SendRequest> sends;
  base::Slab<RecvRequest> receives;
  std::unique_ptr<LongMessages> messages;

 private:
  template <class Kind>
  int keep(int rc, Kind* request, Kind** out) {
    if (rc == 0) {
      *out = request;
    } else {
      free(*request);
    }
    return rc;
  }
};

class LongNet : public Net {
 protected:
  Talker& talker(MessagePort& port, uint16_t id) {
    talkers_.push_back(std::make_unique<Talker>(port, id));
    return *talkers_.back();
  }
  template <class Done>
  [[nodiscard]] bool until(const Done& done) {
    return work_until([&] {
      for (const auto& talker : talkers_) {
        talker->attend();
      }
      return done();
    });
  }
  /// @return 1: the message is sent; 0: it is under way as *out; or an error.
  int send(Talker& from, uint32_t dest_id, uint32_t context, const Bytes& bytes,
           SendRequest** out) {
    return from.send(tag::address(dest_id, context), bytes.data(), bytes.size(), nullptr, out);
  }
  /// Waits for the end of a request and frees it. @return its status; 1: it does not end.
  int ended(Talker& of, tag::Request& request) {
    if (!until([&] { return of.messages->test(request); })) {
      return 1;
    }
    const int status = request.status;
    of.free(request);
    return status;
  }
  /// Sends, and waits until the memory is the caller's again. @return the status.
  int send_all(Talker& from, const Talker& to, const Bytes& bytes) {
    SendRequest* sent = nullptr;
    const int rc = send(from, to.dest_id(), to.id(), bytes, &sent);
    return rc != 0 ? std::min(rc, 0) : ended(from, *sent);
  }
  [[nodiscard]] bool wait_for(const Talker& to) {
    return until([&] { return to.messages->look(); });
  }
  /// Receives the next message of any size, into a buffer of so many bytes. @return its status.
  int receive(Talker& to, uint64_t capacity, Bytes* out) {
    if (!wait_for(to)) {
      return -ETIMEDOUT;
    }
    Unexpected* const arrival = to.messages->shown();
    if (arrival == nullptr) {
      const iovec& bytes = to.context().inbox().at(0);
      const auto* const at = static_cast<const uint8_t*>(bytes.iov_base);
      out->assign(at, at + bytes.iov_len);
      to.context().drop_oldest();
      return 0;
    }
    out->assign(std::min(capacity, arrival->length_bytes), 0xEE);
    int status = 0;
    RecvRequest* received = nullptr;
    const int rc = to.receive(*arrival, out->data(), out->size(), nullptr, &status, &received);
    return rc == 0 ? ended(to, *received) : rc < 0 ? rc : status;
  }
  void expect_next(Talker& to, const Bytes& bytes) {
    Bytes got;
    ASSERT_EQ(receive(to, kLongest, &got), 0) << bytes.size();
    ASSERT_TRUE(got == bytes) << bytes.size();
  }

  std::vector<std::unique_ptr<Talker>> talkers_;

 public:
  // Talkers use their ports, so they are destroyed first.
  ~LongNet() override { talkers_.clear(); }
};

}  // namespace rio::msg::test
