/// @file
/// Ports of one process on one wire, for tests; and a card without a port, which sends any bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"
#include "pmd/api/riopmd.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::msg::test {

using std::chrono::milliseconds;

/// A context of a port, and the messages that arrived for it.
struct Member {
  std::unique_ptr<MessageContext> context;
  MessagePort* port = nullptr;

  [[nodiscard]] Inbox const& inbox() const { return context->inbox(); }
  [[nodiscard]] std::string text(uint32_t i = 0) const {
    const iovec& bytes = inbox().at(i);
    return {static_cast<const char*>(bytes.iov_base), bytes.iov_len};
  }
  /// Takes the oldest message, and gives its buffer back.
  [[nodiscard]] std::string take() const {
    std::string oldest = text();
    context->drop_oldest();
    return oldest;
  }
};

/// Messages as a raw card writes and reads them: header and body, any bytes.
struct Wire {
  static std::vector<uint8_t> message(uint32_t key, uint32_t number, uint32_t to, uint32_t from,
                                      uint32_t credit, Kind kind, const std::string& text = "",
                                      uint32_t padding = 8) {
    const auto bytes = static_cast<uint32_t>(text.size());
    const HeaderWords words = {
        HeaderWords::key_and_number(key, number),
        HeaderWords::rest_of(to, from, credit, kind, padding < 8 ? padding : padding_of(bytes))};
    std::vector<uint8_t> all(kHeaderBytes + bytes);
    std::memcpy(all.data(), &words, sizeof(words));
    std::copy(text.begin(), text.end(), all.begin() + kHeaderBytes);
    return all;
  }
  static std::vector<uint8_t> session(Kind kind, uint32_t key, uint32_t session, uint32_t peer,
                                      uint32_t first = 0, uint32_t magic = kMagic) {
    constexpr uint32_t kInstance = 1;
    const SessionBody body = {magic, session, peer, first, kInstance, 0};
    return message(key, 0, 0, 0, 0, kind, {reinterpret_cast<const char*>(&body), sizeof(body)});
  }
};

/// A card without a port.
class Raw {
 public:
  static constexpr uint32_t kBuffers = 128;

  Raw(const std::string& card, uint32_t dest_id) {
    EndpointConfig config;
    config.dest_id = dest_id;
    config.message_buffers = 2 * kBuffers;
    EXPECT_EQ(Endpoint::open(card, config, &endpoint_), 0);
    uint32_t index[kBuffers];
    EXPECT_EQ(endpoint_->buffers()->get(index, kBuffers), kBuffers);
    for (const uint32_t i : index) {
      give(i);
    }
  }

  [[nodiscard]] uint32_t dest_id() const { return endpoint_->dest_id(); }

  /// @return false: the ring is full.
  bool send(uint32_t dest_id, const std::vector<uint8_t>& bytes, uint8_t mailbox = 0) {
    uint32_t index = 0;
    reap();
    if (endpoint_->buffers()->get(&index, 1) == 0) {
      return false;
    }
    std::copy(bytes.begin(), bytes.end(), endpoint_->buffers()->va(index));
    pmd::TxMessage message{};
    message.iova = endpoint_->buffers()->iova(index);
    message.cookie = index;
    message.dest_id = dest_id;
    message.length_bytes = static_cast<uint16_t>(bytes.size());
    message.mbox = mailbox;
    const bool sent = endpoint_->tx().burst(&message, 1) == 1;
    if (!sent) {
      endpoint_->buffers()->put(&index, 1);
    }
    return sent;
  }
  void reap() {
    pmd::TxDone done{};
    while (endpoint_->tx().reap(&done, 1) == 1) {
      const auto index = static_cast<uint32_t>(done.cookie);
      endpoint_->buffers()->put(&index, 1);
    }
  }
  /// @return the number of messages without a completion.
  [[nodiscard]] uint32_t outstanding() {
    reap();
    return endpoint_->tx().outstanding();
  }
  /// @return the next received message; empty: there is none.
  std::vector<uint8_t> receive() {
    pmd::RxMessage message{};
    if (endpoint_->shared().burst(&message, 1) == 0) {
      return {};
    }
    const auto index = static_cast<uint32_t>(message.cookie);
    const uint8_t* const va = endpoint_->buffers()->va(index);
    std::vector<uint8_t> bytes(va, va + message.length_bytes);
    give(index);
    mailbox_ = message.mbox;
    return bytes;
  }
  /// @return the mailbox of the last received message.
  [[nodiscard]] uint32_t mailbox() const { return mailbox_; }

 private:
  void give(uint32_t index) {
    const pmd::RxBuffer buffer{endpoint_->buffers()->iova(index), index};
    EXPECT_EQ(endpoint_->shared().post(&buffer, 1), 1);
  }

  std::unique_ptr<Endpoint> endpoint_;
  uint32_t mailbox_ = 0;
};

/// Any number of ports on a fabric of the test's own.
class Net : public ::testing::Test {
 protected:
  Net() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~Net() override { unsetenv("RIO_RUNTIME_DIR"); }

  static PortConfig config_of(uint32_t id, const std::string& options = "") {
    PortConfig config;
    config.card = "shm:x,id=" + std::to_string(id) + options;
    config.buffers = 256;
    config.share = 16;
    config.connect_ms = 5000;
    config.response_timeout_us = 5000;
    return config;
  }
  MessagePort& port(const PortConfig& config) {
    std::unique_ptr<MessagePort> made;
    EXPECT_EQ(MessagePort::open(config, &made), 0);
    ports_.push_back(std::move(made));
    return *ports_.back();
  }
  MessagePort& port(uint32_t id) { return port(config_of(id)); }
  void close(MessagePort& port) {
    ports_.erase(std::find_if(ports_.begin(), ports_.end(),
                              [&](const auto& p) { return p.get() == &port; }));
  }
  static Member member(MessagePort& port, uint16_t id) {
    Member made;
    made.port = &port;
    EXPECT_EQ(MessageContext::create(port, id, &made.context), 0);
    return made;
  }
  static Route route(const Member& from, uint32_t dest_id, uint32_t to) {
    Route out;
    EXPECT_EQ(from.port->route(dest_id, to, from.context->id(), Kind::kData, &out), 0);
    return out;
  }

  /// Lets each port work once.
  void turn() {
    for (const auto& port : ports_) {
      port->progress();
    }
  }
  void turns(uint32_t n) {
    for (; n > 0; --n) {
      turn();
    }
  }
  /// Works until `done()`. @return false: it did not become true in time.
  template <class Done>
  [[nodiscard]] bool work_until(const Done& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      turn();
      if (std::chrono::steady_clock::now() > until) {
        return false;
      }
    }
    return true;
  }
  static int try_send(const Member& from, const Route& route, const std::string& text) {
    return from.port->send(route, text.data(), static_cast<uint32_t>(text.size()));
  }
  /// Sends, and works until the message is accepted or refused.
  int send(const Member& from, const Route& route, const std::string& text) {
    int rc = -EAGAIN;
    EXPECT_TRUE(work_until([&] { return (rc = try_send(from, route, text)) != -EAGAIN; }));
    return rc;
  }
  /// Waits for the next message there. @return "none": no message arrived in time.
  std::string receive(const Member& to) {
    return work_until([&] { return !to.inbox().empty(); }) ? to.take() : "none";
  }
  /// Sends until a message is not accepted, while no buffer is given back. @return the number sent.
  uint32_t fill(const Member& from, const Route& route, uint32_t at_most) {
    EXPECT_EQ(send(from, route, "0"), 0);
    uint32_t sent = 1;
    for (uint32_t idle = 0; idle < 2000 && sent < at_most; ++idle) {
      turn();
      for (; sent < at_most && try_send(from, route, std::to_string(sent)) == 0; ++sent) {
        idle = 0;
      }
    }
    return sent;
  }

  rio::test::TempDir dir_;
  std::vector<std::unique_ptr<MessagePort>> ports_;
};

}  // namespace rio::msg::test
